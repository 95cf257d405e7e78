// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime through its C API: products, forward convolutions and LeNet-5's inference, each a network of its own.
//
// Weights are constants of the network, so that the library lays them out before, as it likes; of `gemm` B is an input. Images
// go in and come out with channels before pixels, its plain layout; what it reorders within a network counts as its time, as it
// must in every use. Inputs and outputs are bound to memory once, so that a call copies nothing.
#include "floats.hpp"
#include "layout.hpp"
#include "onnx_model.hpp"
#include "onnxruntime_api.hpp"
#include "peer.hpp"

#include <stdexcept>

namespace vitro_bench {
namespace {

using Dims = OnnxModel::Dims;

void check(OrtStatus* status) {
  if (status == nullptr) return;
  const std::string message = ort_get_error_message(status);
  ort_release_status(status);
  throw std::runtime_error("ONNX Runtime: " + message);
}

// A session and its inputs and output, which are dense arrays.
class OrtJob final : public Job {
 public:
  OrtJob(OrtEnv* env, const OnnxModel& model, int threads) {
    OrtSessionOptions* options = nullptr;
    check(ort_create_session_options(&options));
    check(ort_set_intra_op_threads(options, threads));
    check(ort_set_graph_optimization_level(options, kOrtEnableAll));
    const std::string bytes = model.bytes();
    check(ort_create_session_from_array(env, bytes.data(), bytes.size(), options, &session_));
    ort_release_session_options(options);
  }
  ~OrtJob() override {
    for (OrtValue* const value : inputs_) ort_release_value(value);
    ort_release_value(output_);
    ort_release_session(session_);
  }

  void input(const char* name, const Dims& dims, const float* data) {
    names_.push_back(name);
    inputs_.push_back(tensor(dims, const_cast<float*>(data)));
  }
  // `order` turns the output into Vitro's layout; empty: it is that.
  void output(const Dims& dims, std::vector<std::size_t> order = {}) {
    dims_ = dims;
    order_ = std::move(order);
    memory_ = std::make_unique<Floats>(static_cast<Index>(count_of(dims)));
    output_ = tensor(dims, memory_->data());
  }
  // Keeps an operand in the library's layout.
  const float* keep(std::vector<float> values) { return kept_.emplace_back(std::move(values)).data(); }

  void run() override {
    constexpr const char* kOutput = "y";
    check(ort_run(session_, nullptr, names_.data(), inputs_.data(), inputs_.size(), &kOutput, std::size_t{1}, &output_));
  }
  std::vector<float> result() override { return order_.empty() ? memory_->copy() : permuted(memory_->data(), dims_, order_); }

 private:
  static OrtValue* tensor(const Dims& dims, float* data) {
    OrtMemoryInfo* info = nullptr;
    OrtValue* value = nullptr;
    check(ort_create_cpu_memory_info(kOrtArenaAllocator, kOrtDefaultMemory, &info));
    check(ort_create_tensor_with_data(info, data, static_cast<std::size_t>(count_of(dims)) * sizeof(float), dims.data(),
                                      dims.size(), kOrtFloat, &value));
    ort_release_memory_info(info);
    return value;
  }

  OrtSession* session_ = nullptr;
  std::vector<const char*> names_;
  std::vector<OrtValue*> inputs_;
  std::vector<std::vector<float>> kept_;
  Dims dims_;
  std::vector<std::size_t> order_;
  std::unique_ptr<Floats> memory_;
  OrtValue* output_ = nullptr;
};

class OnnxruntimePeer final : public Peer {
 public:
  OnnxruntimePeer() { check(ort_create_env(kOrtWarning, "vitro", &env_)); }

  const char* name() const override { return "onnxruntime"; }
  std::string version() const override { return OrtGetApiBase()->version_string(); }
  bool set_threads(int count) override {
    threads_ = count;
    return true;
  }

  std::unique_ptr<Job> make(const Problem& p) override {
    switch (p.operation) {
      case Operation::gemm:
      case Operation::gemm_packed: return gemm(p);
      case Operation::conv: return conv(p);
      case Operation::lenet_scores: return lenet(p);
      case Operation::conv_grad_input:
      case Operation::conv_grad_weight:
      case Operation::lenet_step: break;
    }
    return nullptr;
  }

