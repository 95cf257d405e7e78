// SPDX-License-Identifier: Apache-2.0
// Recording, eager execution and the tape's memory.
#include "tape.hpp"

#include "cpu_backend.hpp"

#include <algorithm>

namespace vitro {
namespace {

constexpr std::size_t kFirstChunkBytes = std::size_t{1} << 20;

// Only steps write through bases, and only to outputs; inputs share the type to keep one table of bases.
std::byte* base_address(const void* memory) noexcept { return static_cast<std::byte*>(const_cast<void*>(memory)); }

void require_memory(const void* memory, const Shape& shape) {
  if (memory != nullptr || shape.elements() == 0) return;
  fail(ErrorCode::invalid_argument, "Tape: a view of shape " + to_string(shape) + " without memory (null) was given to it");
}

[[noreturn]] void refuse_strides(const char* what, const Shape& shape) {
  fail(ErrorCode::shape_mismatch,
       std::string("Tape::") + what + " needs contiguous memory here, got strides of their own for shape " + to_string(shape));
}

}  // namespace

Shape Var::shape() const noexcept { return tape->tensors().shape(id); }

Tape::Tape(Context& context, TapeMode mode)
    : own_backend_(std::make_unique<CpuBackend>(context)), backend_(own_backend_.get()), mode_(mode) {}
Tape::Tape(Backend& backend, TapeMode mode) : backend_(&backend), mode_(mode) {}
Tape::~Tape() = default;

Var Tape::external(const void* memory, const Shape& shape, DType type, Role role, bool needs_gradient) {
  require_memory(memory, shape);
  bases_.push_back(base_address(memory));
  const Place place{0, static_cast<std::uint32_t>(bases_.size() - 1)};
  return {this, tensors_.add({shape, place, type, role, needs_gradient})};
}

Var Tape::input(ConstTensorView view, bool needs_gradient) {
  if (view.is_contiguous()) return external(view.data(), view.shape(), DType::f32, Role::input, needs_gradient);
  require_memory(view.data(), view.shape());
  if (mode_ == TapeMode::record) refuse_strides("input", view.shape());
  const TensorId id = make(view.shape());
  tensors_[id].role = Role::input;
  tensors_[id].needs_gradient = needs_gradient;
  copy(view, TensorView(resolve<float>(tensors_[id].place, bases_.data()), view.shape()));
  return {this, id};
}

Var Tape::input(LabelView view) {
  if (!view.is_contiguous()) refuse_strides("input", view.shape());
  return external(view.data(), view.shape(), DType::i32, Role::input, false);
}

Var Tape::input(BasicView<const std::uint8_t> view) {
  if (!view.is_contiguous()) refuse_strides("input", view.shape());
  return external(view.data(), view.shape(), DType::u8, Role::input, false);
}

Var Tape::constant(ConstTensorView view) {
  if (!view.is_contiguous()) refuse_strides("constant", view.shape());
  return external(view.data(), view.shape(), DType::f32, Role::constant, false);
}

Var Tape::placeholder(const Shape& shape, DType type, bool needs_gradient) {
  if (mode_ != TapeMode::record) {
    fail(ErrorCode::invalid_argument,
         "Tape::placeholder: this tape runs what it records, so its inputs need memory; use input(), or TapeMode::record");
  }
  bases_.push_back(nullptr);
  const Place place{0, static_cast<std::uint32_t>(bases_.size() - 1)};
  return {this, tensors_.add({shape, place, type, Role::input, needs_gradient})};
}

Var Tape::parameter(TensorView view) {
  const Var var = state(view);
  tensors_[var.id].needs_gradient = true;
  return var;
}

Var Tape::state(TensorView view) {
  if (!view.is_contiguous()) refuse_strides("parameter, and state likewise", view.shape());
  return external(view.data(), view.shape(), DType::f32, Role::parameter, false);
}

TensorId Tape::make(const Shape& shape, DType type) {
  const Place place = mode_ == TapeMode::record ? kNowhere : allocate(bytes_of(shape, type));
  return tensors_.add({shape, place, type, Role::computed, false});
}

TensorId Tape::make_alias(TensorId x, const Shape& shape) {
  TensorInfo info = tensors_[x];
  info.shape = shape;
  info.role = Role::computed;
  info.needs_gradient = false;
  return tensors_.add(info);
}

void Tape::emit(const Node& node) {
  check_shapes(node, tensors_).value();
  std::visit(
      [&](const auto& n) {
        bool needs_gradient = false;
        for (TensorId id : n.inputs()) needs_gradient |= id != kNoTensor && tensors_[id].needs_gradient;
        for (TensorId id : n.outputs()) {
          if (tensors_[id].role == Role::computed) tensors_[id].needs_gradient = needs_gradient;
        }
      },
      node);
  nodes_.push_back(node);
  if (mode_ == TapeMode::record) return;
  const BoundStep bound = backend_->try_bind({&node, 1}, tensors_).value();
  Context* const context = backend_->context();
  if (context != nullptr) context->reserve_scratch(bound.scratch);
  bound.step.run({bases_.data(), context});
}

std::byte* Tape::memory_of(TensorId x) const noexcept {
  const TensorInfo& info = tensors_[x];
  return info.role == Role::computed || bases_[info.place.base] == nullptr ? nullptr
                                                                           : bases_[info.place.base] + info.place.offset;
}

bool Tape::is_copy(TensorId x) const noexcept {
  return tensors_[x].role == Role::input &&
         std::any_of(chunks_.begin(), chunks_.end(), [&](const Chunk& chunk) { return chunk.base == tensors_[x].place.base; });
}

template <class T>
BasicView<const T> Tape::elements_of(Var x, DType type) const {
  if (mode_ == TapeMode::record) {
    fail(ErrorCode::invalid_argument,
         "Tape: " + describe(x.id, tensors_) +
             " has no elements to read: this tape only records; a plan made from it computes them");
  }
  if (!tensors_.contains(x.id) || tensors_[x.id].type != type) {
    fail(ErrorCode::invalid_argument,
         "Tape: expected a tensor of type " + std::string(to_string(type)) + ", got " + describe(x.id, tensors_));
  }
  return {resolve<const T>(tensors_[x.id].place, bases_.data()), tensors_.shape(x.id)};
}

ConstTensorView Tape::value(Var x) const { return elements_of<float>(x, DType::f32); }
LabelView Tape::labels(Var x) const { return elements_of<std::int32_t>(x, DType::i32); }

float Tape::item(Var x) const {
  const ConstTensorView view = value(x);
  if (view.elements() != 1) {
    fail(ErrorCode::shape_mismatch,
         "Tape::item: " + describe(x.id, tensors_) + " has " + std::to_string(view.elements()) + " elements instead of 1");
  }
  return view.data()[0];
}

Var Tape::gradient(Var x) const {
  if (!differentiated_) fail(ErrorCode::invalid_argument, "Tape::gradient: backward() has not been called");
  if (!tensors_[x.id].needs_gradient) {
    fail(ErrorCode::invalid_argument,
         "Tape::gradient: " + describe(x.id, tensors_) + " needs no gradient: it is neither a parameter nor computed from one");
  }
  const auto index = static_cast<std::size_t>(x.id);
  return {x.tape, index < gradient_of_.size() ? gradient_of_[index] : kNoTensor};
}

std::size_t Tape::record_bytes() const noexcept { return nodes_.size() * sizeof(Node) + tensors_.size() * sizeof(TensorInfo); }

Place Tape::allocate(std::size_t bytes) {
  bytes = std::max<std::size_t>(aligned_up(bytes), kAlignment);
  if (chunks_.empty() || chunks_.back().bytes - used_ < bytes) {
    Chunk chunk;
    chunk.bytes = std::max({bytes, kFirstChunkBytes, chunks_.empty() ? 0 : 2 * chunks_.back().bytes});
    chunk.memory = allocate_array<std::byte>(static_cast<std::ptrdiff_t>(chunk.bytes));
    chunk.base = static_cast<std::uint32_t>(bases_.size());
    bases_.push_back(chunk.memory.get());
    chunks_.push_back(std::move(chunk));
    used_ = 0;
  }
  const Place place{used_, chunks_.back().base};
  used_ += bytes;
  arena_bytes_ += bytes;
  return place;
}

void Tape::clear() noexcept {
  nodes_.clear();
  tensors_.clear();
  gradient_of_.clear();
  bases_.clear();
  differentiated_ = false;
  used_ = 0;
  arena_bytes_ = 0;
  // The last chunk is the largest; when one recording needed several, the next one like it will make do with one of twice the
  // size.
  if (chunks_.size() > 1) chunks_.erase(chunks_.begin(), chunks_.end() - 1);
  for (Chunk& chunk : chunks_) {
    chunk.base = static_cast<std::uint32_t>(bases_.size());
    bases_.push_back(chunk.memory.get());
  }
}

}  // namespace vitro
