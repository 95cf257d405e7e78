// SPDX-License-Identifier: Apache-2.0
// Which nodes become one step, which must not, and the ReLU gradient that moves past a pool's.
#include "../../autograd/cpu_backend.hpp"
#include "../../autograd/graph.hpp"
#include "../ops/support.hpp"

#include <vitro/autograd/functions.hpp>
#include <vitro/autograd/replay.hpp>

using namespace vitro;
using namespace vitro_test;

namespace {

using Names = std::vector<std::string>;

// The steps that the nodes of a tape are cut into, such as "linear+relu".
Names steps_of(Graph graph) {
  Context context;
  CpuBackend backend(context);
  REQUIRE(check_graph(graph).ok());
  REQUIRE(remove_dead_nodes(graph).ok());
  move_relu_grads(graph);
  recompute_gradients(graph, backend);
  cut_into_steps(graph, backend, true);
  Names names;
  for (std::size_t i = 0; i < graph.ends.size(); ++i) {
    std::string step;
    for (const Node& node : graph.step(i)) step += (step.empty() ? "" : "+") + std::string(name(node));
    names.push_back(step);
  }
  return names;
}

// A tape with a product y[2, 4] on it, and operands for what may follow.
struct Product {
  Context context;
  Tape tape{context, TapeMode::record};
  Tensor weights{{3, 4}}, bias_memory{{4}}, state_memory{{4}}, state2_memory{{4}};
  Var x = tape.placeholder({2, 3});
  Var w = tape.parameter(weights), b = tape.parameter(bias_memory);
  Var residual = tape.placeholder({2, 4}), hyper = tape.placeholder({3});
  Var y = linear(x, w);

  Names steps(const std::vector<Var>& outputs) const {
    Graph graph{tape.nodes(), tape.tensors(), {}, {}};
    for (const Var output : outputs) graph.outputs.push_back(output.id);
    return steps_of(graph);
  }
};

}  // namespace

TEST_CASE("A product takes along bias, residual and ReLU, in this order and each at most once") {
  const auto check = [](const Names& expected, Var (*follow)(Product&)) {
    Product p;
    CHECK(p.steps({follow(p)}) == expected);
  };
  check({"linear+add_bias+add+relu"}, [](Product& p) { return relu(add(add_bias(p.y, p.b), p.residual)); });
  check({"linear+add+relu"}, [](Product& p) { return relu(add(p.residual, p.y)); });
  check({"linear+relu"}, [](Product& p) { return relu(linear(p.x, p.w, p.b)); });
  check({"linear+add", "add_bias"}, [](Product& p) { return add_bias(add(p.y, p.residual), p.b); });
  check({"linear+relu", "add_bias"}, [](Product& p) { return add_bias(relu(p.y), p.b); });
  check({"linear+relu", "relu"}, [](Product& p) { return relu(relu(p.y)); });
  check({"linear+relu", "add"}, [](Product& p) { return add(relu(p.y), p.residual); });
  check({"linear", "add_bias"}, [](Product& p) { return add_bias(linear(p.x, p.w, p.b), p.b); });
  check({"linear+add", "add"}, [](Product& p) { return add(add(p.y, p.residual), p.residual); });
  check({"linear", "mul"}, [](Product& p) { return mul(p.y, p.residual); });
  check({"linear", "softmax"}, [](Product& p) { return softmax(p.y); });
}

TEST_CASE("A convolution takes along what a linear layer does") {
  Product p;
  Tensor filters({2, 2, 3, 5}), offsets({5});
  const Var image = p.tape.placeholder({1, 4, 4, 3}), residual = p.tape.placeholder({1, 3, 3, 5});
  const Var y = conv2d(image, p.tape.parameter(filters), p.tape.parameter(offsets));
  CHECK(p.steps({relu(add(residual, y))}) == Names{"conv2d+add+relu"});
}

