// SPDX-License-Identifier: Apache-2.0
// Sessions: the bits of the tape, shared weights, lent memory, and what is refused by name.
#include "../../models/session.hpp"

#include "../ops/support.hpp"
#include "../support/build.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>
#include <cfenv>
#include <thread>
#include <vitro/models/lenet.hpp>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

using namespace vitro;
using namespace vitro_test;
using Catch::Matchers::ContainsSubstring;

namespace {

Tensor scores_on_tape(const Model& model, const Tensor& input) {
  Context context({.isa = Isa::scalar});
  Tape tape(context);
  return contiguous(tape.value(model.forward(tape.input(input.view()), model.place_constants(tape))));
}

std::shared_ptr<const CompiledModel> compile(const Model& model, const CompiledModel::Options& options = {}) {
  return CompiledModel::try_make(model, options).value();
}

Model halves_only() {
  return Model("halves", {4, 6, 2},
               {{"pool", AveragePool2dLayer{{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2}}}}, 1);
}

}  // namespace

TEST_CASE("A session gives the bits of the tape: every instruction set, 1 to 7 threads, batches of 1 and 3") {
  const Model model = models::lenet5();
  for (const Index batch : {1, 3}) {
    const Tensor input = Draw(5).tensor({batch, 28, 28, 1});
    const Tensor expected = scores_on_tape(model, input);
    for (const auto& context : make_contexts()) {
      INFO(name_of(*context) << ", batch " << batch);
      for (const bool fuse : {true, false}) {
        const ContextOptions options{.isa = context->kernels().isa, .threads = context->threads(), .parallel_work = 0};
        const auto session = Session::try_make(model, {.batch = batch, .context = options, .capture = {.fuse = fuse}}).value();
        CHECK(session->compiled().input_shape() == input.shape());
        Tensor output(session->compiled().output_shape());
        session->run(input.data(), output.data());
        require_same_bits(output, expected);
      }
    }
  }
}

TEST_CASE("Four threads share one compiled model: 100,000 inferences with the bits of one thread") {
  // Under ThreadSanitizer all of them take a minute and a half, and were clean.
  constexpr int kRuns = kSanitizesThreads ? 2500 : 25000;
  constexpr int kThreads = 4, kInputs = 16;
  const auto compiled = compile(models::lenet5());
  std::vector<Tensor> inputs, expected;
  const auto alone = Session::try_make(compiled).value();
  for (int i = 0; i < kInputs; ++i) {
    inputs.push_back(Draw(static_cast<std::uint64_t>(i)).tensor({1, 28, 28, 1}));
    expected.push_back(Tensor({1, 10}));
    alone->run(inputs.back().data(), expected.back().data());
  }
  std::vector<int> wrong(kThreads, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const auto session = Session::try_make(compiled).value();
      Tensor output({1, 10});
      for (std::size_t run = 0; run < kRuns; ++run) {
        const std::size_t i = (run + 3 * t) % kInputs;
        session->run(inputs[i].data(), output.data());
        wrong[t] += !std::equal(output.data(), output.data() + 10, expected[i].data());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(kThreads, 0));
}

TEST_CASE("A session takes the memory that it is lent, exactly session_bytes(), and refuses less and what is not aligned") {
  const Model model = models::lenet5();
  const Tensor input = Draw(6).tensor({1, 28, 28, 1});
  for (const int count : {1, 2}) {
    const auto compiled = compile(model, {.context = {.threads = count, .parallel_work = 0, .wake_work = 0}});
    const std::size_t bytes = compiled->session_bytes();
    auto memory = allocate_array<std::byte>(static_cast<std::ptrdiff_t>(bytes + 128));
    const auto refusal = [&](std::span<std::byte> lent) { return Session::try_make(compiled, lent).error().message(); };
    CHECK_THAT(refusal({memory.get(), bytes - 1}), ContainsSubstring("needs " + std::to_string(bytes) + " bytes") &&
                                                       ContainsSubstring("got " + std::to_string(bytes - 1)));
    CHECK_THAT(refusal({memory.get() + 8, bytes}), ContainsSubstring("8 beyond"));
    std::fill_n(memory.get(), bytes + 128, std::byte{0x33});
    const auto session = Session::try_make(compiled, {memory.get() + 64, bytes}).value();
    Tensor output({1, 10});
    session->run(input.data(), output.data());
    require_same_bits(output, scores_on_tape(model, input));
    const auto untouched = [](std::byte b) { return b == std::byte{0x33}; };
    CHECK(std::all_of(memory.get(), memory.get() + 64, untouched));
    CHECK(std::all_of(memory.get() + 64 + bytes, memory.get() + bytes + 128, untouched));
    CHECK_FALSE(std::all_of(memory.get() + 64, memory.get() + 64 + bytes, untouched));
  }
}

TEST_CASE("Another rounding mode is refused by name") {
  const auto compiled = compile(halves_only());
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    const auto session = Session::try_make(compiled);
    std::fesetround(FE_TONEAREST);
    REQUIRE_FALSE(session);
    CHECK(session.error().code() == ErrorCode::unsupported);
    CHECK_THAT(session.error().message(), ContainsSubstring("does not round to the nearest"));
  }
  CHECK(Session::try_make(compiled));
}

