// SPDX-License-Identifier: Apache-2.0
// Updates of several parameters as one step, and gradients of linear layers' weights that their readers make for themselves.
#include "../ops/outer.hpp"
#include "cpu_binder.hpp"

namespace vitro {
namespace {

constexpr std::size_t kMostEntries = 6;

// One row of inputs makes dw an outer product: two short arrays, of which dw is made in registers wherever it is read.
bool is_outer(const LinearGradWeight& n, const TensorTable& tensors) { return tensors.shape(n.x)[0] == 1; }

ops::OuterProblem problem_of(const LinearGradWeight& n, const Binder& b) {
  return ops::outer_problem(ops::linear_problem({}, b.shape(n.x), b.shape(n.dw)).value());
}

// What the other operand of a product with x is, if that is one number for all elements of x; else kNoTensor.
TensorId factor_of(const Mul& n, TensorId x, const TensorTable& tensors) {
  if ((n.a == x) == (n.b == x)) return kNoTensor;
  const TensorId factor = n.a == x ? n.b : n.a;
  return tensors.shape(factor) == Shape() ? factor : kNoTensor;
}

// The nodes of a step that updates parameters: for each of them an update, before which its gradient may be made.
struct UpdateList {
  struct Item {
    const SgdUpdate* update;
    const LinearGradWeight* outer;  // null where the gradient lies in memory
  };
  Item items[kMostEntries];
  std::size_t count = 0, entries = 0;
  TensorId scale = kNoTensor;  // of every outer product
};

// Takes one item from the front of `nodes`; false where there is none that fits to those before it.
bool take_item(UpdateList& list, std::span<const Node>& nodes, const TensorTable& tensors) {
  const auto next = [&]() -> const Node* { return nodes.empty() ? nullptr : &nodes.front(); };
  const auto* const outer = std::get_if<LinearGradWeight>(next());
  TensorId gradient = kNoTensor, scale = kNoTensor;
  if (outer != nullptr) {
    nodes = nodes.subspan(1);
    gradient = outer->dw;
    if (const auto* const mul = std::get_if<Mul>(next())) {
      nodes = nodes.subspan(1);
      scale = factor_of(*mul, gradient, tensors);
      if (scale == kNoTensor) return false;
      gradient = mul->y;
    }
  }
  const auto* const update = std::get_if<SgdUpdate>(next());
  if (update == nullptr || list.count == kMostEntries) return false;
  nodes = nodes.subspan(1);
  if (outer != nullptr && (update->dp != gradient || !is_outer(*outer, tensors))) return false;
  if (outer != nullptr && list.entries > list.count && scale != list.scale) return false;
  const SgdUpdate& first = list.count == 0 ? *update : *list.items[0].update;
  list.items[list.count++] = {update, outer};
  list.entries += outer == nullptr ? 1 : 2;
  if (outer != nullptr) list.scale = scale;
  return list.entries <= kMostEntries && update->hyper == first.hyper && update->guard == first.guard;
}

std::optional<UpdateList> update_list(std::span<const Node> nodes, const TensorTable& tensors) {
  UpdateList list;
  while (!nodes.empty()) {
    if (!take_item(list, nodes, tensors)) return std::nullopt;
  }
  return list;
}

// An update, or the row of the outer product that is the gradient of the update behind it.
struct Entry {
  Place place;                                  // of the gradient, or of the outer product's column; of the row
  std::uint32_t velocity_base, parameter_base;  // both begin where their base does; kNowhere.base in a row
  Index end;                                    // elements of this update and of those before it; of the row
  bool is_row() const noexcept { return parameter_base == kNowhere.base; }
};

struct Updates {
  Place hyper, guard, scale;
  std::size_t count = 0;  // the last entry is an update
  Entry list[kMostEntries] = {};

