// SPDX-License-Identifier: Apache-2.0
// Session: inference with a model, all memory taken beforehand.
#pragma once

#include "../autograd/replay.hpp"
#include "model.hpp"

#include <memory>
#include <span>

namespace vitro {

// A model compiled for one batch size, one instruction set and one number of threads: its steps, and its weights laid out as
// the kernels read them. Immutable; shared by as many sessions as wanted. Keeps nothing of the model it was made from.
class CompiledModel {
 public:
  struct Options {
    Index batch = 1;
    ContextOptions context = {};  // of each session; an executor may be shared only if it allows that (core/thread_pool.hpp)
    CaptureOptions capture = {};
  };
  // Errors: batch under 1; those of the context; what Plan::try_capture() finds.
  static Result<std::shared_ptr<const CompiledModel>> try_make(const Model& model, const Options& options);

  const Plan& plan() const noexcept { return *plan_; }
  const ContextOptions& context_options() const noexcept { return context_; }
  // With the batch in front.
  const Shape& input_shape() const noexcept { return input_; }
  const Shape& output_shape() const noexcept { return output_; }

  // What a session takes, in bytes: the arena, and the scratch memory of its kernels and threads. A function of the model, the
  // batch, the instruction set and the number of threads: `inspect --batch N` prints it as a constant for a build.
  std::size_t session_bytes() const noexcept { return session_bytes_; }

 private:
  friend class Session;
  CompiledModel() = default;

  std::shared_ptr<const Plan> plan_;
  ContextOptions context_;
  Shape input_, output_;
  const Port* input_port_ = nullptr;
  const Port* output_port_ = nullptr;
  std::size_t session_bytes_ = 0;
};

// Serves one thread at a time; several sessions run at once. After it is made it takes no memory, no lock and (with one thread)
// makes no system call.
class Session {
 public:
  using Options = CompiledModel::Options;

  // `memory`, if given, is used instead of the heap: compiled->session_bytes(), 64-byte aligned, the caller's for as long as
  // the session lives. (The few hundred bytes of the session's own tables, and its threads' stacks, are not in it.) Errors:
  // memory that is too small or not aligned; the calling thread's floating-point state is not the default one (it must be in
  // every thread that calls run()); those of the context.
  static Result<std::unique_ptr<Session>> try_make(std::shared_ptr<const CompiledModel> compiled,
                                                   std::span<std::byte> memory = {});
  static Result<std::unique_ptr<Session>> try_make(const Model& model, const Options& options = {});

  const CompiledModel& compiled() const noexcept { return *compiled_; }

  // Reads compiled().input_shape() floats, writes compiled().output_shape() floats; both dense, not overlapping. The same bits
  // as the model on a tape.
  void run(const float* input, float* output) noexcept {
    replay_.set(*compiled_->input_port_, input);
    replay_.set(*compiled_->output_port_, output);
    replay_.run();
  }
  // The same for views; errors: another shape, strides of its own, no memory, memory that overlaps.
  Status try_run(ConstTensorView input, TensorView output);

 private:
  Session(std::shared_ptr<const CompiledModel> compiled, std::unique_ptr<Context> context, Replay replay)
      : compiled_(std::move(compiled)), context_(std::move(context)), replay_(std::move(replay)) {}

  std::shared_ptr<const CompiledModel> compiled_;
  std::unique_ptr<Context> context_;
  Replay replay_;
};

}  // namespace vitro
