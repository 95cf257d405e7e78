// SPDX-License-Identifier: Apache-2.0
// Compares every operation, forward and gradients, with PyTorch's double-precision results for drawn configurations.
#include "../../ops/bias.hpp"
#include "../../ops/broadcast.hpp"
#include "../../ops/conv2d.hpp"
#include "../../ops/cross_entropy.hpp"
#include "../../ops/layout.hpp"
#include "../../ops/linear.hpp"
#include "../../ops/pool2d.hpp"
#include "../../ops/relu.hpp"
#include "../../ops/sgd.hpp"
#include "../../ops/softmax.hpp"
#include "../golden/golden_file.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace vitro;
using golden::Case;
using golden::Reference;

const golden::File& file() {
  static const golden::File ops("ops");
  return ops;
}

// One case being checked: computes into tensors of the reference's shape and keeps the worst distance seen.
class Checker {
 public:
  Context context;

  void begin(const Case& test) { test_ = &test; }
  Reference reference(const char* name) const { return test_->reference(name); }

  void check(const char* name, ConstTensorView ours) {
    const double distance = golden::distance(ours, test_->reference(name));
    INFO(test_->describe() << ": " << name << " is off by " << distance << " of the reference's largest magnitude");
    CHECK(distance <= golden::kTolerance);
    if (distance >= worst_) {
      worst_ = distance;
      worst_name_ = test_->describe() + ", " + name;
    }
  }
  void summary(const char* op, int cases) const {
    std::printf("golden %-13s %3d cases, largest distance %.2e in %s\n", op, cases, worst_, worst_name_.c_str());
  }

 private:
  const Case* test_ = nullptr;
  double worst_ = 0;
  std::string worst_name_ = "none";
};

template <class Check>
void for_each_case(const char* op, Check check_case) {
  Checker checker;
  int cases = 0;
  for (const Case& test : file().cases()) {
    if (test.op() != op) continue;
    ++cases;
    checker.begin(test);
    check_case(checker, test);
  }
  CHECK(cases >= 10);
  checker.summary(op, cases);
}

std::uint16_t number(const Case& test, const char* attribute, std::size_t index) {
  return test.attrs().at(attribute).at(index).get<std::uint16_t>();
}

ops::Pool2dAttrs pool_attrs(const Case& test) {
  ops::Pool2dAttrs attrs;
  attrs.kernel_h = number(test, "kernel", 0);
  attrs.kernel_w = number(test, "kernel", 1);
  attrs.stride_h = number(test, "stride", 0);
  attrs.stride_w = number(test, "stride", 1);
  attrs.pad_top = number(test, "padding", 0);
  attrs.pad_left = number(test, "padding", 1);
  attrs.pad_bottom = number(test, "padding", 2);
  attrs.pad_right = number(test, "padding", 3);
  attrs.ceil_mode = test.attrs().at("ceil_mode").get<bool>();
  return attrs;
}

// The stored tensor seen through the permutation that the case names.
ConstTensorView permuted(const Tensor& stored, const Case& test, const char* attribute) {
  const std::vector<int> order = test.attrs().at(attribute);
  const ConstTensorView view = stored.view();
  return ConstTensorView(view.data(), view.layout().permute(order));
}

}  // namespace

TEST_CASE("the golden file holds several hundred cases and no operation that is not compared") {
  const std::set<std::string> compared = {"conv2d",      "linear",        "max_pool2d", "avg_pool2d", "relu",    "softmax",
                                          "log_softmax", "cross_entropy", "add",        "mul",        "permute", "sgd_update"};
  CHECK(file().cases().size() >= 400);
  std::set<std::string> found;
  for (const Case& test : file().cases()) found.insert(test.op());
  CHECK(found == compared);
}

