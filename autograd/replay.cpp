// SPDX-License-Identifier: Apache-2.0
// Giving a plan its memory, and refusing memory that is not what was captured.
#include "replay.hpp"

namespace vitro {
namespace {

// Whether the replay must find memory for the port: no other port or constant lies there, and it was recorded nowhere.
bool needs_memory(const Port& port, std::size_t index) noexcept {
  return port.place.base == Plan::kFirstPort + index && port.recorded == nullptr;
}

std::string text(DType type, const Shape& shape) { return to_string(type) + to_string(shape); }

}  // namespace

std::size_t Replay::memory_bytes(const Plan& plan, PortMemory port_memory) noexcept {
  std::size_t bytes = aligned_up(plan.arena_bytes());
  for (std::size_t i = 0; i < plan.ports().size(); ++i) {
    if (port_memory == PortMemory::own && needs_memory(plan.ports()[i], i))
      bytes += aligned_up(bytes_of(plan.ports()[i].shape, plan.ports()[i].type));
  }
  return bytes;
}

Result<Replay> Replay::try_make(std::shared_ptr<const Plan> plan, Context& context, PortMemory port_memory,
                                std::span<std::byte> memory) {
  if (Status status = plan->check(context); !status) return std::move(status).error();
  const std::size_t bytes = memory_bytes(*plan, port_memory);
  Replay replay(Empty(), std::move(plan), context);
  if (memory.data() == nullptr) {
    replay.own_memory_ = allocate_array<std::byte>(static_cast<std::ptrdiff_t>(bytes));
    memory = {replay.own_memory_.get(), bytes};
  } else if (memory.size() < bytes || reinterpret_cast<std::uintptr_t>(memory.data()) % kAlignment != 0) {
    return Error(ErrorCode::invalid_argument,
                 "replay: " + std::to_string(memory.size()) + " bytes of memory at an address that is " +
                     std::to_string(reinterpret_cast<std::uintptr_t>(memory.data()) % kAlignment) +
                     " beyond a multiple of 64 were given; " + std::to_string(bytes) + " bytes at a multiple of 64 are needed");
  }
  context.reserve_scratch(replay.plan_->scratch());
  replay.bases_.assign(replay.plan_->bases(), nullptr);
  replay.bases_[Plan::kArena] = memory.data();
  replay.bases_[Plan::kConstants] = replay.plan_->constants();
  std::size_t used = aligned_up(replay.plan_->arena_bytes());
  const std::span<const Port> ports = replay.plan_->ports();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    std::byte*& base = replay.bases_[Plan::kFirstPort + i];
    base = ports[i].recorded;
    if (port_memory == PortMemory::given || !needs_memory(ports[i], i)) continue;
    base = memory.data() + used;
    used += aligned_up(bytes_of(ports[i].shape, ports[i].type));
  }
  return replay;
}

Status Replay::check_port(Var x, DType type, const Layout* layout, const void* memory) const {
  const Port* const port = plan_->port(x);
  const auto error = [&](const std::string& message) {
    return Error(ErrorCode::shape_mismatch, "replay: " + to_string(x.id) + " " + message);
  };
  if (port == nullptr) return error("is no input, output, parameter or state of the plan");
  const std::string captured = "was captured as " + text(port->type, port->shape) + ", dense";
  if (port->type != type) return error(captured + "; got elements of type " + to_string(type));
  if (layout == nullptr) return {};
  if (port->shape != layout->shape) {
    return error(captured + "; got shape " + to_string(layout->shape) + ". Another shape needs another plan");
  }
  if (!layout->is_contiguous()) return error(captured + "; got strides of its own. Copy it into dense memory first");
  if (port->place.base < Plan::kFirstPort || &plan_->ports()[port->place.base - Plan::kFirstPort] != port) {
    return error("lies where another tensor lies and cannot be set by itself");
  }
  if (memory == nullptr && port->shape.elements() > 0) return error(captured + "; got a view without memory (null)");
  if (reinterpret_cast<std::uintptr_t>(memory) % size_of(type) != 0) {
    return error(captured + "; got an address that is not a multiple of its element's size");
  }
  return {};
}

Status Replay::try_set(Var x, ConstTensorView view) {
  Status status = check_port(x, DType::f32, &view.layout(), view.data());
  if (status) set(*plan_->port(x), view.data());
  return status;
}

Status Replay::try_set(Var x, LabelView view) {
  Status status = check_port(x, DType::i32, &view.layout(), view.data());
  if (status) set(*plan_->port(x), view.data());
  return status;
}

Status Replay::try_set(Var x, BasicView<const std::uint8_t> view) {
  Status status = check_port(x, DType::u8, &view.layout(), view.data());
  if (status) set(*plan_->port(x), view.data());
  return status;
}

Result<ConstTensorView> Replay::try_value(Var x) const {
  if (Status status = check_port(x, DType::f32, nullptr, nullptr); !status) return std::move(status).error();
  const Port& port = *plan_->port(x);
  return ConstTensorView(static_cast<const float*>(memory(port)), port.shape);
}

}  // namespace vitro