TEST_CASE("A max pooling joins the convolution that nobody else reads, unless something is added to that") {
  Product p;
  Tensor filters({2, 2, 3, 5}), offsets({5});
  const Var image = p.tape.placeholder({1, 4, 4, 3}), residual = p.tape.placeholder({1, 3, 3, 5});
  const Var y = conv2d(image, p.tape.parameter(filters), p.tape.parameter(offsets));
  const ops::Pool2dAttrs attrs{.kernel_h = 2, .kernel_w = 2};
  CHECK(p.steps({max_pool2d(y, attrs)}) == Names{"conv2d+max_pool2d"});
  const Var h = relu(y), pooled = max_pool2d(h, attrs);
  CHECK(p.steps({relu(pooled)}) == Names{"conv2d+relu+max_pool2d", "relu"});
  CHECK(p.steps({max_pool2d(pooled, attrs)}) == Names{"conv2d+relu+max_pool2d", "max_pool2d"});
  CHECK(p.steps({pooled, h}) == Names{"conv2d+relu", "max_pool2d"});
  CHECK(p.steps({max_pool2d(add(y, residual), attrs)}) == Names{"conv2d+add", "max_pool2d"});
  CHECK(p.steps({average_pool2d(h, attrs)}) == Names{"conv2d+relu", "average_pool2d"});
}

TEST_CASE("A result that somebody else needs is not kept inside of a step") {
  Product twice;
  const Var h = relu(twice.y);
  CHECK(twice.steps({add(h, twice.y)}) == Names{"linear", "relu+add"});
  Product output;
  CHECK(output.steps({relu(output.y), output.y}) == Names{"linear", "relu"});
  Product reshaped;
  CHECK(reshaped.steps({relu(reshape(reshaped.y, {8}))}) == Names{"linear", "reshape", "relu"});
}

TEST_CASE("A sum with itself and a sum that broadcasts stand by themselves") {
  Product itself;
  CHECK(itself.steps({add(itself.y, itself.y)}) == Names{"linear", "add"});
  Product row;
  CHECK(row.steps({add(row.y, row.b)}) == Names{"linear", "add"});
  Product grown;
  CHECK(grown.steps({add(grown.y, grown.tape.placeholder({5, 2, 4}))}) == Names{"linear", "add"});
  Product ranked;
  CHECK(ranked.steps({add(ranked.y, ranked.tape.placeholder({1, 2, 4}))}) == Names{"linear", "add"});
  Product chain;
  const Var r = relu(chain.residual);
  CHECK(chain.steps({mul(r, r)}) == Names{"relu", "mul"});
  Product broadcast;
  CHECK(broadcast.steps({relu(add(relu(broadcast.residual), broadcast.b))}) == Names{"relu", "add", "relu"});
}

TEST_CASE("A step stands where its last node stood, behind what that one reads") {
  Product p;
  const Var other = softmax(p.residual);
  CHECK(p.steps({relu(add(p.y, other))}) == Names{"softmax", "linear+add+relu"});
}

TEST_CASE("Elementwise nodes form chains of up to six") {
  Product p;
  const Var h = relu(p.residual), k = p.tape.placeholder({2, 4});
  CHECK(p.steps({relu(mul(k, add(h, k)))}) == Names{"relu+add+mul+relu"});
  Product longer;
  Var y = longer.residual;
  for (int i = 0; i < 8; ++i) y = relu(y);
  CHECK(longer.steps({y}) == Names{"relu+relu+relu+relu+relu+relu", "relu+relu"});
}

TEST_CASE("A ReLU's gradient continues a chain through its gradient only, not through its mask") {
  Product p;
  const TensorId a = p.tape.make({2, 4}), masked = p.tape.make({2, 4}), mask = p.tape.make({2, 4});
  p.tape.emit(Relu{p.residual.id, a});
  p.tape.emit(ReluGrad{p.residual.id, a, masked});
  CHECK(p.steps({{&p.tape, masked}}) == Names{"relu+relu_grad"});
  p.tape.emit(ReluGrad{masked, p.residual.id, mask});
  CHECK(p.steps({{&p.tape, mask}}) == Names{"relu+relu_grad", "relu_grad"});
}