TEST_CASE("convolution agrees with PyTorch") {
  for_each_case("conv2d", [](Checker& checker, const Case& test) {
    ops::Conv2dAttrs attrs;
    attrs.stride_h = number(test, "stride", 0);
    attrs.stride_w = number(test, "stride", 1);
    attrs.dilation_h = number(test, "dilation", 0);
    attrs.dilation_w = number(test, "dilation", 1);
    attrs.pad_top = number(test, "padding", 0);
    attrs.pad_left = number(test, "padding", 1);
    attrs.pad_bottom = number(test, "padding", 2);
    attrs.pad_right = number(test, "padding", 3);
    attrs.groups = test.attrs().at("groups").get<std::uint16_t>();
    const Tensor x = test.input("x"), w = test.input("w"), b = test.input("b"), dy = test.input("dy");

    Tensor y(dy.shape()), dx(x.shape()), dw(w.shape()), db(b.shape());
    ops::EpilogueViews epilogue;
    epilogue.bias = b.view();
    ops::conv2d(checker.context, attrs, x, w, y, epilogue);
    checker.check("y", y);
    ops::conv2d_grad_input(checker.context, attrs, dy, w, dx);
    checker.check("dx", dx);
    ops::conv2d_grad_weight(checker.context, attrs, x, dy, dw);
    checker.check("dw", dw);
    ops::bias_grad(checker.context, {}, dy, db);
    checker.check("db", db);
  });
}

TEST_CASE("a linear layer agrees with PyTorch") {
  for_each_case("linear", [](Checker& checker, const Case& test) {
    const Tensor x = test.input("x"), w = test.input("w"), b = test.input("b"), dy = test.input("dy");
    Tensor product(dy.shape()), y(dy.shape()), dx(x.shape()), dw(w.shape()), db(b.shape());
    ops::linear(checker.context, {}, x, w, product);
    ops::bias(checker.context, {}, product, b, y);
    checker.check("y", y);
    ops::linear_grad_input(checker.context, {}, dy, w, dx);
    checker.check("dx", dx);
    ops::linear_grad_weight(checker.context, {}, x, dy, dw);
    checker.check("dw", dw);
    ops::bias_grad(checker.context, {}, dy, db);
    checker.check("db", db);
  });
}

TEST_CASE("max pooling agrees with PyTorch") {
  for_each_case("max_pool2d", [](Checker& checker, const Case& test) {
    const Tensor x = test.input("x"), dy = test.input("dy");
    Tensor y(dy.shape()), dx(x.shape());
    BasicTensor<std::uint8_t> argmax(dy.shape());
    ops::max_pool2d(checker.context, pool_attrs(test), x, y, argmax.view());
    checker.check("y", y);
    ops::max_pool2d_grad(checker.context, pool_attrs(test), BasicView<const std::uint8_t>(argmax.view()), dy, dx);
    checker.check("dx", dx);
  });
}

TEST_CASE("average pooling agrees with PyTorch for every divisor") {
  for_each_case("avg_pool2d", [](Checker& checker, const Case& test) {
    ops::Pool2dAttrs attrs = pool_attrs(test);
    const std::string divisor = test.attrs().at("divisor");
    if (divisor == "padded") attrs.divisor = ops::AverageDivisor::padded;
    if (divisor == "window") attrs.divisor = ops::AverageDivisor::window;
    const Tensor x = test.input("x"), dy = test.input("dy");
    Tensor y(dy.shape()), dx(x.shape());
    ops::average_pool2d(checker.context, attrs, x, y);
    checker.check("y", y);
    ops::average_pool2d_grad(checker.context, attrs, dy, dx);
    checker.check("dx", dx);
  });
}

TEST_CASE("ReLU agrees with PyTorch") {
  for_each_case("relu", [](Checker& checker, const Case& test) {
    const Tensor x = test.input("x"), dy = test.input("dy");
    Tensor y(x.shape()), dx(x.shape());
    ops::relu(checker.context, {}, x, y);
    checker.check("y", y);
    ops::relu_grad(checker.context, {}, y, dy, dx);
    checker.check("dx", dx);
  });
}

