// SPDX-License-Identifier: Apache-2.0
// oneDNN: matmul on plain and on chosen layouts, and convolutions with all layouts of its choosing.
#include "peer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <oneapi/dnnl/dnnl_config.h>
// The headers come from a build with this experiment, the library from one without; it changes the names of functions.
#undef DNNL_EXPERIMENTAL_SPARSE
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

// GNU's OpenMP, which the library runs on, also where the compiler that builds this has a header for another one or none.
extern "C" void omp_set_num_threads(int count);

namespace vitro_bench {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

memory::desc describe(const memory::dims& dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }

// A primitive, its operands in the layouts that it chose, and the plain layout its result is read in.
class OnednnJob final : public Job {
 public:
  OnednnJob(const dnnl::engine& engine, const dnnl::stream& stream) : engine_(engine), stream_(stream) {}

  // Copies `data`, dense in `plain`, into the layout `chosen`.
  void input(int argument, const memory::desc& chosen, const memory::desc& plain, const float* data) {
    memory from(plain, engine_);
    std::memcpy(from.get_data_handle(), data, plain.get_size());
    memory to(chosen, engine_);
    dnnl::reorder(from, to).execute(stream_, from, to);
    stream_.wait();
    arguments_.emplace(argument, to);
  }
  void output(int argument, const memory::desc& chosen, const memory::desc& plain) {
    result_ = memory(chosen, engine_);
    plain_ = plain;
    arguments_.emplace(argument, result_);
  }
  template <class Description>
  void primitive(const Description& description, const dnnl::primitive& primitive) {
    arguments_.emplace(DNNL_ARG_SCRATCHPAD, memory(description.scratchpad_desc(), engine_));
    primitive_ = primitive;
  }

  void run() override {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }
  std::vector<float> result() override {
    memory plain(plain_, engine_);
    dnnl::reorder(result_, plain).execute(stream_, result_, plain);
    stream_.wait();
    const float* const begin = static_cast<const float*>(plain.get_data_handle());
    return {begin, begin + plain_.get_size() / sizeof(float)};
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> arguments_;
  memory result_;
  memory::desc plain_;
};

class OnednnPeer final : public Peer {
 public:
  const char* name() const override { return "onednn"; }
  std::string version() const override {
    const dnnl_version_t* const v = dnnl_version();
    return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch) + ", " +
           (v->cpu_runtime == DNNL_RUNTIME_OMP ? "OpenMP" : "runtime " + std::to_string(v->cpu_runtime));
  }
  bool set_threads(int count) override {
    omp_set_num_threads(count);
    return true;
  }

  std::unique_ptr<Job> make(const Problem& p) override {
    switch (p.operation) {
      case Operation::gemm: return gemm(p, Tag::ab);
      case Operation::gemm_packed: return gemm(p, Tag::any);
      case Operation::conv: return conv(p);
      case Operation::conv_grad_input: return conv_grad_input(p);
      case Operation::conv_grad_weight: return conv_grad_weight(p);
      case Operation::lenet_step:
      case Operation::lenet_scores: break;
    }
    return nullptr;
  }

 private:
  std::unique_ptr<Job> gemm(const Problem& p, Tag weights) {
    const auto [m, n, k] = p.gemm;
    const memory::desc a = describe({m, k}, Tag::ab), b = describe({k, n}, Tag::ab), c = describe({m, n}, Tag::ab);
    const dnnl::matmul::primitive_desc pd(engine_, a, describe({k, n}, weights), c, attributes_);
    auto job = std::make_unique<OnednnJob>(engine_, stream_);
    job->input(DNNL_ARG_SRC, pd.src_desc(), a, p.a);
    job->input(DNNL_ARG_WEIGHTS, pd.weights_desc(), b, p.b);
    job->output(DNNL_ARG_DST, pd.dst_desc(), c);
    job->primitive(pd, dnnl::matmul(pd));
    return job;
  }

  // The dimensions are given in oneDNN's order (channels before pixels, output channels first); the tag says how memory lies.
  struct ConvDescs {
    explicit ConvDescs(const ConvShape& s)
        : x_dims{s.batch, s.in, s.size, s.size},
          w_dims{s.out, s.in, s.kernel, s.kernel},
          y_dims{s.batch, s.out, s.out_size(), s.out_size()},
          strides{s.stride, s.stride},
          pads{s.pad, s.pad},
          // What the stride leaves over at the end is no padding.
          end_pads{(s.out_size() - 1) * s.stride + s.kernel - s.size - s.pad,
                   (s.out_size() - 1) * s.stride + s.kernel - s.size - s.pad} {}