  // Elements [begin, end) of all updates, of whose outer products the first is `outer`.
  void run(const Execution& e, const simd::OuterProduct* outer, Index begin, Index end) const noexcept {
    const simd::KernelTable& kernels = e.context->kernels();
    const float* const numbers = resolve<const float>(hyper, e.bases);
    const float factor = is_nowhere(scale) ? 1.0f : *resolve<const float>(scale, e.bases);
    Index first = 0;
    for (std::size_t i = 0; i < count; first = list[i++].end) {
      const bool is_outer = list[i].is_row();
      if (is_outer) ++i;
      const Entry& entry = list[i];
      const Index from = std::max(begin, first), to = std::min(end, entry.end), at = from - first;
      float* const v = resolve<float>({0, entry.velocity_base}, e.bases) + at;
      float* const p = resolve<float>({0, entry.parameter_base}, e.bases) + at;
      if (from < to && is_outer) {
        kernels.sgd_update_outer(*outer, at, to - from, factor, numbers[0], numbers[1], numbers[2], v, p);
      } else if (from < to) {
        const float* const gradient = resolve<const float>(entry.place, e.bases) + at;
        kernels.sgd_update(to - from, numbers[0], numbers[1], numbers[2], gradient, v, p);
      }
      outer += is_outer ? 1 : 0;
    }
  }
};

void run_updates(const Updates& u, const Execution& e) noexcept {
  if (!is_nowhere(u.guard) && *resolve<const std::int32_t>(u.guard, e.bases) == 0) return;
  simd::OuterProduct outer[kMostEntries / 2];
  std::size_t count = 0, used = 0;
  for (std::size_t i = 0; i < u.count; ++i) {
    if (!u.list[i].is_row()) continue;
    const ops::OuterProblem problem{1, u.list[i].end};
    outer[count++] = ops::prepare_outer(problem, resolve<const float>(u.list[i + 1].place, e.bases),
                                        resolve<const float>(u.list[i].place, e.bases), e.context->shared_scratch() + used);
    used += ops::outer_bytes(problem);
  }
  e.context->parallel_for(u.list[u.count - 1].end, 3, [&](Index begin, Index end, int) { u.run(e, outer, begin, end); });
}

BoundStep bind_outer_reader(const LinearGradWeight& outer, const SumSquares& n, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_sum_squares_outer(*e.context, c.problem, c.at(0, e), c.at(1, e), c.at_or_null(2, e), c.at(3, e));
  };
  const ops::OuterProblem problem = problem_of(outer, b);
  return b.step(run, problem, {ops::outer_bytes(problem), 0}, outer.x, outer.dy, n.previous, n.total);
}

BoundStep bind_outer_reader(const LinearGradWeight& outer, const AllFinite& n, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_all_finite_outer(c.problem, c.at(0, e), c.at(1, e), c.at_or_null(2, e), c.template at_or_null<std::int32_t>(3, e),
                              c.template at<std::int32_t>(4, e));
  };
  return b.step(run, problem_of(outer, b), {}, outer.x, outer.dy, n.total, n.previous, n.ok);
}

}  // namespace

bool are_updates(std::span<const Node> nodes, const TensorTable& tensors) { return update_list(nodes, tensors).has_value(); }

bool reads_outer(std::span<const Node> nodes, const TensorTable& tensors) {
  const auto* const outer = std::get_if<LinearGradWeight>(&nodes.front());
  if (outer == nullptr || nodes.size() != 2 || !is_outer(*outer, tensors)) return false;
  const auto* const squares = std::get_if<SumSquares>(&nodes.back());
  const auto* const finite = std::get_if<AllFinite>(&nodes.back());
  return squares != nullptr ? squares->x == outer->dw : finite != nullptr && finite->x == outer->dw;
}

BoundStep bind_updates(std::span<const Node> nodes, const Binder& b) {
  const UpdateList list = *update_list(nodes, b.tensors());
  const SgdUpdate& first = *list.items[0].update;
  Updates updates{b.place(first.hyper), b.place(first.guard), b.place(list.scale)};
  ScratchSize scratch;
  Index elements = 0;
  for (const UpdateList::Item& item : std::span(list.items, list.count)) {
    const SgdUpdate& n = *item.update;
    elements += b.shape(n.p).elements();
    Entry entry{b.place(n.dp), b.place(n.v).base, b.place(n.p).base, elements};
    if (item.outer != nullptr) {
      const ops::OuterProblem problem = problem_of(*item.outer, b);
      scratch.shared_bytes += ops::outer_bytes(problem);
      updates.list[updates.count++] = {b.place(item.outer->dy), kNowhere.base, kNowhere.base, problem.columns};
      entry.place = b.place(item.outer->x);
    }
    updates.list[updates.count++] = entry;
  }
  constexpr auto run = [](const Updates& u, const Execution& e) noexcept { run_updates(u, e); };
  return {Step::make(run, updates), scratch};
}

BoundStep bind_outer_reader(std::span<const Node> nodes, const Binder& b) {
  const auto& outer = *std::get_if<LinearGradWeight>(&nodes.front());
  if (const auto* const n = std::get_if<SumSquares>(&nodes.back())) return bind_outer_reader(outer, *n, b);
  return bind_outer_reader(outer, *std::get_if<AllFinite>(&nodes.back()), b);
}

}  // namespace vitro