 private:
  std::unique_ptr<Job> gemm(const Problem& p) const {
    const Dims a{p.gemm.m, p.gemm.k}, b{p.gemm.k, p.gemm.n}, y{p.gemm.m, p.gemm.n};
    OnnxModel model;
    model.input("a", a);
    if (p.operation == Operation::gemm) {
      model.input("b", b);
    } else {
      model.constant("b", b, {p.b, p.b + count_of(b)});
    }
    model.node("MatMul", {"a", "b"}, "y");
    model.output("y", y);
    auto job = std::make_unique<OrtJob>(env_, model, threads_);
    job->input("a", a, p.a);
    if (p.operation == Operation::gemm) job->input("b", b, p.b);
    job->output(y);
    return job;
  }

  std::unique_ptr<Job> conv(const Problem& p) const {
    const ConvShape& s = p.conv;
    const Dims x{s.batch, s.in, s.size, s.size}, y{s.batch, s.out, s.out_size(), s.out_size()};
    OnnxModel model;
    model.input("x", x);
    model.constant("w", {s.out, s.in, s.kernel, s.kernel}, permuted(p.b, {s.kernel, s.kernel, s.in, s.out}, {3, 2, 0, 1}));
    model.constant("bias", {s.out}, {p.bias, p.bias + s.out});
    model.node(
        "Conv", {"x", "w", "bias"}, "y",
        {{"kernel_shape", {s.kernel, s.kernel}}, {"strides", {s.stride, s.stride}}, {"pads", {s.pad, s.pad, s.pad, s.pad}}});
    model.output("y", y);
    auto job = std::make_unique<OrtJob>(env_, model, threads_);
    job->input("x", x, job->keep(permuted(p.a, {s.batch, s.size, s.size, s.in}, {0, 3, 1, 2})));
    job->output(y, {0, 2, 3, 1});
    return job;
  }

  // Images have one channel, so that both layouts are the same. The first linear layer reads pixels before channels in Vitro
  // and channels before pixels here.
  std::unique_ptr<Job> lenet(const Problem& p) const {
    const std::vector<std::vector<float>>& w = p.lenet.parameters;
    const Dims x{p.lenet.batch, 1, 28, 28}, y{p.lenet.batch, 10};
    OnnxModel model;
    const auto pooled_conv = [&](const std::string& in, std::size_t first, Index channels, Index out, const std::string& name) {
      model.constant(name + "w", {out, channels, 5, 5}, permuted(w[first].data(), {5, 5, channels, out}, {3, 2, 0, 1}));
      model.constant(name + "b", {out}, w[first + 1]);
      model.node("Conv", {in, name + "w", name + "b"}, name + "y", {{"kernel_shape", {5, 5}}});
      model.node("Relu", {name + "y"}, name + "z");
      model.node("MaxPool", {name + "z"}, name, {{"kernel_shape", {2, 2}}, {"strides", {2, 2}}});
    };
    const auto linear = [&](const std::string& in, const std::vector<float>& weights, const std::vector<float>& bias,
                            const std::string& name) {
      const auto out = static_cast<std::int64_t>(bias.size());
      model.constant(name + "w", {static_cast<std::int64_t>(weights.size()) / out, out}, weights);
      model.constant(name + "b", {out}, bias);
      model.node("Gemm", {in, name + "w", name + "b"}, name);
    };
    model.input("x", x);
    pooled_conv("x", 0, 1, 6, "pool1");
    pooled_conv("pool1", 2, 6, 16, "pool2");
    model.node("Flatten", {"pool2"}, "flat");
    linear("flat", permuted(w[4].data(), {4, 4, 16, 120}, {2, 0, 1, 3}), w[5], "fc1");
    model.node("Relu", {"fc1"}, "relu1");
    linear("relu1", w[6], w[7], "fc2");
    model.node("Relu", {"fc2"}, "relu2");
    linear("relu2", w[8], w[9], "y");
    model.output("y", y);
    auto job = std::make_unique<OrtJob>(env_, model, threads_);
    job->input("x", x, p.a);
    job->output(y);
    return job;
  }

  OrtEnv* env_ = nullptr;
  int threads_ = 1;
};

}  // namespace
}  // namespace vitro_bench

VITRO_BENCH_PEER(vitro_bench::OnnxruntimePeer)
