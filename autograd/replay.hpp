// SPDX-License-Identifier: Apache-2.0
// Replay: a plan with the memory it runs in.
#pragma once

#include "plan.hpp"

namespace vitro {

// Where placeholders and outputs lie until they are set.
enum class PortMemory : std::uint8_t {
  own,    // in the replay's memory
  given,  // nowhere: the caller sets each of them before the first run
};

// Takes all memory when it is made and none afterwards. One replay serves one thread at a time; several share a plan.
class Replay {
 public:
  // Inputs, parameters and states lie where they were recorded until they are set. `context` must outlive the replay. `memory`,
  // if given, is used instead of the heap: memory_bytes(plan, port_memory), 64-byte
  // aligned, the caller's for as long as the replay lives. Errors: Plan::check(); memory that is too small or not aligned.
  static Result<Replay> try_make(std::shared_ptr<const Plan> plan, Context& context, PortMemory port_memory = PortMemory::own,
                                 std::span<std::byte> memory = {});
#if defined(__cpp_exceptions)
  Replay(std::shared_ptr<const Plan> plan, Context& context, PortMemory port_memory = PortMemory::own,
         std::span<std::byte> memory = {})
      : Replay(try_make(std::move(plan), context, port_memory, memory).value()) {}
#endif
  // Bytes of a plan's arena and, where they are the replay's own, of its outputs and placeholders.
  static std::size_t memory_bytes(const Plan& plan, PortMemory port_memory = PortMemory::own) noexcept;

  const Plan& plan() const noexcept { return *plan_; }

  // Where x, an input, output, parameter or state of the tape, lies from now on: the caller's memory, which stays where it is.
  // What the plan writes (outputs, parameters, states) must not overlap anything else; that is the caller's to see to.
  // Errors, which name the tensor and what it was captured as: another type or shape, strides of its own, no memory, a tensor
  // that is no port of the plan, an address that is not aligned to the element.
  Status try_set(Var x, ConstTensorView view);
  Status try_set(Var x, LabelView view);
  Status try_set(Var x, BasicView<const std::uint8_t> view);
  // The same without looking: requires a port of the plan and memory as it was captured.
  void set(const Port& port, const void* memory) noexcept {
    bases_[port.place.base] = static_cast<std::byte*>(const_cast<void*>(memory));
  }

  // Where x lies: after run(), an output's elements. Errors as for try_set().
  Result<ConstTensorView> try_value(Var x) const;
  // The same for a port of any type.
  const void* memory(const Port& port) const noexcept { return bases_[port.place.base] + port.place.offset; }

  void run() noexcept { plan_->run({bases_.data(), context_}); }

 private:
  struct Empty {};
  Replay(Empty, std::shared_ptr<const Plan> plan, Context& context) : plan_(std::move(plan)), context_(&context) {}
  Status check_port(Var x, DType type, const Layout* layout, const void* memory) const;

  std::shared_ptr<const Plan> plan_;
  Context* context_;
  std::vector<std::byte*> bases_;
  AlignedArray<std::byte> own_memory_;
};

}  // namespace vitro
