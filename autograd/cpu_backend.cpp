// SPDX-License-Identifier: Apache-2.0
// One bind overload for each node type: the problem's numbers, the scratch it needs, and the call of the operation.
#include "cpu_backend.hpp"

#include "../ops/bias.hpp"
#include "../ops/broadcast.hpp"
#include "../ops/cross_entropy.hpp"
#include "../ops/linear.hpp"
#include "../ops/relu.hpp"
#include "../ops/sgd.hpp"
#include "../ops/softmax.hpp"

namespace vitro {
namespace {

// What a step of kOperands tensors keeps: the context, the numbers of its problem, where the tensors lie.
template <class Problem, std::size_t kOperands>
struct Call {
  Context* context;
  Problem problem;
  Place places[kOperands];

  template <class T = float>
  T* at(std::size_t operand, Bases bases) const noexcept {
    return resolve<T>(places[operand], bases);
  }
};

// Where an operand lies; an absent one has a base that no tape reaches and is asked about with `absent`.
constexpr Place kAbsent{0, 0xFFFFFFFFU};
bool absent(Place place) noexcept { return place.base == kAbsent.base; }

// Makes the step that runs `function(call, bases)` on `problem` and the tensors named. Scratch is reserved here, once.
class Binder {
 public:
  Binder(Context& context, const TensorTable& tensors) : context_(context), tensors_(tensors) {}

  const Shape& shape(TensorId id) const noexcept { return tensors_.shape(id); }
  Context& context() const noexcept { return context_; }
  void reserve(const ScratchSize& size) const { context_.reserve_scratch(size); }

  template <class Function, class Problem, class... Ids>
  Step step(Function function, const Problem& problem, Ids... operands) const {
    return Step::make(function, Call<Problem, sizeof...(Ids)>{&context_, problem, {place(operands)...}});
  }

 private:
  Place place(TensorId id) const noexcept { return id == kNoTensor ? kAbsent : tensors_[id].place; }

  Context& context_;
  const TensorTable& tensors_;
};

ops::Epilogue bias_epilogue(Place bias, Bases bases) noexcept {
  ops::Epilogue epilogue;
  if (!absent(bias)) epilogue.bias = resolve<const float>(bias, bases);
  return epilogue;
}

Step bind(const Linear& n, const Binder& b) {
  const ops::LinearProblem problem = ops::linear_problem({}, b.shape(n.x), b.shape(n.w)).value();
  b.reserve(ops::linear_scratch(b.context(), problem));
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_linear(*c.context, c.problem, c.at(0, bases), c.at(1, bases), bias_epilogue(c.places[2], bases), c.at(3, bases));
  };
  return b.step(run, problem, n.x, n.w, n.bias, n.y);
}

Step bind(const LinearGradInput& n, const Binder& b) {
  const ops::LinearProblem problem = ops::linear_problem({}, b.shape(n.dx), b.shape(n.w)).value();
  b.reserve(ops::linear_grad_input_scratch(b.context(), problem));
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_linear_grad_input(*c.context, c.problem, c.at(0, bases), c.at(1, bases), c.at(2, bases));
  };
  return b.step(run, problem, n.dy, n.w, n.dx);
}

Step bind(const LinearGradWeight& n, const Binder& b) {
  const ops::LinearProblem problem = ops::linear_problem({}, b.shape(n.x), b.shape(n.dw)).value();
  b.reserve(ops::linear_grad_weight_scratch(b.context(), problem));
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_linear_grad_weight(*c.context, c.problem, c.at(0, bases), c.at(1, bases), c.at(2, bases));
  };
  return b.step(run, problem, n.x, n.dy, n.dw);
}

Step bind(const Conv2d& n, const Binder& b) {
  const ops::Conv2dProblem problem = ops::conv2d_problem(n.attrs, b.shape(n.x), b.shape(n.w)).value();
  b.reserve(ops::conv2d_scratch(b.context(), problem));
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_conv2d(*c.context, c.problem, c.at(0, bases), c.at(1, bases), bias_epilogue(c.places[2], bases), c.at(3, bases));
  };
  return b.step(run, problem, n.x, n.w, n.bias, n.y);
}

Step bind(const Conv2dGradInput& n, const Binder& b) {
  const ops::Conv2dProblem problem = ops::conv2d_problem(n.attrs, b.shape(n.dx), b.shape(n.w)).value();
  b.reserve(ops::conv2d_grad_input_scratch(b.context(), problem));
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_conv2d_grad_input(*c.context, c.problem, c.at(0, bases), c.at(1, bases), c.at(2, bases));
  };
  return b.step(run, problem, n.dy, n.w, n.dx);
}

