// SPDX-License-Identifier: Apache-2.0
// Which nodes can be one step, and chains of elementwise nodes.
#include "cpu_binder.hpp"

namespace vitro {
namespace {

// --- Elementwise chains ---

enum class LinkKind : std::uint8_t { relu, relu_grad, add, mul };

// One node of a chain: from x, which the node before computes, and perhaps another operand.
struct Link {
  LinkKind kind;
  TensorId x, other, y;
};

// The node as a link whose x is `previous`; kNoTensor, for the first node of a chain: its first input, or a gradient's dy.
std::optional<Link> link_of(const Node& node, TensorId previous, const TensorTable& tensors) {
  if (const auto* n = std::get_if<Relu>(&node)) return Link{LinkKind::relu, n->x, kNoTensor, n->y};
  if (const auto* n = std::get_if<ReluGrad>(&node)) {
    if (previous != kNoTensor && n->dy != previous) return std::nullopt;
    return Link{LinkKind::relu_grad, n->dy, n->y, n->dx};
  }
  const auto binary = [&](const auto& n, LinkKind kind) -> std::optional<Link> {
    if (tensors.shape(n.a) != tensors.shape(n.b)) return std::nullopt;
    if (previous != kNoTensor && (n.a == previous) == (n.b == previous)) return std::nullopt;
    return n.b == previous ? Link{kind, n.b, n.a, n.y} : Link{kind, n.a, n.b, n.y};
  };
  if (const auto* n = std::get_if<Add>(&node)) return binary(*n, LinkKind::add);
  if (const auto* n = std::get_if<Mul>(&node)) return binary(*n, LinkKind::mul);
  return std::nullopt;
}

constexpr std::size_t kMostLinks = 6;
constexpr Index kBlock = 2048;  // 8 KiB of each array: what one link writes, the next finds in the first-level cache

struct Chain {
  Index count;
  std::uint8_t links = 0;
  LinkKind kinds[kMostLinks] = {};
};

bool is_chain(std::span<const Node> nodes, const TensorTable& tensors) {
  if (nodes.size() > kMostLinks) return false;
  TensorId previous = kNoTensor;
  for (const Node& node : nodes) {
    const std::optional<Link> link = link_of(node, previous, tensors);
    if (!link || (previous != kNoTensor && link->x != previous)) return false;
    previous = link->y;
  }
  return true;
}

void run_link(const simd::KernelTable& kernels, LinkKind kind, Index count, const float* x, const float* other,
              float* y) noexcept {
  switch (kind) {
    case LinkKind::relu: return kernels.relu(count, x, y);
    case LinkKind::relu_grad: return kernels.relu_grad(count, other, x, y);
    case LinkKind::add: return kernels.add(count, x, other, y);
    case LinkKind::mul: return kernels.mul(count, x, other, y);
  }
}

BoundStep bind_chain(std::span<const Node> nodes, const Binder& b) {
  Call<Chain, kMostLinks + 2> call{};
  std::fill(std::begin(call.places), std::end(call.places), kNowhere);
  TensorId previous = kNoTensor;
  for (const Node& node : nodes) {
    const Link link = *link_of(node, previous, b.tensors());
    if (previous == kNoTensor) call.places[0] = b.place(link.x);
    call.places[2 + call.problem.links] = b.place(link.other);
    call.problem.kinds[call.problem.links++] = link.kind;
    previous = link.y;
  }
  call.places[1] = b.place(previous);
  call.problem.count = b.shape(previous).elements();
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    e.context->parallel_for(c.problem.count, c.problem.links, [&](Index begin, Index end, int) {
      float* const y = c.at(1, e);
      for (Index i = begin; i < end; i += kBlock) {
        const Index count = std::min(kBlock, end - i);
        const float* x = c.at(0, e) + i;
        for (std::size_t j = 0; j < c.problem.links; ++j) {
          const float* const other = c.has(2 + j) ? c.at(2 + j, e) + i : nullptr;
          run_link(e.context->kernels(), c.problem.kinds[j], count, x, other, y + i);
          x = y + i;
        }
      }
    });
  };
  return {Step::make(run, call), {}};
}

}  // namespace

bool cpu_fuses(std::span<const Node> nodes, const TensorTable& tensors) {
  return nodes.size() == 1 || ends_product(nodes.front(), nodes.subspan(1), tensors) ||
         ends_in_pool(nodes.front(), nodes.subspan(1), tensors) || is_chain(nodes, tensors) || are_updates(nodes, tensors) ||
         reads_outer(nodes, tensors);
}

BoundStep bind_fused(std::span<const Node> nodes, const Binder& b) {
  if (const auto* n = std::get_if<Linear>(&nodes.front())) return bind_product(*n, nodes.subspan(1), b);
  if (const auto* n = std::get_if<Conv2d>(&nodes.front())) {
    const bool pooled = std::holds_alternative<MaxPool2d>(nodes.back());
    return pooled ? bind_pooled(*n, nodes.subspan(1), b) : bind_product(*n, nodes.subspan(1), b);
  }
  if (std::holds_alternative<SgdUpdate>(nodes.back())) return bind_updates(nodes, b);
  if (std::holds_alternative<LinearGradWeight>(nodes.front())) return bind_outer_reader(nodes, b);
  return bind_chain(nodes, b);
}

}  // namespace vitro