TEST_CASE("Neighbouring updates with the same numbers are one step of up to six") {
  Context context;
  Tape tape(context, TapeMode::record);
  std::vector<Tensor> memory;
  for (int i = 0; i < 16; ++i) memory.push_back(Tensor({4}));
  const Var gradient = tape.placeholder({4}), hyper = tape.placeholder({3}), other = tape.placeholder({3});
  const auto steps = [&] { return steps_of({tape.nodes(), tape.tensors(), {}, {}}); };
  const auto update = [&](std::size_t i, Var numbers) {
    sgd_update(tape.parameter(memory[2 * i]), tape.state(memory[2 * i + 1]), gradient, numbers);
  };
  for (std::size_t i = 0; i < 7; ++i) update(i, hyper);
  CHECK(steps() == Names{"sgd_update+sgd_update+sgd_update+sgd_update+sgd_update+sgd_update", "sgd_update"});
  update(7, other);
  CHECK(steps().size() == 3);
  tape.clear();
  const Var g = tape.placeholder({4}), h = tape.placeholder({3}), ok = tape.placeholder(Shape(), DType::i32);
  sgd_update(tape.parameter(memory[0]), tape.state(memory[1]), g, h, ok);
  sgd_update(tape.parameter(memory[2]), tape.state(memory[3]), g, h);
  CHECK(steps() == Names{"sgd_update", "sgd_update"});
}

TEST_CASE("Updates of which one reads what the other writes are two steps") {
  for (const bool first_reads : {false, true}) {
    Context context;
    Tape tape(context, TapeMode::record);
    Tensor memory[] = {Tensor({4}), Tensor({4}), Tensor({4}), Tensor({4})};
    const Var p = tape.parameter(memory[0]), q = tape.parameter(memory[1]);
    const Var g = tape.placeholder({4}), hyper = tape.placeholder({3});
    const Var shown = reshape(p, {4});
    sgd_update(p, tape.state(memory[2]), first_reads ? q : g, hyper);
    sgd_update(q, tape.state(memory[3]), first_reads ? g : shown, hyper);
    const Names steps = steps_of({tape.nodes(), tape.tensors(), {}, {}});
    CHECK(std::count(steps.begin(), steps.end(), "sgd_update") == 2);
  }
}

TEST_CASE("What reads a parameter does not move behind its update") {
  for (const bool reshaped : {false, true}) {
    Product p;
    const Var old = relu(reshaped ? reshape(p.b, {4, 1}) : p.b);
    const Var g = p.tape.placeholder({4}), other = p.tape.placeholder(old.shape());
    sgd_update(p.b, p.tape.state(p.state_memory), g, p.hyper);
    const Var sum = add(old, other);
    const Names steps = p.steps({sum});
    CHECK(std::find(steps.begin(), steps.end(), "relu") != steps.end());
    CHECK(std::find(steps.begin(), steps.end(), "add") != steps.end());
  }
  Product twice;  // two updates, between which another read of it stands
  const Var old = relu(twice.b), gradient = twice.tape.placeholder({4}), velocity = twice.tape.state(twice.state_memory);
  sgd_update(twice.b, velocity, gradient, twice.hyper);
  const Var late = add(old, gradient), newer = relu(twice.b);
  sgd_update(twice.b, velocity, gradient, twice.hyper);
  CHECK(twice.steps({late, add(newer, gradient)}) == Names{"relu", "sgd_update", "add", "relu", "sgd_update", "add"});
  Product before;
  const Var sum = add(relu(before.b), before.tape.placeholder({4}));
  sgd_update(before.b, before.tape.state(before.state_memory), before.tape.placeholder({4}), before.hyper);
  CHECK(before.steps({sum}) == Names{"relu+add", "sgd_update"});
}

