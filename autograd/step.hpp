// SPDX-License-Identifier: Apache-2.0
// Step: one bound node - a function pointer and its resolved arguments in a fixed inline buffer.
#pragma once

#include "tensor_table.hpp"

#include <cstddef>
#include <new>
#include <type_traits>

namespace vitro {

class Context;  // ops/context.hpp

// Addresses of the memory that places name: bases[place.base] + place.offset.
using Bases = std::byte* const*;

// What a step runs with. A step keeps neither, so one list of steps serves several callers at once, each with its own.
struct Execution {
  Bases bases;
  Context* context;  // the kernels, threads and scratch memory of steps that run on the CPU; null where no step does
};

template <class T>
T* resolve(Place place, Bases bases) noexcept {
  return reinterpret_cast<T*>(bases[place.base] + place.offset);
}

// Trivially copyable; running it neither allocates nor fails. A default-made Step does nothing.
class Step {
 public:
  static constexpr std::size_t kArgumentBytes = 248;

  Step() = default;
  // Runs `function(arguments, execution)`: a function object without state (a lambda without captures), noexcept, on a copy of
  // `arguments`. What the arguments point to must outlive the step.
  template <class Function, class Arguments>
  static Step make(Function, const Arguments& arguments) noexcept {
    static_assert(std::is_empty_v<Function> && std::is_nothrow_invocable_v<Function, const Arguments&, const Execution&>);
    static_assert(std::is_trivially_copyable_v<Arguments> && sizeof(Arguments) <= kArgumentBytes);
    static_assert(alignof(Arguments) <= 8);
    Step step;
    step.run_ = [](const std::byte* bytes, const Execution& execution) noexcept {
      Function{}(*std::launder(reinterpret_cast<const Arguments*>(bytes)), execution);
    };
    ::new (static_cast<void*>(step.arguments_)) Arguments(arguments);
    return step;
  }

  void run(const Execution& execution) const noexcept {
    if (run_ != nullptr) run_(arguments_, execution);
  }

 private:
  void (*run_)(const std::byte* arguments, const Execution& execution) noexcept = nullptr;
  alignas(8) std::byte arguments_[kArgumentBytes];
};
static_assert(std::is_trivially_copyable_v<Step> && sizeof(Step) <= 256);

}  // namespace vitro