TEST_CASE("softmax agrees with PyTorch") {
  for_each_case("softmax", [](Checker& checker, const Case& test) {
    const Tensor x = test.input("x"), dy = test.input("dy");
    Tensor y(x.shape()), dx(x.shape());
    ops::softmax(checker.context, {}, x, y);
    checker.check("y", y);
    ops::softmax_grad(checker.context, {}, y, dy, dx);
    checker.check("dx", dx);
  });
}

TEST_CASE("log-softmax agrees with PyTorch") {
  for_each_case("log_softmax", [](Checker& checker, const Case& test) {
    const Tensor x = test.input("x"), dy = test.input("dy");
    Tensor y(x.shape()), dx(x.shape());
    ops::log_softmax(checker.context, {}, x, y);
    checker.check("y", y);
    ops::log_softmax_grad(checker.context, {}, y, dy, dx);
    checker.check("dx", dx);
  });
}

TEST_CASE("cross-entropy agrees with PyTorch") {
  for_each_case("cross_entropy", [](Checker& checker, const Case& test) {
    const Tensor x = test.input("x");
    const LabelTensor labels = test.labels("labels");
    Tensor loss{Shape{}}, probabilities(x.shape()), dloss{Shape{}}, dx(x.shape());
    ops::cross_entropy(checker.context, {}, x, labels, loss, probabilities);
    checker.check("loss", loss);
    dloss.span()[0] = 1;
    ops::cross_entropy_grad(checker.context, {}, probabilities, labels, dloss, dx);
    checker.check("dx", dx);
  });
}

TEST_CASE("broadcasting sums and products of permuted views agree with PyTorch") {
  for (const char* op : {"add", "mul"}) {
    for_each_case(op, [op](Checker& checker, const Case& test) {
      const bool product = op == std::string("mul");
      const ops::BinaryAttrs attrs{product ? ops::BinaryOp::mul : ops::BinaryOp::add};
      const Tensor stored_a = test.input("a"), stored_b = test.input("b"), dy = test.input("dy");
      const ConstTensorView a = permuted(stored_a, test, "a_order"), b = permuted(stored_b, test, "b_order");
      Tensor y(dy.shape()), through_a(dy), through_b(dy), da(a.shape()), db(b.shape());
      ops::binary(checker.context, attrs, a, b, y);
      checker.check("y", y);
      if (product) {
        ops::mul(checker.context, dy, b, through_a);
        ops::mul(checker.context, dy, a, through_b);
      }
      ops::sum_to_shape(checker.context, through_a, da);
      checker.check("da", da);
      ops::sum_to_shape(checker.context, through_b, db);
      checker.check("db", db);
    });
  }
}

TEST_CASE("permute agrees with PyTorch") {
  for_each_case("permute", [](Checker& checker, const Case& test) {
    const std::vector<std::uint8_t> order = test.attrs().at("order");
    ops::PermuteAttrs attrs;
    std::copy(order.begin(), order.end(), attrs.order.begin());
    attrs.rank = static_cast<std::uint8_t>(order.size());
    const Tensor x = test.input("x"), dy = test.input("dy");
    Tensor y(dy.shape()), dx(x.shape());
    ops::permute(checker.context, attrs, x, y);
    checker.check("y", y);
    ops::permute(checker.context, ops::inverse(attrs), dy, dx);
    checker.check("dx", dx);
  });
}

TEST_CASE("three steps of SGD with momentum and weight decay agree with PyTorch") {
  for_each_case("sgd_update", [](Checker& checker, const Case& test) {
    Tensor p = test.input("p");
    const Tensor steps = test.input("g"), hyper = test.input("hyper");
    Tensor velocity(p.shape());
    for (Index step = 0; step < steps.shape()[0]; ++step) {
      const Tensor gradient = contiguous(steps.view().slice(0, step, step + 1).reshape(p.shape()));
      ops::sgd(checker.context, {}, hyper, gradient, velocity, p);
    }
    checker.check("p_after", p);
  });
}
