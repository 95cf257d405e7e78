// SPDX-License-Identifier: Apache-2.0
// Vitro's side of the comparison: matrix products with weights as they are and packed, convolutions with packed
// weights and their gradients.
#include "vitro_peer.hpp"

#include "../../core/tensor.hpp"
#include "../../ops/conv2d.hpp"
#include "../../ops/linear.hpp"
#include "vitro_lenet.hpp"

#include <cstdlib>
#include <functional>
#include <map>

namespace vitro_bench {
namespace {

using namespace vitro;
using vitro::Index;

// `call` runs on memory that the closure holds, and writes `out`.
class FunctionJob final : public Job {
 public:
  FunctionJob(std::shared_ptr<Tensor> out, std::function<void()> call) : out_(std::move(out)), call_(std::move(call)) {}
  void run() override { call_(); }
  std::vector<float> result() override { return {out_->data(), out_->data() + out_->elements()}; }

 private:
  std::shared_ptr<Tensor> out_;
  std::function<void()> call_;
};

std::optional<Isa> chosen_isa() {
  const char* const name = std::getenv("VITRO_BENCH_ISA");
  if (name == nullptr || *name == '\0') return std::nullopt;
  for (const simd::KernelTable* table : simd::kernel_tables()) {
    if (std::string(table->name) == name) return table->isa;
  }
  fail(ErrorCode::unsupported, std::string("VITRO_BENCH_ISA: no kernels are called ") + name);
}

class VitroPeer final : public Peer {
 public:
  explicit VitroPeer(std::optional<Isa> isa) : isa_(isa) { set_threads(1); }

  const char* name() const override { return "vitro"; }
  std::string version() const override { return context_->kernels().name; }
  Isa isa() const { return context_->kernels().isa; }
  bool set_threads(int count) final {
    std::shared_ptr<Context>& context = contexts_[count];
    if (context == nullptr) context = std::make_shared<Context>(ContextOptions{.isa = isa_, .threads = count});
    context_ = context;
    return true;
  }

  std::unique_ptr<Job> make(const Problem& p) override {
    switch (p.operation) {
      case Operation::gemm: return linear(p);
      case Operation::gemm_packed: return packed_gemm(p);
      case Operation::conv: return conv(p);
      case Operation::conv_grad_input: return conv_grad_input(p);
      case Operation::conv_grad_weight: return conv_grad_weight(p);
      case Operation::lenet_step: return make_lenet_step(context_, p, Mode::eager);
      case Operation::lenet_scores: return make_lenet_scores(context_, p, Mode::captured);
    }
    return nullptr;
  }

 private:
  std::unique_ptr<Job> linear(const Problem& p) const {
    const auto [m, n, k] = p.gemm;
    const ops::LinearProblem problem = ops::linear_problem({}, {m, k}, {k, n}).value();
    context_->reserve_scratch(ops::linear_scratch(*context_, problem));
    auto c = std::make_shared<Tensor>(Shape{m, n});
    return std::make_unique<FunctionJob>(
        c, [=, context = context_] { ops::run_linear(*context, problem, p.a, p.b, {}, c->data()); });
  }

  std::unique_ptr<Job> packed_gemm(const Problem& p) const {
    const auto [m, n, k] = p.gemm;
    const ops::LinearProblem problem = ops::linear_problem({}, {m, k}, {k, n}).value();
    context_->reserve_scratch(ops::linear_scratch(*context_, problem));
    auto packed = packed_memory(ops::linear_packed_bytes(*context_, problem));
    ops::pack_linear(*context_, problem, p.b, packed->data());
    auto c = std::make_shared<Tensor>(Shape{m, n});
    return std::make_unique<FunctionJob>(
        c, [=, context = context_] { ops::run_linear_packed(*context, problem, p.a, packed->data(), {}, c->data()); });
  }

  static std::shared_ptr<Tensor> packed_memory(std::size_t bytes) {
    return std::make_shared<Tensor>(Shape{static_cast<Index>(bytes / sizeof(float))});
  }

  static ops::Conv2dProblem problem_of(const ConvShape& s) {
    const auto stride = static_cast<std::uint16_t>(s.stride), pad = static_cast<std::uint16_t>(s.pad);
    const ops::Conv2dAttrs attrs{
        .stride_h = stride, .stride_w = stride, .pad_top = pad, .pad_left = pad, .pad_bottom = pad, .pad_right = pad};
    return ops::conv2d_problem(attrs, {s.batch, s.size, s.size, s.in}, {s.kernel, s.kernel, s.in, s.out}).value();
  }

  std::unique_ptr<Job> conv(const Problem& p) const {
    const ops::Conv2dProblem problem = problem_of(p.conv);
    context_->reserve_scratch(ops::conv2d_scratch(*context_, problem));
    auto packed = packed_memory(ops::conv2d_packed_bytes(*context_, problem));
    ops::pack_conv2d(*context_, problem, p.b, packed->data());
    auto y = std::make_shared<Tensor>(Shape{p.conv.y_count()});
    return std::make_unique<FunctionJob>(y, [=, context = context_] {
      ops::run_conv2d_packed(*context, problem, p.a, packed->data(), {.bias = p.bias}, y->data());
    });
  }

  std::unique_ptr<Job> conv_grad_input(const Problem& p) const {
    const ops::Conv2dProblem problem = problem_of(p.conv);
    context_->reserve_scratch(ops::conv2d_grad_input_scratch(*context_, problem));
    auto packed = packed_memory(ops::conv2d_grad_input_packed_bytes(*context_, problem));
    ops::pack_conv2d_grad_input(*context_, problem, p.b, packed->data());
    auto dx = std::make_shared<Tensor>(Shape{p.conv.x_count()});
    return std::make_unique<FunctionJob>(
        dx, [=, context = context_] { ops::run_conv2d_grad_input_packed(*context, problem, p.a, packed->data(), dx->data()); });
  }

  std::unique_ptr<Job> conv_grad_weight(const Problem& p) const {
    const ops::Conv2dProblem problem = problem_of(p.conv);
    context_->reserve_scratch(ops::conv2d_grad_weight_scratch(*context_, problem));
    auto dw = std::make_shared<Tensor>(Shape{p.conv.w_count()});
    return std::make_unique<FunctionJob>(
        dw, [=, context = context_] { ops::run_conv2d_grad_weight(*context, problem, p.a, p.b, dw->data()); });
  }

  std::optional<Isa> isa_;
  std::map<int, std::shared_ptr<Context>> contexts_;  // by number of threads
  std::shared_ptr<Context> context_;
};

VitroPeer& instance() {
  static VitroPeer peer(chosen_isa());
  return peer;
}

}  // namespace

Peer& vitro_peer() { return instance(); }

std::unique_ptr<Peer> make_vitro_peer(vitro::simd::Isa isa) { return std::make_unique<VitroPeer>(isa); }

vitro::simd::Isa vitro_isa() { return instance().isa(); }

}  // namespace vitro_bench
