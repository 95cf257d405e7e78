// SPDX-License-Identifier: Apache-2.0
// One bind overload for each node type: the problem's numbers, the scratch it needs, and the call of the operation.
#include "cpu_backend.hpp"

#include "../ops/bias.hpp"
#include "../ops/broadcast.hpp"
#include "../ops/cross_entropy.hpp"
#include "../ops/linear.hpp"
#include "../ops/metrics.hpp"
#include "../ops/norm.hpp"
#include "../ops/pixels.hpp"
#include "../ops/relu.hpp"
#include "../ops/softmax.hpp"
#include "cpu_binder.hpp"

namespace vitro {
namespace {

BoundStep bind(const Linear& n, const Binder& b) { return bind_product(n, {}, b); }
BoundStep bind(const Conv2d& n, const Binder& b) { return bind_product(n, {}, b); }

BoundStep bind(const LinearGradInput& n, const Binder& b) {
  const ops::LinearProblem problem = ops::linear_problem({}, b.shape(n.dx), b.shape(n.w)).value();
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_linear_grad_input(*e.context, c.problem, c.at(0, e), c.at(1, e), c.at(2, e));
  };
  return b.step(run, problem, ops::linear_grad_input_scratch(b.context(), problem), n.dy, n.w, n.dx);
}

BoundStep bind(const LinearGradWeight& n, const Binder& b) {
  const ops::LinearProblem problem = ops::linear_problem({}, b.shape(n.x), b.shape(n.dw)).value();
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_linear_grad_weight(*e.context, c.problem, c.at(0, e), c.at(1, e), c.at(2, e));
  };
  return b.step(run, problem, ops::linear_grad_weight_scratch(b.context(), problem), n.x, n.dy, n.dw);
}

BoundStep bind(const Conv2dGradInput& n, const Binder& b) {
  const ops::Conv2dProblem problem = ops::conv2d_problem(n.attrs, b.shape(n.dx), b.shape(n.w)).value();
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_conv2d_grad_input(*e.context, c.problem, c.at(0, e), c.at(1, e), c.at(2, e));
  };
  return b.step(run, problem, ops::conv2d_grad_input_scratch(b.context(), problem), n.dy, n.w, n.dx);
}

BoundStep bind(const Conv2dGradWeight& n, const Binder& b) {
  const ops::Conv2dProblem problem = ops::conv2d_problem(n.attrs, b.shape(n.x), b.shape(n.dw)).value();
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_conv2d_grad_weight(*e.context, c.problem, c.at(0, e), c.at(1, e), c.at(2, e));
  };
  return b.step(run, problem, ops::conv2d_grad_weight_scratch(b.context(), problem), n.x, n.dy, n.dw);
}

BoundStep bind(const AddBias& n, const Binder& b) {
  const ops::BiasProblem problem = ops::bias_problem({}, b.shape(n.x), b.shape(n.bias)).value();
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_bias(*e.context, c.problem, c.at(0, e), c.at(1, e), c.at(2, e));
  };
  return b.step(run, problem, ops::bias_scratch(b.context(), problem), n.x, n.bias, n.y);
}

BoundStep bind(const BiasGrad& n, const Binder& b) {
  const ops::BiasProblem problem = ops::bias_problem({}, b.shape(n.dy), b.shape(n.db)).value();
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_bias_grad(*e.context, c.problem, c.at(0, e), c.at(1, e));
  };
  return b.step(run, problem, ops::bias_grad_scratch(b.context(), problem), n.dy, n.db);
}

BoundStep bind(const Relu& n, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_relu(*e.context, c.problem, c.at(0, e), c.at(1, e));
  };
  return b.step(run, ops::relu_problem({}, b.shape(n.x)).value(), {}, n.x, n.y);
}

BoundStep bind(const ReluGrad& n, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_relu_grad(*e.context, c.problem, c.at(0, e), c.at(1, e), c.at(2, e));
  };
  return b.step(run, ops::relu_problem({}, b.shape(n.y)).value(), {}, n.y, n.dy, n.dx);
}

BoundStep bind(const MaxPool2d& n, const Binder& b) {
  const ops::Pool2dProblem problem = ops::max_pool2d_problem(n.attrs, b.shape(n.x)).value();
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_max_pool2d(*e.context, c.problem, c.at(0, e), c.at(1, e), c.template at_or_null<std::byte>(2, e));
  };
  return b.step(run, problem, ops::pool2d_scratch(b.context(), problem), n.x, n.y, n.argmax);
}

