// SPDX-License-Identifier: Apache-2.0
// Plan: a recorded computation compiled into a flat list of steps over one arena.
#pragma once

#include "../core/storage.hpp"
#include "tape.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace vitro {

struct Graph;  // graph.hpp

struct CaptureOptions {
  bool fuse = true;          // neighbours become one step
  bool reuse_memory = true;  // tensors that are not needed at the same time share memory
};                           // neither changes a bit of any result

enum class PortKind : std::uint8_t {
  input,      // read
  parameter,  // read and written: parameters and states
  output,     // written
};

// A tensor that lies outside the plan's memory.
struct Port {
  TensorId tensor;  // of the tape that was captured
  PortKind kind;
  DType type;
  Shape shape;
  Place place;                    // in the bases that run() is given
  std::byte* recorded = nullptr;  // where it lay when it was recorded; null for placeholders and outputs
};

// Immutable, and independent of the tape, of the memory of constants, and of the context it was made with: it may be shared by
// threads, each with a context of its own. Memory is named by base: kArena, kConstants, then one base for each port.
class Plan {
 public:
  static constexpr std::uint32_t kArena = 0, kConstants = 1, kFirstPort = 2;

  // Compiles what `tape` (of either mode) holds, for its backend. `outputs` are read after a run; nodes that neither they nor
  // an update of a parameter depend on are left out. Constants are copied, or packed as the backend likes them. The time is
  // near linear in the nodes. Errors: what check_graph() finds, naming the node; an input that the tape had to copy;
  // memory that is updated and lies in another tensor of the tape as well; and those of the backend.
  static Result<std::shared_ptr<const Plan>> try_capture(const Tape& tape, std::span<const Var> outputs,
                                                         const CaptureOptions& options = {});
#if defined(__cpp_exceptions)
  static std::shared_ptr<const Plan> capture(const Tape& tape, std::span<const Var> outputs,
                                             const CaptureOptions& options = {}) {
    return try_capture(tape, outputs, options).value();
  }
#endif
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // Runs all steps. Requires check(context), the context's scratch memory reserved, and bases() addresses: the arena of
  // arena_bytes(), 64-byte aligned; constants(); and where each port lies, aligned to its element.
  void run(const Execution& execution) const noexcept {
    for (const Step& step : steps_) step.run(execution);
  }

  // Whether the context has the kernels and the number of threads that the steps were made for; the error says which it lacks.
  Status check(const Context& context) const;
  const ScratchSize& scratch() const noexcept { return scratch_; }

  std::span<const Port> ports() const noexcept { return ports_; }
  // The port of a tensor of the tape; null where the plan does not use it.
  const Port* port(Var x) const noexcept;
  std::size_t bases() const noexcept { return kFirstPort + ports_.size(); }
  std::byte* constants() const noexcept { return constants_.get(); }

  // Of what lies in the arena: intermediate results. The lower bound is the largest sum over what one step needs at least.
  std::size_t arena_bytes() const noexcept { return arena_bytes_; }
  std::size_t arena_lower_bound() const noexcept { return arena_lower_bound_; }
  std::size_t constant_bytes() const noexcept { return constant_bytes_; }
  std::size_t output_bytes() const noexcept;  // of all outputs, each rounded up to 64
  std::size_t steps() const noexcept { return steps_.size(); }

  // For people: the steps as a table - operations, floating-point operations, and a row for each tensor with its shape, size
  // and place - and what the memory comes to. The same as a graph in Graphviz's language.
  std::string describe() const;
  std::string graphviz() const;
  // "%7 f32[64, 10]". Requires a tensor of a step.
  std::string tensor_text(TensorId x) const;
  // The arena's map: one line for each tensor with the steps it is needed for and its bytes.
  struct ArenaBlock {
    TensorId tensor;  // one of those that lie there
    std::size_t offset, bytes;
    std::uint32_t first, last;  // steps
  };
  std::span<const ArenaBlock> arena_map() const noexcept { return arena_map_; }

 private:
  friend class Capture;
  Plan();

  std::vector<Step> steps_;
  ScratchSize scratch_;
  std::vector<Port> ports_;
  AlignedArray<std::byte> constants_;
  std::size_t arena_bytes_ = 0, arena_lower_bound_ = 0, constant_bytes_ = 0;
  const simd::KernelTable* kernels_ = nullptr;  // null where the backend needs no context
  int threads_ = 1;
  std::string backend_;
  std::vector<ArenaBlock> arena_map_;
  std::unique_ptr<const Graph> graph_;  // for describe(): what the steps were made of
};

}  // namespace vitro
