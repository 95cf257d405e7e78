// SPDX-License-Identifier: Apache-2.0
// Capture: what it refuses, by the name of the node; what it leaves out; and what a plan says of itself.
#include "../../autograd/plan.hpp"

#include "../../autograd/graph.hpp"
#include "../support/errors.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vitro/autograd/functions.hpp>

using namespace vitro;
using Catch::Matchers::ContainsSubstring;
using vitro_test::error_of;

namespace {

// A list of nodes that no tape would record.
struct List {
  Graph graph;

  TensorId add(const Shape& shape, Role role = Role::computed, DType type = DType::f32) {
    return graph.tensors.add({shape, kNowhere, type, role, false});
  }
  std::string refusal() const {
    const Status status = check_graph(graph);
    REQUIRE_FALSE(status.ok());
    return status.error().message();
  }
};

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("Nodes that wait for each other in a circle are named, be it one, two, or many") {
  List one;
  const TensorId y = one.add({2});
  one.graph.nodes = {Relu{y, y}};
  CHECK_THAT(one.refusal(), ContainsSubstring("node 0 (relu)") && ContainsSubstring("cycle"));

  List two;
  const TensorId x = two.add({2}, Role::input), a = two.add({2}), b = two.add({2}), c = two.add({2});
  two.graph.nodes = {Relu{x, c}, Relu{b, a}, Add{a, c, b}};
  CHECK_THAT(two.refusal(), ContainsSubstring("node 1 (relu), node 2 (add) form a cycle"));

  List many;
  std::vector<TensorId> ids;
  for (int i = 0; i < 12; ++i) ids.push_back(many.add({2}));
  for (std::size_t i = 0; i < 12; ++i) many.graph.nodes.push_back(Relu{ids[(i + 11) % 12], ids[i]});
  CHECK_THAT(many.refusal(), ContainsSubstring("node 0 (relu)") && ContainsSubstring("...") && ContainsSubstring("cycle"));
  CHECK(count_of(many.refusal(), "(relu)") == 8);
}

TEST_CASE("A node that reads what only a later one computes is named with it") {
  List list;
  const TensorId x = list.add({2}, Role::input), a = list.add({2}), b = list.add({2});
  list.graph.nodes = {Relu{a, b}, Softmax{x, a}};
  const std::string message = list.refusal();
  CHECK_THAT(message, ContainsSubstring("node 0 (relu) reads %1 f32[2], which node 1 (softmax) computes only later"));
  CHECK_FALSE(message.find("cycle") != std::string::npos);
}

TEST_CASE("An operand that is not there, that nothing computes, or that two nodes compute is an error") {
  List list;
  const TensorId x = list.add({2}, Role::input), y = list.add({2}), z = list.add({2});
  list.graph.nodes = {Relu{x, y}, Relu{TensorId(99), z}};
  CHECK_THAT(list.refusal(), ContainsSubstring("node 1 (relu) names %99") && ContainsSubstring("3 tensors"));
  list.graph.nodes = {Relu{x, TensorId(3)}};
  CHECK_THAT(list.refusal(), ContainsSubstring("node 0 (relu) names %3"));
  list.graph.nodes = {Relu{x, y}, Add{x, z, y}};
  CHECK_THAT(list.refusal(), ContainsSubstring("node 1 (add) computes %1 f32[2], which node 0 (relu) computes already"));
  list.graph.nodes = {Relu{z, y}};
  CHECK_THAT(list.refusal(), ContainsSubstring("node 0 (relu) reads %2 f32[2], which no node computes"));
}

TEST_CASE("A node that writes to an input or a constant is an error") {
  List list;
  const TensorId x = list.add({2}, Role::input), c = list.add({2}, Role::constant), y = list.add({2});
  list.graph.nodes = {Fill{y, 1}, Relu{y, x}};
  CHECK_THAT(list.refusal(), ContainsSubstring("node 1 (relu) writes to %0 f32[2], which is an input"));
  list.graph.nodes = {Fill{c, 1}};
  CHECK_THAT(list.refusal(), ContainsSubstring("node 0 (fill) writes to %1 f32[2], which is a constant"));
}

TEST_CASE("A shape or a type that disagrees is an error with the node and both shapes") {
  List list;
  const TensorId x = list.add({2, 3}, Role::input), w = list.add({4, 5}, Role::parameter), y = list.add({2, 5});
  const TensorId bytes = list.add({2, 3}, Role::input, DType::u8), z = list.add({2, 3}), copy = list.add({2, 3});
  list.graph.nodes = {Relu{x, z}, Linear{x, w, kNoTensor, y}};
  CHECK_THAT(list.refusal(),
             ContainsSubstring("node 1 (linear)") && ContainsSubstring("[2, 3]") && ContainsSubstring("[4, 5]"));
  list.graph.nodes = {Relu{x, z}, Relu{bytes, copy}};
  CHECK_THAT(list.refusal(), ContainsSubstring("node 1 (relu)") && ContainsSubstring("u8"));
  list.graph.nodes = {Relu{x, z}, Relu{z, y}};
  CHECK_THAT(list.refusal(), ContainsSubstring("node 1 (relu)") && ContainsSubstring("%2 f32[2, 5]"));
}

TEST_CASE("An output must be computed, or given") {
  List list;
  const TensorId x = list.add({2}, Role::input), y = list.add({2}), z = list.add({2});
  list.graph.nodes = {Relu{x, y}};
  list.graph.outputs = {y, x};
  CHECK(check_graph(list.graph).ok());
  list.graph.outputs = {y, z};
  CHECK_THAT(list.refusal(), ContainsSubstring("output %2 f32[2] is computed by no node"));
  list.graph.outputs = {TensorId(7)};
  CHECK_THAT(list.refusal(), ContainsSubstring("output %7"));
}

TEST_CASE("Outputs of another tape, nothing to do, and copied inputs are refused") {
  Context context;
  Tape tape(context), other(context);
  const Tensor x({2, 3});
  const Var v = tape.input(x.view()), o = other.input(x.view());
  const auto message = [&](std::vector<Var> outputs) { return error_of([&] { Plan::capture(tape, outputs); }).message(); };
  CHECK_THAT(message({v}), ContainsSubstring("nothing to do"));
  const Var y = relu(v);
  CHECK_THAT(message({}), ContainsSubstring("nothing to do"));
  CHECK_THAT(message({y, o}), ContainsSubstring("output %0 belongs to another tape"));
  const Var strided = relu(tape.input(x.view().permute({1, 0})));
  CHECK_THAT(message({strided}), ContainsSubstring("%2 f32[3, 2]") && ContainsSubstring("the relu that computes %3") &&
                                     ContainsSubstring("strides of its own"));
  CHECK(Plan::capture(tape, std::vector<Var>{y})->steps() == 1);  // the copy is not needed for this one
}

TEST_CASE("Memory that an update writes has one name") {
  Context context;
  Tensor memory({12}), velocity({4}), hyper({3});
  const auto part = [&](Index begin, Index count) { return TensorView(memory.data() + begin, Shape({count})); };
  const auto message = [&](const auto& other) {
    Tape tape(context, TapeMode::record);
    const Var p = tape.parameter(part(4, 4));
    const Var y = relu(other(tape));
    sgd_update(p, tape.state(velocity), tape.placeholder({4}), tape.input(hyper.view()));
    const Result<std::shared_ptr<const Plan>> plan = Plan::try_capture(tape, {&y, 1});
    return plan ? std::string() : plan.error().message();
  };
  const auto refused = [&](const auto& other) {
    const std::string text = message(other);
    return text.find("%0 f32[4]") != text.npos && text.find("%1 f32") != text.npos && text.find("same memory") != text.npos;
  };
  CHECK(refused([&](Tape& t) { return t.parameter(part(4, 4)); }));
  CHECK(refused([&](Tape& t) { return t.input(ConstTensorView(part(7, 2))); }));
  CHECK(refused([&](Tape& t) { return t.input(ConstTensorView(part(0, 5))); }));
  CHECK(refused([&](Tape& t) { return t.input(ConstTensorView(part(0, 12))); }));
  CHECK(refused([&](Tape& t) { return t.constant(ConstTensorView(part(5, 1))); }));
  CHECK(message([&](Tape& t) { return t.input(ConstTensorView(part(0, 4))); }).empty());
  CHECK(message([&](Tape& t) { return t.input(ConstTensorView(part(8, 4))); }).empty());
  // A long one, a short one inside of it, and then the one that is written.
  CHECK_THAT(message([&](Tape& t) { return add(t.input(ConstTensorView(part(0, 12))), t.input(ConstTensorView(part(1, 1)))); }),
             ContainsSubstring("same memory"));
  {
    Tape tape(context, TapeMode::record);
    const Var p = tape.parameter(part(4, 4)), c = tape.constant(ConstTensorView(part(4, 4)));  // read by no node
    sgd_update(p, tape.state(velocity), tape.placeholder({4}), tape.input(hyper.view()));
    CHECK_THAT(Plan::try_capture(tape, {&c, 1}).error().message(), ContainsSubstring("same memory"));
  }
  CHECK(message([&](Tape& t) {
          return add(t.input(ConstTensorView(part(0, 4))), t.constant(ConstTensorView(part(0, 4))));
        }).empty());
}

TEST_CASE("Nodes that no output and no update depends on are left out") {
  Context context;
  Tape tape(context, TapeMode::record);
  Tensor w({3, 3}), v({3, 3});
  const Var x = tape.placeholder({2, 3}), hyper = tape.placeholder({3});
  const Var p = tape.parameter(w);
  const Var y = softmax(x), dead = log_softmax(mul(y, x));
  const Var alive = linear(x, p);
  CHECK(Plan::capture(tape, std::vector<Var>{y})->steps() == 1);
  CHECK(Plan::capture(tape, std::vector<Var>{dead})->steps() == 3);
  CHECK(Plan::capture(tape, std::vector<Var>{alive})->steps() == 1);
  CHECK(Plan::capture(tape, std::vector<Var>{alive})->port(hyper) == nullptr);
  tape.backward(sum_to(alive, Shape()));
  sgd_update(p, tape.state(v), tape.gradient(p), hyper);
  const auto update = Plan::capture(tape, {});  // fill, broadcast, linear_grad_weight, sgd_update
  CHECK(update->steps() == 4);
  CHECK_THAT(update->describe(),
             ContainsSubstring("sgd_update") && !ContainsSubstring("softmax") && !ContainsSubstring("sum_to"));
  CHECK(Plan::capture(tape, std::vector<Var>{y})->steps() == 5);  // a plan of that tape updates whatever is read from it
}

TEST_CASE("Where nobody reads a pool's positions, they are not stored") {
  Context context;
  Tape tape(context, TapeMode::record);
  const Var x = tape.placeholder({1, 8, 8, 3}, DType::f32, true);
  const Var h = max_pool2d(relu(x), {.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2});
  const Var y = softmax(h);
  const auto inference = Plan::capture(tape, std::vector<Var>{y});
  CHECK(inference->arena_map().size() == 2);
  CHECK_THAT(inference->describe(), !ContainsSubstring("u8"));
  tape.backward(sum_to(mul(y, y), Shape()));
  const Var dx = tape.gradient(x);
  CHECK_THAT(Plan::capture(tape, std::vector<Var>{dx})->describe(), ContainsSubstring("u8[1, 4, 4, 3]"));
}

TEST_CASE("A plan lists its steps, its memory and its ports") {
  Context context;
  Tape tape(context, TapeMode::record);
  Tensor w({3, 4}), b({4});
  const Var x = tape.placeholder({2, 3});
  const Var h = relu(linear(x, tape.parameter(w), tape.constant(b.view())));
  const Var y = softmax(h);
  const auto plan = Plan::capture(tape, std::vector<Var>{y});
  REQUIRE(plan->steps() == 2);
  REQUIRE(plan->ports().size() == 3);
  CHECK(plan->port(x)->kind == PortKind::input);
  CHECK(plan->port(y)->kind == PortKind::output);
  CHECK(plan->port(h) == nullptr);
  CHECK(plan->ports()[1].kind == PortKind::parameter);
  CHECK(plan->ports()[1].recorded == reinterpret_cast<std::byte*>(w.data()));
  CHECK(plan->arena_bytes() == 64);  // h: 32 bytes
  CHECK(plan->arena_lower_bound() == 64);
  CHECK(plan->output_bytes() == 64);
  REQUIRE(plan->arena_map().size() == 1);
  CHECK(plan->arena_map()[0].bytes == 32);
  CHECK(plan->arena_map()[0].first == 0);
  CHECK(plan->arena_map()[0].last == 1);
  const std::string text = plan->describe();
  // 2 * 2 * 3 * 4 for the product, 8 for the bias, 8 for the ReLU; 5 * 8 for the softmax.
  CHECK_THAT(text, ContainsSubstring("linear + relu") && ContainsSubstring("f32[3, 4]") && ContainsSubstring("64") &&
                       ContainsSubstring("40") && ContainsSubstring("softmax"));
  const std::string graph = plan->graphviz();
  CHECK_THAT(graph, ContainsSubstring("digraph") && ContainsSubstring("linear + relu"));
  CHECK(count_of(graph, "->") == 4);  // x and w into the product, its result into the softmax, and that one's out
}

TEST_CASE("A plan runs with the kernels and threads that it was made for, and says which") {
  Context scalar({.isa = Isa::scalar}), blocked({.isa = Isa::blocked}), two({.isa = Isa::scalar, .threads = 2});
  Tape tape(scalar, TapeMode::record);
  const Var y = relu(tape.placeholder({4}));
  const auto plan = Plan::capture(tape, std::vector<Var>{y});
  CHECK(plan->check(scalar).ok());
  CHECK_THAT(plan->check(blocked).error().message(), ContainsSubstring("scalar") && ContainsSubstring("blocked"));
  CHECK_THAT(plan->check(two).error().message(), ContainsSubstring("1 thread(s)") && ContainsSubstring("2"));
}