BoundStep bind(const MaxPool2dGrad& n, const Binder& b) {
  const ops::Pool2dProblem problem = ops::max_pool2d_problem(n.attrs, b.shape(n.dx)).value();
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_max_pool2d_grad(*e.context, c.problem, c.template at<std::byte>(0, e), c.at(1, e), c.at(2, e));
  };
  return b.step(run, problem, ops::pool2d_scratch(b.context(), problem), n.argmax, n.dy, n.dx);
}

BoundStep bind(const AveragePool2d& n, const Binder& b) {
  const ops::Pool2dProblem problem = ops::average_pool2d_problem(n.attrs, b.shape(n.x)).value();
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_average_pool2d(*e.context, c.problem, c.at(0, e), c.at(1, e));
  };
  return b.step(run, problem, ops::pool2d_scratch(b.context(), problem), n.x, n.y);
}

BoundStep bind(const AveragePool2dGrad& n, const Binder& b) {
  const ops::Pool2dProblem problem = ops::average_pool2d_problem(n.attrs, b.shape(n.dx)).value();
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_average_pool2d_grad(*e.context, c.problem, c.at(0, e), c.at(1, e));
  };
  return b.step(run, problem, ops::pool2d_scratch(b.context(), problem), n.dy, n.dx);
}

BoundStep bind(const Softmax& n, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_softmax(*e.context, c.problem, c.at(0, e), c.at(1, e));
  };
  return b.step(run, ops::softmax_problem({}, b.shape(n.x)).value(), {}, n.x, n.y);
}

BoundStep bind(const SoftmaxGrad& n, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_softmax_grad(*e.context, c.problem, c.at(0, e), c.at(1, e), c.at(2, e));
  };
  return b.step(run, ops::softmax_problem({}, b.shape(n.y)).value(), {}, n.y, n.dy, n.dx);
}

BoundStep bind(const LogSoftmax& n, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_log_softmax(*e.context, c.problem, c.at(0, e), c.at(1, e));
  };
  return b.step(run, ops::softmax_problem({}, b.shape(n.x)).value(), {}, n.x, n.y);
}

BoundStep bind(const LogSoftmaxGrad& n, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_log_softmax_grad(*e.context, c.problem, c.at(0, e), c.at(1, e), c.at(2, e));
  };
  return b.step(run, ops::softmax_problem({}, b.shape(n.y)).value(), {}, n.y, n.dy, n.dx);
}

BoundStep bind(const CrossEntropy& n, const Binder& b) {
  const ops::CrossEntropyProblem problem = ops::cross_entropy_problem({}, b.shape(n.logits), b.shape(n.labels)).value();
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_cross_entropy(*e.context, c.problem, c.at(0, e), c.template at<std::int32_t>(1, e), c.at(2, e), c.at(3, e));
  };
  return b.step(run, problem, ops::cross_entropy_scratch(b.context(), problem), n.logits, n.labels, n.loss, n.probabilities);
}

BoundStep bind(const CrossEntropyGrad& n, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_cross_entropy_grad(*e.context, c.problem, c.at(0, e), c.template at<std::int32_t>(1, e), c.at(2, e), c.at(3, e));
  };
  return b.step(run, ops::cross_entropy_problem({}, b.shape(n.probabilities), b.shape(n.labels)).value(), {}, n.probabilities,
                n.labels, n.dloss, n.dlogits);
}

BoundStep bind_binary(ops::BinaryOp op, TensorId a, TensorId other, TensorId y, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_binary(*e.context, c.problem, c.at(0, e), c.at(1, e), c.at(2, e));
  };
  return b.step(run, ops::binary_problem({op}, b.shape(a), b.shape(other)).value(), {}, a, other, y);
}

BoundStep bind(const Add& n, const Binder& b) { return bind_binary(ops::BinaryOp::add, n.a, n.b, n.y, b); }
BoundStep bind(const Mul& n, const Binder& b) { return bind_binary(ops::BinaryOp::mul, n.a, n.b, n.y, b); }

