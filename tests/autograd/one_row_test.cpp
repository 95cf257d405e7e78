// SPDX-License-Identifier: Apache-2.0
// A training step of one row, whose gradients of weights are made anew wherever they are read: the bits of the tape, no memory.
#include "../ops/support.hpp"

#include <catch2/matchers/catch_matchers_all.hpp>
#include <vitro/autograd/functions.hpp>
#include <vitro/autograd/replay.hpp>

using namespace vitro;
using namespace vitro_test;
using Catch::Matchers::ContainsSubstring;

namespace {

enum class Clip { none, watch, clip };

// Two linear layers with bias, updated with momentum and decay; watched for infinities, clipped or not.
struct Net {
  Net(Index rows, Index in, Index hidden, Index classes, Clip clipping)
      : x(Draw(1).tensor({rows, in})), labels(Draw(2).labels(rows, classes)), clip(clipping) {
    for (const Shape& shape : {Shape{in, hidden}, Shape{hidden}, Shape{hidden, classes}, Shape{classes}}) {
      parameters.push_back(Draw(3).tensor(shape));
      velocities.push_back(Tensor(shape));
    }
    const float numbers[] = {0.05F, 0.9F, 1e-2F};
    std::copy_n(numbers, 3, hyper.data());
    max_norm.data()[0] = 0.25F;
  }

  // The loss, and whether all was finite where that is looked at; then the gradients of both layers' weights.
  std::vector<Var> record(Tape& tape) {
    std::vector<Var> p, g;
    for (Tensor& parameter : parameters) p.push_back(tape.parameter(parameter));
    const Var h = relu(linear(tape.input(x.view()), p[0], p[1]));
    std::vector<Var> results = {cross_entropy(linear(h, p[2], p[3]), tape.input(labels.view()))};
    tape.backward(results[0]);
    for (const Var parameter : p) g.push_back(tape.gradient(parameter));
    const std::vector<Var> weights = {g[0], g[2]};
    Var ok;
    if (clip != Clip::none) {
      Var total = sum_squares(results[0]);
      ok = all_finite(results[0]);
      for (const Var gradient : g) {
        total = sum_squares(gradient, total);
        ok = all_finite(gradient, total, ok);
      }
      results.push_back(ok);
      const Var factor = clip_factor(total, tape.input(max_norm.view()));
      for (Var& gradient : g) gradient = clip == Clip::clip ? mul(gradient, factor) : gradient;
    }
    const Var numbers = tape.input(hyper.view());
    for (std::size_t i = 0; i < p.size(); ++i) {
      const Var v = tape.state(velocities[i]);
      if (ok.tape != nullptr) {
        sgd_update(p[i], v, g[i], numbers, ok);
      } else {
        sgd_update(p[i], v, g[i], numbers);
      }
    }
    results.insert(results.end(), weights.begin(), weights.end());
    return results;
  }