Step bind(const Conv2dGradWeight& n, const Binder& b) {
  const ops::Conv2dProblem problem = ops::conv2d_problem(n.attrs, b.shape(n.x), b.shape(n.dw)).value();
  b.reserve(ops::conv2d_grad_weight_scratch(b.context(), problem));
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_conv2d_grad_weight(*c.context, c.problem, c.at(0, bases), c.at(1, bases), c.at(2, bases));
  };
  return b.step(run, problem, n.x, n.dy, n.dw);
}

Step bind(const AddBias& n, const Binder& b) {
  const ops::BiasProblem problem = ops::bias_problem({}, b.shape(n.x), b.shape(n.bias)).value();
  b.reserve(ops::bias_scratch(b.context(), problem));
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_bias(*c.context, c.problem, c.at(0, bases), c.at(1, bases), c.at(2, bases));
  };
  return b.step(run, problem, n.x, n.bias, n.y);
}

Step bind(const BiasGrad& n, const Binder& b) {
  const ops::BiasProblem problem = ops::bias_problem({}, b.shape(n.dy), b.shape(n.db)).value();
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_bias_grad(*c.context, c.problem, c.at(0, bases), c.at(1, bases));
  };
  return b.step(run, problem, n.dy, n.db);
}

Step bind(const Relu& n, const Binder& b) {
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_relu(*c.context, c.problem, c.at(0, bases), c.at(1, bases));
  };
  return b.step(run, ops::relu_problem({}, b.shape(n.x)).value(), n.x, n.y);
}

Step bind(const ReluGrad& n, const Binder& b) {
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_relu_grad(*c.context, c.problem, c.at(0, bases), c.at(1, bases), c.at(2, bases));
  };
  return b.step(run, ops::relu_problem({}, b.shape(n.y)).value(), n.y, n.dy, n.dx);
}

Step bind(const MaxPool2d& n, const Binder& b) {
  const ops::Pool2dProblem problem = ops::max_pool2d_problem(n.attrs, b.shape(n.x)).value();
  b.reserve(ops::pool2d_scratch(b.context(), problem));
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_max_pool2d(*c.context, c.problem, c.at(0, bases), c.at(1, bases), c.template at<std::byte>(2, bases));
  };
  return b.step(run, problem, n.x, n.y, n.argmax);
}

Step bind(const MaxPool2dGrad& n, const Binder& b) {
  const ops::Pool2dProblem problem = ops::max_pool2d_problem(n.attrs, b.shape(n.dx)).value();
  b.reserve(ops::pool2d_scratch(b.context(), problem));
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_max_pool2d_grad(*c.context, c.problem, c.template at<std::byte>(0, bases), c.at(1, bases), c.at(2, bases));
  };
  return b.step(run, problem, n.argmax, n.dy, n.dx);
}

Step bind(const AveragePool2d& n, const Binder& b) {
  const ops::Pool2dProblem problem = ops::average_pool2d_problem(n.attrs, b.shape(n.x)).value();
  b.reserve(ops::pool2d_scratch(b.context(), problem));
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_average_pool2d(*c.context, c.problem, c.at(0, bases), c.at(1, bases));
  };
  return b.step(run, problem, n.x, n.y);
}

Step bind(const AveragePool2dGrad& n, const Binder& b) {
  const ops::Pool2dProblem problem = ops::average_pool2d_problem(n.attrs, b.shape(n.dx)).value();
  b.reserve(ops::pool2d_scratch(b.context(), problem));
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_average_pool2d_grad(*c.context, c.problem, c.at(0, bases), c.at(1, bases));
  };
  return b.step(run, problem, n.dy, n.dx);
}

Step bind(const Softmax& n, const Binder& b) {
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_softmax(*c.context, c.problem, c.at(0, bases), c.at(1, bases));
  };
  return b.step(run, ops::softmax_problem({}, b.shape(n.x)).value(), n.x, n.y);
}

Step bind(const SoftmaxGrad& n, const Binder& b) {
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_softmax_grad(*c.context, c.problem, c.at(0, bases), c.at(1, bases), c.at(2, bases));
  };
  return b.step(run, ops::softmax_problem({}, b.shape(n.y)).value(), n.y, n.dy, n.dx);
}

