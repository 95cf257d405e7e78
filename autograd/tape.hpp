// SPDX-License-Identifier: Apache-2.0
// Tape: records nodes and, unless it only records, runs each one as it is recorded.
#pragma once

#include "../core/storage.hpp"
#include "../core/tensor.hpp"
#include "../ops/context.hpp"
#include "backend.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace vitro {

class Tape;

// A handle to a tensor on a tape: cheap to copy, valid until the tape is cleared or destroyed.
struct Var {
  Tape* tape = nullptr;
  TensorId id = kNoTensor;

  Shape shape() const noexcept;
};

enum class TapeMode : std::uint8_t {
  run,     // eager: each node runs when it is recorded, so that values are there at once
  record,  // nothing runs and no memory is taken for computed tensors: for a Plan (plan.hpp) that will
};

// Usage: name the inputs and parameters, call the functions of functions.hpp, then backward(). All errors are programming
// errors (see fail()), found when the node is recorded. One tape serves one thread at a time.
class Tape {
 public:
  // On the CPU, with the context's kernels and threads; the context must outlive the tape.
  explicit Tape(Context& context, TapeMode mode = TapeMode::run);
  // On any backend, which must outlive the tape.
  explicit Tape(Backend& backend, TapeMode mode = TapeMode::run);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // Memory handed to these stays the caller's and must stay where it is, unchanged by anything but the tape, until clear(). A
  // view with other strides than dense ones is copied; one without memory fails unless it has no elements. Only what
  // `needs_gradient` gets one.
  Var input(ConstTensorView view, bool needs_gradient = false);
  Var input(LabelView view);
  Var input(BasicView<const std::uint8_t> view);
  // An input whose elements never change, such as the weights of a network that is not trained. Must be dense.
  Var constant(ConstTensorView view);
  // An input without memory, which a plan is given when it runs. Only on a tape that only records.
  Var placeholder(const Shape& shape, DType type = DType::f32, bool needs_gradient = false);
  // Read and, by optimizer nodes, written in place. Must be dense.
  Var parameter(TensorView view);
  // Memory of the optimizer: like a parameter, without a gradient.
  Var state(TensorView view);

  // Appends the nodes that compute d loss / d x for every x that needs one. `loss` must have one element; once per clear().
  void backward(Var loss);
  // The gradient of x after backward(); fails if x needs none. A tensor that does not contribute to the loss has none: the id
  // of the result is kNoTensor then.
  Var gradient(Var x) const;

  // The elements, as computed: a view into the tape's (or the caller's) memory. Fails on a tape that only records.
  ConstTensorView value(Var x) const;
  LabelView labels(Var x) const;
  // The one element of x; fails if it has another number of them.
  float item(Var x) const;

  // Forgets nodes and tensors and keeps the memory for the next recording; every Var becomes invalid.
  void clear() noexcept;

  TapeMode mode() const noexcept { return mode_; }
  Backend& backend() const noexcept { return *backend_; }

  // What is recorded. Sizes in bytes: nodes and tensor table, without the elements; and the elements of computed tensors.
  const std::vector<Node>& nodes() const noexcept { return nodes_; }
  const TensorTable& tensors() const noexcept { return tensors_; }
  std::size_t record_bytes() const noexcept;
  std::size_t arena_bytes() const noexcept { return arena_bytes_; }

  // Where an input, constant, parameter or state lies; null for a placeholder and for what is computed.
  std::byte* memory_of(TensorId x) const noexcept;
  // Whether input() had to copy x into the tape's own memory.
  bool is_copy(TensorId x) const noexcept;

  // For functions.hpp and gradient rules: a new computed tensor without content, and a node that gives it one (checked, bound,
  // run).
  TensorId make(const Shape& shape, DType type = DType::f32);
  void emit(const Node& node);
  // A computed tensor under another shape that lies where `x` lies.
  TensorId make_alias(TensorId x, const Shape& shape);

 private:
  Var external(const void* memory, const Shape& shape, DType type, Role role, bool needs_gradient);
  Place allocate(std::size_t bytes);
  template <class T>
  BasicView<const T> elements_of(Var x, DType type) const;

  struct Chunk {
    AlignedArray<std::byte> memory;
    std::size_t bytes = 0;
    std::uint32_t base = 0;
  };

  std::unique_ptr<Backend> own_backend_;
  Backend* backend_;
  TapeMode mode_;
  std::vector<Node> nodes_;
  TensorTable tensors_;
  std::vector<TensorId> gradient_of_;  // by tensor, filled by backward(); kNoTensor where there is none
  bool differentiated_ = false;

  std::vector<std::byte*> bases_;
  std::vector<Chunk> chunks_;  // bump allocation from the last one
  std::size_t used_ = 0;       // bytes of the last chunk
  std::size_t arena_bytes_ = 0;
};

}  // namespace vitro
