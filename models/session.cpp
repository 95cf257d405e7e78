// SPDX-License-Identifier: Apache-2.0
// Compiling a model, and giving sessions their memory.
#include "session.hpp"

#include "../ops/float_state.hpp"

#include <functional>

namespace vitro {
namespace {

constexpr std::array<int, kMaxRank> kAxesInOrder{0, 1, 2, 3, 4, 5};

}  // namespace

Result<std::shared_ptr<const CompiledModel>> CompiledModel::try_make(const Model& model, const Options& options) {
  if (options.batch < 1) {
    return Error(ErrorCode::invalid_argument,
                 "session: the batch is " + std::to_string(options.batch) + "; it must be at least 1");
  }
  Result<Shape> input = model.try_batch_shape(options.batch);
  if (!input) return std::move(input).error();
  Result<std::unique_ptr<Context>> context = Context::try_make(options.context);
  if (!context) return std::move(context).error();
  Tape tape(*context.value(), TapeMode::record);
  const Var x = tape.placeholder(input.value());
  Var scores = model.forward(x, model.place_constants(tape));
  Result<std::shared_ptr<const Plan>> plan = Plan::try_capture(tape, {&scores, 1}, options.capture);
  if (plan && plan.value()->port(scores)->place.base == plan.value()->port(x)->place.base) {
    // A model that only flattens: the result would lie where the input lies instead of where the caller wants it.
    scores = permute(scores, std::span(kAxesInOrder).first(static_cast<std::size_t>(scores.shape().rank())));
    plan = Plan::try_capture(tape, {&scores, 1}, options.capture);
  }
  if (!plan) return std::move(plan).error();

  std::shared_ptr<CompiledModel> compiled(new CompiledModel);
  compiled->plan_ = std::move(plan).value();
  compiled->context_ = options.context;
  compiled->input_ = input.value();
  compiled->output_ = scores.shape();
  compiled->input_port_ = compiled->plan_->port(x);
  compiled->output_port_ = compiled->plan_->port(scores);
  compiled->session_bytes_ =
      aligned_up(compiled->plan_->arena_bytes()) + context.value()->scratch_bytes(compiled->plan_->scratch());
  return std::shared_ptr<const CompiledModel>(std::move(compiled));
}

Result<std::unique_ptr<Session>> Session::try_make(std::shared_ptr<const CompiledModel> compiled, std::span<std::byte> memory) {
  if (Status status = ops::check_float_state(); !status) {
    return Error(status.error().code(), "session: " + status.error().message());
  }
  Result<std::unique_ptr<Context>> context = Context::try_make(compiled->context_options());
  if (!context) return std::move(context).error();
  const std::size_t arena = aligned_up(compiled->plan().arena_bytes());
  if (memory.data() != nullptr) {
    if (memory.size() < compiled->session_bytes() || reinterpret_cast<std::uintptr_t>(memory.data()) % kAlignment != 0) {
      return Error(ErrorCode::invalid_argument,
                   "session: it needs " + std::to_string(compiled->session_bytes()) +
                       " bytes of memory at a multiple of 64; got " + std::to_string(memory.size()) + " bytes, " +
                       std::to_string(reinterpret_cast<std::uintptr_t>(memory.data()) % kAlignment) + " beyond one");
    }
    context.value()->lend_scratch(compiled->plan().scratch(), memory.data() + arena);
  }
  Result<Replay> replay = Replay::try_make(compiled->plan_, *context.value(), PortMemory::given, memory);
  if (!replay) return std::move(replay).error();
  return std::unique_ptr<Session>(new Session(std::move(compiled), std::move(context).value(), std::move(replay).value()));
}

Result<std::unique_ptr<Session>> Session::try_make(const Model& model, const Options& options) {
  Result<std::shared_ptr<const CompiledModel>> compiled = CompiledModel::try_make(model, options);
  if (!compiled) return std::move(compiled).error();
  return try_make(std::move(compiled).value());
}

Status Session::try_run(ConstTensorView input, TensorView output) {
  const auto check = [](const char* what, ConstTensorView view, const Shape& shape) -> Status {
    if (view.shape() != shape || !view.is_contiguous()) {
      return Error(ErrorCode::shape_mismatch, std::string("session: the ") + what + " must be dense, of shape " +
                                                  to_string(shape) + "; got shape " + to_string(view.shape()) +
                                                  (view.is_contiguous() ? "" : " with strides of its own"));
    }
    if (view.data() != nullptr || shape.elements() == 0) return {};
    return Error(ErrorCode::invalid_argument, std::string("session: the ") + what + " is a view without memory (null)");
  };
  if (Status status = check("input", input, compiled_->input_shape()); !status) return status;
  if (Status status = check("output", output, compiled_->output_shape()); !status) return status;
  const std::less<const float*> before;
  if (before(input.data(), output.data() + output.elements()) && before(output.data(), input.data() + input.elements())) {
    return Error(ErrorCode::invalid_argument, "session: the output must not lie in the input's memory");
  }
  run(input.data(), output.data());
  return {};
}

}  // namespace vitro