BoundStep bind(const SumTo& n, const Binder& b) {
  const ops::SumToShapeProblem problem = ops::sum_to_shape_problem(b.shape(n.x), b.shape(n.y)).value();
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_sum_to_shape(*e.context, c.problem, c.at(0, e), c.at(1, e));
  };
  return b.step(run, problem, ops::sum_to_shape_scratch(b.context(), problem), n.x, n.y);
}

BoundStep bind(const Reshape&, const Binder&) { return {}; }

BoundStep bind_copy(const ops::CopyProblem& problem, TensorId x, TensorId y, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_copy(*e.context, c.problem, c.at(0, e), c.at(1, e));
  };
  return b.step(run, problem, {}, x, y);
}

BoundStep bind(const Broadcast& n, const Binder& b) {
  return bind_copy(ops::copy_problem(Layout::contiguous(b.shape(n.x)).broadcast_to(b.shape(n.y))), n.x, n.y, b);
}

BoundStep bind(const Permute& n, const Binder& b) {
  return bind_copy(ops::permute_problem(n.attrs, b.shape(n.x)).value(), n.x, n.y, b);
}

struct FillProblem {
  Index count;
  float value;
};

BoundStep bind(const Fill& n, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_fill(*e.context, c.problem.count, c.problem.value, c.at(0, e));
  };
  return b.step(run, FillProblem{b.shape(n.y).elements(), n.value}, {}, n.y);
}

struct Count {
  Index count;
};

BoundStep bind(const BytesToUnit& n, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_bytes_to_unit(*e.context, c.problem.count, c.template at<std::uint8_t>(0, e), c.at(1, e));
  };
  return b.step(run, Count{b.shape(n.x).elements()}, {}, n.x, n.y);
}

BoundStep bind(const Dropout& n, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_dropout(*e.context, c.problem, c.at(0, e), c.template at<std::int32_t>(1, e), c.at(2, e));
  };
  return b.step(run, ops::DropoutProblem{b.shape(n.x).elements(), n.attrs}, {}, n.x, n.step, n.y);
}

BoundStep bind(const SumSquares& n, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_sum_squares(*e.context, c.problem.count, c.at(0, e), c.at_or_null(1, e), c.at(2, e));
  };
  return b.step(run, Count{b.shape(n.x).elements()}, {}, n.x, n.previous, n.total);
}

BoundStep bind(const AllFinite& n, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_all_finite(c.problem.count, c.at(0, e), c.at_or_null(1, e), c.template at_or_null<std::int32_t>(2, e),
                        c.template at<std::int32_t>(3, e));
  };
  return b.step(run, Count{b.shape(n.x).elements()}, {}, n.x, n.total, n.previous, n.ok);
}

BoundStep bind(const ClipFactor& n, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    ops::run_clip_factor(c.at(0, e), c.at(1, e), c.at(2, e));
  };
  return b.step(run, Count{}, {}, n.total, n.max_norm, n.factor);
}

BoundStep bind(const CountCorrect& n, const Binder& b) {
  constexpr auto run = [](const auto& c, const Execution& e) noexcept {
    *c.template at<std::int32_t>(2, e) =
        static_cast<std::int32_t>(ops::run_count_correct(c.problem, c.at(0, e), c.template at<std::int32_t>(1, e)));
  };
  return b.step(run, ops::predict_problem(b.shape(n.scores)).value(), {}, n.scores, n.labels, n.correct);
}

BoundStep bind(const SgdUpdate& n, const Binder& b) {
  const Node node = n;
  return bind_updates({&node, 1}, b);
}

}  // namespace

Result<BoundStep> CpuBackend::try_bind(std::span<const Node> nodes, const TensorTable& tensors) {
  const Binder binder(context_, tensors);
  if (nodes.size() > 1) return bind_fused(nodes, binder);
  return std::visit([&](const auto& n) { return bind(n, binder); }, nodes.front());
}

bool CpuBackend::fuses(std::span<const Node> nodes, const TensorTable& tensors) const { return cpu_fuses(nodes, tensors); }

std::optional<Packing> CpuBackend::packing(const Node& node, const TensorTable& tensors) {
  return pack_product(node, Binder(context_, tensors));
}

bool Backend::fuses(std::span<const Node> nodes, const TensorTable&) const { return nodes.size() == 1; }
std::optional<Packing> Backend::packing(const Node&, const TensorTable&) { return std::nullopt; }

}  // namespace vitro