TEST_CASE("Traps are refused by name, and the caller's flags stay as they were") {
  const auto compiled = compile(halves_only());
  std::feclearexcept(FE_ALL_EXCEPT);
  REQUIRE(Session::try_make(compiled));
  CHECK(std::fetestexcept(FE_ALL_EXCEPT) == 0);
#if defined(__GLIBC__)
  feenableexcept(FE_INEXACT);
  const auto session = Session::try_make(compiled);
  fedisableexcept(FE_INEXACT);
  REQUIRE_FALSE(session);
  CHECK_THAT(session.error().message(), ContainsSubstring("stops the program at floating-point exceptions"));
#endif
}

TEST_CASE("Flushed results and operands are refused by name") {
#if defined(__SSE__)
  const auto compiled = compile(halves_only());
  const auto refusal = [&](unsigned bit) {
    const unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | bit);
    const auto session = Session::try_make(compiled);
    _mm_setcsr(saved);
    REQUIRE_FALSE(session);
    CHECK(session.error().code() == ErrorCode::unsupported);
    return session.error().message();
  };
  CHECK_THAT(refusal(0x8000U), ContainsSubstring("flushes denormal results to zero"));
  CHECK_THAT(refusal(0x0040U), ContainsSubstring("takes denormal operands for zero"));
  CHECK(Session::try_make(compiled));
#else
  SKIP("this processor has no control register for denormal numbers that the test knows");
#endif
}

TEST_CASE("A model that only flattens copies its input to where the caller wants it") {
  for (const Index batch : {1, 4}) {
    const Model model("flat", {2, 3, 2}, {{"flatten", FlattenLayer{}}}, 1);
    const auto session = Session::try_make(model, {.batch = batch}).value();
    const Tensor input = Draw(7).tensor({batch, 2, 3, 2});
    Tensor output({batch, 12});
    CHECK(session->try_run(input.view(), output).ok());
    CHECK(std::equal(input.data(), input.data() + input.elements(), output.data()));
  }
}

TEST_CASE("A session outlives its model, and its weights are not the model's") {
  const Tensor input = Draw(8).tensor({1, 28, 28, 1});
  Tensor expected;
  std::unique_ptr<Session> session;
  {
    Model model = models::lenet5(9);
    expected = scores_on_tape(model, input);
    session = Session::try_make(model).value();
    for (Parameter& p : model.parameters()) std::fill_n(p.value.data(), p.value.elements(), 7.0F);
  }
  Tensor output({1, 10});
  session->run(input.data(), output.data());
  require_same_bits(output, expected);
}

TEST_CASE("Views of another shape or with strides, a batch of 0, and an instruction set that is not there are errors") {
  const Model model = halves_only();
  const auto session = Session::try_make(model, {.batch = 2}).value();
  Tensor output({2, 2, 3, 2}), wrong({2, 3, 2, 2});
  const Tensor input({2, 4, 6, 2}), single({1, 4, 6, 2});
  CHECK(session->try_run(input.view(), output).ok());
  CHECK_THAT(session->try_run(single.view(), output).error().message(),
             ContainsSubstring("input must be dense, of shape [2, 4, 6, 2]; got shape [1, 4, 6, 2]"));
  CHECK_THAT(session->try_run(input.view(), wrong).error().message(), ContainsSubstring("output must be dense"));
  const Tensor turned({2, 6, 4, 2});
  CHECK_THAT(session->try_run(turned.view().permute({0, 2, 1, 3}), output).error().message(), ContainsSubstring("strides"));
  Tensor both({2 * 4 * 6 * 2});
  const TensorView inside(both.data() + 20, output.shape());
  CHECK_THAT(session->try_run(ConstTensorView(both.data(), input.shape()), inside).error().message(),
             ContainsSubstring("must not lie in the input's memory"));
  CHECK_THAT(session->try_run(ConstTensorView(nullptr, input.shape()), output).error().message(),
             ContainsSubstring("input is a view without memory"));
  for (const Index batch : {0, -1}) {
    CHECK_THAT(CompiledModel::try_make(model, {.batch = batch}).error().message(),
               ContainsSubstring(std::to_string(batch)) && ContainsSubstring("at least 1"));
  }
  CHECK_FALSE(CompiledModel::try_make(model, {.batch = std::numeric_limits<Index>::max() / 8}));
  CHECK_FALSE(CompiledModel::try_make(model, {.context = {.threads = 0}}));
}