    memory::dims x_dims, w_dims, y_dims, strides, pads, end_pads;
    memory::desc x = describe(x_dims, Tag::nhwc), w = describe(w_dims, Tag::hwio), y = describe(y_dims, Tag::nhwc);
    memory::desc any_x = describe(x_dims, Tag::any), any_w = describe(w_dims, Tag::any), any_y = describe(y_dims, Tag::any);
  };

  dnnl::convolution_forward::primitive_desc forward(const ConvDescs& d, const memory::desc& bias, dnnl::prop_kind kind) const {
    return {engine_,    kind,       dnnl::algorithm::convolution_direct, d.any_x, d.any_w, bias, d.any_y, d.strides, d.pads,
            d.end_pads, attributes_};
  }

  // For inference and for training oneDNN chooses other kernels and layouts, and the first choice is not always the faster one
  // (LeNet-5's second convolution at batch 64: 178 and 137 us with version 3.6). Both may be used; the faster one is compared.
  std::unique_ptr<Job> conv(const Problem& p) {
    std::unique_ptr<Job> inference = conv(p, dnnl::prop_kind::forward_inference);
    std::unique_ptr<Job> training = conv(p, dnnl::prop_kind::forward_training);
    double best_inference = HUGE_VAL, best_training = HUGE_VAL;
    for (int i = 0; i < 5; ++i) {
      best_inference = std::min(best_inference, seconds(*inference));
      best_training = std::min(best_training, seconds(*training));
    }
    return best_inference < best_training ? std::move(inference) : std::move(training);
  }

  static double seconds(Job& job) {
    const auto start = std::chrono::steady_clock::now();
    job.run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  std::unique_ptr<Job> conv(const Problem& p, dnnl::prop_kind kind) {
    const ConvDescs d(p.conv);
    const memory::desc bias = describe({p.conv.out}, Tag::a);
    const auto pd = forward(d, bias, kind);
    auto job = std::make_unique<OnednnJob>(engine_, stream_);
    job->input(DNNL_ARG_SRC, pd.src_desc(), d.x, p.a);
    job->input(DNNL_ARG_WEIGHTS, pd.weights_desc(), d.w, p.b);
    job->input(DNNL_ARG_BIAS, pd.bias_desc(), bias, p.bias);
    job->output(DNNL_ARG_DST, pd.dst_desc(), d.y);
    job->primitive(pd, dnnl::convolution_forward(pd));
    return job;
  }

  std::unique_ptr<Job> conv_grad_input(const Problem& p) {
    const ConvDescs d(p.conv);
    const dnnl::convolution_backward_data::primitive_desc pd(engine_, dnnl::algorithm::convolution_direct, d.any_x, d.any_w,
                                                             d.any_y, d.strides, d.pads, d.end_pads,
                                                             forward(d, {}, dnnl::prop_kind::forward_training), attributes_);
    auto job = std::make_unique<OnednnJob>(engine_, stream_);
    job->input(DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), d.y, p.a);
    job->input(DNNL_ARG_WEIGHTS, pd.weights_desc(), d.w, p.b);
    job->output(DNNL_ARG_DIFF_SRC, pd.diff_src_desc(), d.x);
    job->primitive(pd, dnnl::convolution_backward_data(pd));
    return job;
  }

  std::unique_ptr<Job> conv_grad_weight(const Problem& p) {
    const ConvDescs d(p.conv);
    const dnnl::convolution_backward_weights::primitive_desc pd(engine_, dnnl::algorithm::convolution_direct, d.any_x, d.any_w,
                                                                d.any_y, d.strides, d.pads, d.end_pads,
                                                                forward(d, {}, dnnl::prop_kind::forward_training), attributes_);
    auto job = std::make_unique<OnednnJob>(engine_, stream_);
    job->input(DNNL_ARG_SRC, pd.src_desc(), d.x, p.a);
    job->input(DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), d.y, p.b);
    job->output(DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc(), d.w);
    job->primitive(pd, dnnl::convolution_backward_weights(pd));
    return job;
  }

  // Scratch memory is ours to keep: otherwise the library would look for it in every call.
  static dnnl::primitive_attr make_attributes() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::primitive_attr attributes_ = make_attributes();
};

}  // namespace
}  // namespace vitro_bench

VITRO_BENCH_PEER(vitro_bench::OnednnPeer)