  Tensor x;
  LabelTensor labels;
  Clip clip;
  std::vector<Tensor> parameters, velocities;
  Tensor hyper{{3}}, max_norm{Shape()};
};

// The outputs that a plan is asked for: those of record() without the gradients.
std::vector<Var> without_gradients(std::vector<Var> results) {
  results.resize(results.size() - 2);
  return results;
}

// A finite loss of which a gradient overflows: the weights that an input of 3e38 meets are 0, those behind them large.
void make_gradient_overflow(Net& net) {
  const Index hidden = net.parameters[1].elements(), i = net.x.elements() / 2;
  net.x.data()[i] = 3e38F;
  std::fill_n(net.parameters[0].data() + i % net.parameters[0].shape()[0] * hidden, hidden, 0.0F);
  for (float& value : net.parameters[2].span()) value *= 4;
  const auto classes = static_cast<std::int32_t>(net.parameters[3].elements());
  net.labels.data()[0] = (net.labels.data()[0] + 1) % classes;  // not what was learnt
}

// Six steps on the tape and captured, the fourth of which is to overflow where that is looked for. Returns whether it did: no
// parameter changed then.
bool compare(Context& context, const Net& net, const CaptureOptions& options, bool ask_for_gradients) {
  Net eager = net, captured = net;
  Tape tape(context), recording(context, TapeMode::record);
  const std::vector<Var> recorded = captured.record(recording);
  const std::vector<Var> read = ask_for_gradients ? recorded : without_gradients(recorded);
  Replay replay(Plan::capture(recording, read, options), context);
  bool overflowed = false;
  for (int step = 0; step < 6; ++step) {
    for (Net* const n : {&eager, &captured}) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(net.x.elements()); ++i) {
        n->x.span()[i] = step % 2 == 0 ? net.x.span()[i] : -net.x.span()[i];
      }
      if (step == 3 && net.clip != Clip::none) make_gradient_overflow(*n);
    }
    const std::vector<Tensor> before = captured.parameters;
    tape.clear();
    const std::vector<Var> results = eager.record(tape);
    replay.run();
    for (std::size_t i = 0; i < eager.parameters.size(); ++i) {
      require_same_bits(captured.parameters[i], eager.parameters[i]);
      require_same_bits(captured.velocities[i], eager.velocities[i]);
    }
    for (std::size_t i = 0; i < read.size(); ++i) {
      if (net.clip == Clip::none || i != 1) {
        require_same_bits(contiguous(replay.try_value(recorded[i]).value()), contiguous(tape.value(results[i])));
        continue;
      }
      const std::int32_t ok = *static_cast<const std::int32_t*>(replay.memory(*replay.plan().port(recorded[i])));
      REQUIRE(ok == *tape.labels(results[i]).data());
      if (ok == 1 || step != 3) continue;
      REQUIRE(std::isfinite(*replay.try_value(recorded[0]).value().data()));
      require_same_bits(captured.parameters[0], before[0]);
      require_same_bits(captured.parameters[3], before[3]);
      overflowed = true;
    }
  }
  return overflowed;
}

}  // namespace

TEST_CASE("Steps of one row and of two have the tape's bits captured, clipped or not, on every instruction set and threads") {
  Draw draw(91);
  for (const auto& context : make_contexts()) {
    INFO(name_of(*context));
    for (const Clip clip : {Clip::none, Clip::watch, Clip::clip}) {
      for (const Index rows : {1, 1, 1, 2}) {
        const Net net(rows, draw.range(1, 50), draw.range(1, 50), draw.range(2, 20), clip);
        const CaptureOptions options{.fuse = !draw.one_in(5), .reuse_memory = !draw.one_in(3)};
        INFO(rows << " rows, " << net.x.elements() << " in, " << net.parameters[1].elements() << " hidden, fuse "
                  << options.fuse << ", reuse " << options.reuse_memory);
        compare(*context, net, options, draw.one_in(3));
      }
      // In several pieces, and with the shares of threads ending within rows.
      CHECK(compare(*context, Net(1, 256, 120, 10, clip), {}, false) == (clip != Clip::none));
    }
  }
}

TEST_CASE("The gradients of weights for one row have no memory unless they are asked for, and the plan says what it does") {
  Context context;
  for (const Index rows : {1, 2}) {
    for (const bool asked : {false, true}) {
      Net net(rows, 40, 30, 4, Clip::clip);
      Tape tape(context, TapeMode::record);
      const std::vector<Var> results = net.record(tape);
      const auto plan = Plan::capture(tape, asked ? results : without_gradients(results));
      const auto has = [&](const char* shape) {
        return std::any_of(plan->arena_map().begin(), plan->arena_map().end(), [&](const Plan::ArenaBlock& block) {
          return plan->tensor_text(block.tensor).find(shape) != std::string::npos;
        });
      };
      CHECK(has("[40, 30]") == (rows == 2 || asked));  // itself or clipped
      const std::string text = plan->describe();
      INFO(text);
      CHECK((text.find("linear_grad_weight + sum_squares") != text.npos) == (rows == 1 && !asked));
      if (rows == 2 || asked) continue;
      // 2 * 40 * 30 to make it, twice that for its squares.
      CHECK_THAT(text, ContainsSubstring("linear_grad_weight + sum_squares                  4.8 kflop"));
      CHECK_THAT(text, ContainsSubstring("linear_grad_weight + all_finite"));
      // 2 * 1320 for the gradients, one for each clipped element, and six for each of all 1354 parameters.
      CHECK_THAT(text, ContainsSubstring("linear_grad_weight x2 + mul x2 + sgd_update x4"));
      CHECK_THAT(plan->graphviz(), ContainsSubstring("linear_grad_weight x2 + mul x2 + sgd_update x4"));
    }
  }
}