Step bind(const LogSoftmax& n, const Binder& b) {
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_log_softmax(*c.context, c.problem, c.at(0, bases), c.at(1, bases));
  };
  return b.step(run, ops::softmax_problem({}, b.shape(n.x)).value(), n.x, n.y);
}

Step bind(const LogSoftmaxGrad& n, const Binder& b) {
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_log_softmax_grad(*c.context, c.problem, c.at(0, bases), c.at(1, bases), c.at(2, bases));
  };
  return b.step(run, ops::softmax_problem({}, b.shape(n.y)).value(), n.y, n.dy, n.dx);
}

Step bind(const CrossEntropy& n, const Binder& b) {
  const ops::CrossEntropyProblem problem = ops::cross_entropy_problem({}, b.shape(n.logits), b.shape(n.labels)).value();
  b.reserve(ops::cross_entropy_scratch(b.context(), problem));
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_cross_entropy(*c.context, c.problem, c.at(0, bases), c.template at<std::int32_t>(1, bases), c.at(2, bases),
                           c.at(3, bases));
  };
  return b.step(run, problem, n.logits, n.labels, n.loss, n.probabilities);
}

Step bind(const CrossEntropyGrad& n, const Binder& b) {
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_cross_entropy_grad(*c.context, c.problem, c.at(0, bases), c.template at<std::int32_t>(1, bases), c.at(2, bases),
                                c.at(3, bases));
  };
  return b.step(run, ops::cross_entropy_problem({}, b.shape(n.probabilities), b.shape(n.labels)).value(), n.probabilities,
                n.labels, n.dloss, n.dlogits);
}

Step bind_binary(ops::BinaryOp op, TensorId a, TensorId other, TensorId y, const Binder& b) {
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_binary(*c.context, c.problem, c.at(0, bases), c.at(1, bases), c.at(2, bases));
  };
  return b.step(run, ops::binary_problem({op}, b.shape(a), b.shape(other)).value(), a, other, y);
}

Step bind(const Add& n, const Binder& b) { return bind_binary(ops::BinaryOp::add, n.a, n.b, n.y, b); }
Step bind(const Mul& n, const Binder& b) { return bind_binary(ops::BinaryOp::mul, n.a, n.b, n.y, b); }

Step bind(const SumTo& n, const Binder& b) {
  const ops::SumToShapeProblem problem = ops::sum_to_shape_problem(b.shape(n.x), b.shape(n.y)).value();
  b.reserve(ops::sum_to_shape_scratch(b.context(), problem));
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_sum_to_shape(*c.context, c.problem, c.at(0, bases), c.at(1, bases));
  };
  return b.step(run, problem, n.x, n.y);
}

Step bind(const Reshape&, const Binder&) { return {}; }

Step bind_copy(const ops::CopyProblem& problem, TensorId x, TensorId y, const Binder& b) {
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_copy(*c.context, c.problem, c.at(0, bases), c.at(1, bases));
  };
  return b.step(run, problem, x, y);
}

Step bind(const Broadcast& n, const Binder& b) {
  return bind_copy(ops::copy_problem(Layout::contiguous(b.shape(n.x)).broadcast_to(b.shape(n.y))), n.x, n.y, b);
}

Step bind(const Permute& n, const Binder& b) {
  return bind_copy(ops::permute_problem(n.attrs, b.shape(n.x)).value(), n.x, n.y, b);
}

struct FillProblem {
  Index count;
  float value;
};

Step bind(const Fill& n, const Binder& b) {
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_fill(*c.context, c.problem.count, c.problem.value, c.at(0, bases));
  };
  return b.step(run, FillProblem{b.shape(n.y).elements(), n.value}, n.y);
}

Step bind(const SgdUpdate& n, const Binder& b) {
  constexpr auto run = [](const auto& c, Bases bases) noexcept {
    ops::run_sgd(*c.context, c.problem, c.at(0, bases), c.at(1, bases), c.at(2, bases), c.at(3, bases));
  };
  const ops::SgdProblem problem = ops::sgd_problem({}, b.shape(n.hyper), b.shape(n.dp), b.shape(n.v), b.shape(n.p)).value();
  return b.step(run, problem, n.hyper, n.dp, n.v, n.p);
}

}  // namespace

Result<Step> CpuBackend::try_bind(const Node& node, const TensorTable& tensors) {
  const Binder binder(context_, tensors);
  return std::visit([&](const auto& n) { return bind(n, binder); }, node);
}

}  // namespace vitro