TEST_CASE("The gradient of a ReLU in front of a max-pool works on the pool's side, where that is the same") {
  const ops::Pool2dAttrs attrs{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  const auto order = [&](bool second_reader, bool ask) {
    Context context;
    Tape tape(context, TapeMode::record);
    const Var x = tape.placeholder({1, 4, 4, 2}, DType::f32, true);
    const Var h = relu(x), y = max_pool2d(h, attrs);
    Var loss = sum_to(mul(y, y), Shape());
    if (second_reader) loss = add(loss, sum_to(mul(h, h), Shape()));
    tape.backward(loss);
    Graph graph{tape.nodes(), tape.tensors(), {tape.gradient(x).id}, {}};
    if (ask) graph.outputs.push_back(tape.gradient(h).id);
    const Names steps = steps_of(graph);
    const auto place = [&](const char* node) {
      return std::find_if(steps.begin(), steps.end(), [&](const std::string& s) { return s.find(node) != s.npos; });
    };
    REQUIRE(place("relu_grad") != steps.end());
    return place("relu_grad") < place("max_pool2d_grad");
  };
  CHECK(order(false, false));
  CHECK_FALSE(order(true, false));  // another gradient is added in between
  CHECK_FALSE(order(false, true));  // the gradient in between is asked for
}

TEST_CASE("It does not where something stands between the two, though the gradient passes it unchanged") {
  Context context;
  Tape tape(context, TapeMode::record);
  const Var x = tape.placeholder({1, 4, 4, 2}, DType::f32, true), b = tape.placeholder({2});
  const Var y = max_pool2d(add_bias(relu(x), b), {.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2});
  tape.backward(sum_to(y, Shape()));
  const Names steps = steps_of({tape.nodes(), tape.tensors(), {tape.gradient(x).id}, {}});
  CHECK(steps.back() == "relu_grad");
  CHECK(steps[steps.size() - 2] == "max_pool2d_grad");
}

TEST_CASE("It does not where the pool's input is a parameter, which may have been updated since") {
  Context context;
  Tape tape(context, TapeMode::record);
  Tensor memory({1, 2, 2, 1});
  const Var p = tape.parameter(memory);
  const ops::Pool2dAttrs attrs{.kernel_h = 2, .kernel_w = 2};
  const TensorId y = tape.make({1, 1, 1, 1}), argmax = tape.make({1, 1, 1, 1}, DType::u8), dp = tape.make({1, 2, 2, 1});
  const TensorId masked = tape.make({1, 2, 2, 1});
  tape.emit(MaxPool2d{p.id, y, argmax, attrs});
  tape.emit(MaxPool2dGrad{y, argmax, dp, attrs});
  tape.emit(ReluGrad{p.id, dp, masked});
  CHECK(steps_of({tape.nodes(), tape.tensors(), {masked}, {}}) == Names{"max_pool2d", "max_pool2d_grad", "relu_grad"});
}

TEST_CASE("Moved or not, the gradients of ReLU and pool have the same bits: ties, -0, NaN, infinities, overlapping windows") {
  Draw draw(77);
  for (const auto& context : make_contexts()) {
    INFO(name_of(*context));
    for (int round = 0; round < 40; ++round) {
      const ops::Pool2dAttrs attrs{.kernel_h = static_cast<std::uint16_t>(draw.range(1, 3)),
                                   .kernel_w = static_cast<std::uint16_t>(draw.range(1, 3)),
                                   .stride_h = static_cast<std::uint16_t>(draw.range(1, 2)),
                                   .stride_w = static_cast<std::uint16_t>(draw.range(1, 2))};
      Tensor x = draw.tensor({2, draw.range(3, 7), draw.range(3, 7), draw.range(1, 20)}, true);
      for (float& value : x.span()) {
        if (draw.one_in(2)) value = static_cast<float>(draw.range(-1, 1)) * (draw.one_in(2) ? 1.0F : -1.0F);
      }
      std::vector<Tensor> results;
      for (const bool fuse : {false, true}) {
        Tape tape(*context, TapeMode::record);
        const Var input = tape.input(x.view(), true), y = max_pool2d(relu(input), attrs);
        Tensor weights = Draw(static_cast<std::uint64_t>(round)).tensor(y.shape(), true);
        tape.backward(sum_to(mul(y, tape.input(weights.view())), Shape()));
        const Var dx = tape.gradient(input);
        Replay replay(Plan::capture(tape, std::vector<Var>{dx}, {.fuse = fuse}), *context);
        replay.run();
        results.push_back(contiguous(replay.try_value(dx).value()));
      }
      require_same_bits(results[1], results[0]);
    }
  }
}

TEST_CASE("A convolution pooled by blocks of images has the same bits, and so have the gradients that its argmax leads to") {
  Draw draw(78);
  // Images of 18 x 18 x 8 in blocks of 12 for each thread, the last one of which is short, whole, or the only one.
  struct Case {
    Index images;
    ops::Pool2dAttrs pool;
  };
  const Case cases[] = {{29, {.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2}},
                        {24, {.kernel_h = 3, .kernel_w = 2, .stride_h = 2, .stride_w = 1, .pad_top = 1}},
                        {55, {.kernel_h = 17, .kernel_w = 17}},
                        {3, {.kernel_h = 2, .kernel_w = 2}}};
  for (const auto& context : make_contexts()) {
    for (const Case& c : cases) {
      INFO(name_of(*context) << ", " << c.images << " images");
      const Tensor x = draw.tensor({c.images, 20, 20, 2}, true);
      Tensor w = draw.tensor({3, 3, 2, 8}, true), bias = draw.tensor({8}, true);
      std::vector<Tensor> values, gradients;
      for (const bool fuse : {false, true}) {
        Tape tape(*context, TapeMode::record);
        const Var input = tape.input(x.view(), true);
        const Var y = max_pool2d(relu(conv2d(input, tape.parameter(w), tape.parameter(bias))), c.pool);
        const Tensor weights = Draw(5).tensor(y.shape(), true);
        tape.backward(sum_to(mul(y, tape.input(weights.view())), Shape()));
        const Var dx = tape.gradient(input);
        Replay replay(Plan::capture(tape, std::vector<Var>{y, dx}, {.fuse = fuse}), *context);
        replay.run();
        values.push_back(contiguous(replay.try_value(y).value()));
        gradients.push_back(contiguous(replay.try_value(dx).value()));
      }
      require_same_bits(values[1], values[0]);
      require_same_bits(gradients[1], gradients[0]);
    }
  }
}

namespace {

// A linear layer's gradient of its weights for `rows` rows, and what may read it.
struct WeightGradient {
  explicit WeightGradient(Index rows) {
    tape.emit(LinearGradWeight{tape.placeholder({rows, 5}).id, tape.placeholder({rows, 3}).id, dw.id});
  }
  void update(Var gradient, std::size_t i = 0) {
    sgd_update(tape.parameter(memory[2 * i]), tape.state(memory[2 * i + 1]), gradient, hyper);
  }
  Names steps(const std::vector<Var>& outputs = {}) const {
    Graph graph{tape.nodes(), tape.tensors(), {}, {}};
    for (const Var output : outputs) graph.outputs.push_back(output.id);
    return steps_of(graph);
  }

  Context context;
  Tape tape{context, TapeMode::record};
  Tensor memory[4] = {Tensor({5, 3}), Tensor({5, 3}), Tensor({5, 3}), Tensor({5, 3})};
  Var hyper = tape.placeholder({3}), dw{&tape, tape.make({5, 3})};
};

}  // namespace

TEST_CASE("The gradient of weights for one row is made anew by each of its readers, for several rows once") {
  const auto record = [](WeightGradient& g) {
    const Var total = sum_squares(g.dw);
    const Var factor = clip_factor(total, g.tape.placeholder(Shape()));
    const Var ok = all_finite(g.dw, total, g.tape.placeholder(Shape(), DType::i32));
    const Var clipped = mul(g.dw, factor);
    g.update(g.dw);
    g.update(clipped, 1);
    return ok;
  };
  WeightGradient one(1), two(2);
  CHECK(one.steps({record(one)}) == Names{"linear_grad_weight+sum_squares", "clip_factor", "linear_grad_weight+all_finite",
                                          "linear_grad_weight+sgd_update", "linear_grad_weight+mul+sgd_update"});
  CHECK(two.steps({record(two)}) ==
        Names{"linear_grad_weight", "sum_squares", "clip_factor", "all_finite", "mul", "sgd_update+sgd_update"});
}

TEST_CASE("It is stored where somebody reads it who cannot make it, or asks for it") {
  WeightGradient asked(1);
  asked.update(asked.dw);
  CHECK(asked.steps({asked.dw}) == Names{"linear_grad_weight", "sgd_update"});
  WeightGradient read(1);
  read.update(read.dw);
  CHECK(read.steps({relu(read.dw)}) == Names{"linear_grad_weight", "sgd_update", "relu"});
  WeightGradient shown(1);
  shown.update(shown.dw);
  CHECK(shown.steps({reshape(shown.dw, {15})}) == Names{"linear_grad_weight", "sgd_update", "reshape"});
  WeightGradient squared(1);
  squared.update(mul(squared.dw, squared.dw));
  CHECK(squared.steps() == Names{"linear_grad_weight", "mul", "sgd_update"});
  WeightGradient masked(1);
  masked.update(mul(masked.dw, masked.tape.placeholder({5, 3})));
  CHECK(masked.steps() == Names{"linear_grad_weight", "mul", "sgd_update"});
  WeightGradient product(1);
  const Var scaled = mul(product.dw, product.tape.placeholder(Shape()));
  product.update(scaled);
  CHECK(product.steps({scaled}) == Names{"linear_grad_weight", "mul", "sgd_update"});
}

TEST_CASE("It is stored where what it is made of may be another by the time it is read") {
  Context context;
  Tape tape(context, TapeMode::record);
  Tensor memory[] = {Tensor({1, 5}), Tensor({1, 5}), Tensor({5, 3}), Tensor({5, 3})};
  const Var x = tape.parameter(memory[0]), hyper = tape.placeholder({3}), dy = tape.placeholder({1, 3});
  const Var dw{&tape, tape.make({5, 3})};
  tape.emit(LinearGradWeight{reshape(x, {1, 5}).id, dy.id, dw.id});
  sgd_update(x, tape.state(memory[1]), tape.placeholder({1, 5}), hyper);
  sgd_update(tape.parameter(memory[2]), tape.state(memory[3]), dw, hyper);
  CHECK(steps_of({tape.nodes(), tape.tensors(), {}, {}}) == Names{"reshape", "linear_grad_weight", "sgd_update+sgd_update"});

  WeightGradient factored(1);  // by a number that is updated
  Tensor numbers[] = {Tensor(Shape()), Tensor(Shape())};
  const Var factor = factored.tape.parameter(numbers[0]), product = mul(factored.dw, factor);
  sgd_update(factor, factored.tape.state(numbers[1]), factored.tape.placeholder(Shape()), factored.hyper);
  factored.update(product);
  CHECK(factored.steps() == Names{"linear_grad_weight", "mul", "sgd_update+sgd_update"});
}

TEST_CASE("Updates make their gradients in one step, of which such a gradient counts as two") {
  Context context;
  Tape tape(context, TapeMode::record);
  std::vector<Tensor> memory;
  for (int i = 0; i < 6; ++i) memory.push_back(Tensor({5, 3})), memory.push_back(Tensor({5, 3}));
  const Var x = tape.placeholder({1, 5}), dy = tape.placeholder({1, 3}), hyper = tape.placeholder({3});
  const Var dense = tape.placeholder({5, 3}), factor = tape.placeholder(Shape());
  std::vector<Var> gradients;
  for (int i = 0; i < 5; ++i) {
    gradients.push_back({&tape, tape.make({5, 3})});
    tape.emit(LinearGradWeight{x.id, dy.id, gradients.back().id});
  }
  gradients[4] = mul(gradients[4], factor);
  gradients.push_back(dense);
  for (const std::size_t i : {0U, 5U, 1U, 2U, 3U, 4U}) {
    sgd_update(tape.parameter(memory[2 * i]), tape.state(memory[2 * i + 1]), gradients[i], hyper);
  }
  const std::string made = "linear_grad_weight+sgd_update";
  CHECK(steps_of({tape.nodes(), tape.tensors(), {}, {}}) ==
        Names{made + "+sgd_update+" + made, made + "+" + made, "linear_grad_weight+mul+sgd_update"});
}
