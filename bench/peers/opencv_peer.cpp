// SPDX-License-Identifier: Apache-2.0
// OpenCV's dnn: a network of one convolution.
#include "peer.hpp"

#include <cstring>
#include <opencv2/core/utility.hpp>
#include <opencv2/core/version.hpp>
#include <opencv2/dnn/dnn.hpp>

namespace vitro_bench {
namespace {

// OpenCV's images and filters have channels before pixels.
class OpencvConv final : public Job {
 public:
  explicit OpencvConv(const Problem& p) : shape_(p.conv) {
    const ConvShape& s = shape_;
    cv::dnn::LayerParams layer;
    layer.name = "conv", layer.type = "Convolution";
    layer.set("kernel_size", static_cast<int>(s.kernel));
    layer.set("stride", static_cast<int>(s.stride));
    layer.set("pad", static_cast<int>(s.pad));
    layer.set("num_output", static_cast<int>(s.out));
    layer.set("bias_term", true);
    layer.blobs.push_back(blob(s.out, s.in, s.kernel));
    for (Index i = 0, count = s.w_count(); i < count; ++i) {  // i runs over w[kh, kw, in, out]
      const Index out = i % s.out, in = i / s.out % s.in, pixel = i / (s.out * s.in);
      layer.blobs[0].ptr<float>()[(out * s.in + in) * s.kernel * s.kernel + pixel] = p.b[i];
    }
    layer.blobs.push_back(cv::Mat(1, static_cast<int>(s.out), CV_32F));
    std::memcpy(layer.blobs[1].ptr<float>(), p.bias, static_cast<std::size_t>(s.out) * sizeof(float));
    net_.addLayerToPrev(layer.name, layer.type, layer);
    net_.setPreferableBackend(cv::dnn::DNN_BACKEND_OPENCV);
    cv::Mat x = blob(s.batch, s.in, s.size);
    for (Index i = 0, count = s.x_count(); i < count; ++i) {  // i runs over x[n, h, w, in]
      const Index in = i % s.in, pixel = i / s.in % (s.size * s.size), n = i / (s.in * s.size * s.size);
      x.ptr<float>()[(n * s.in + in) * s.size * s.size + pixel] = p.a[i];
    }
    net_.setInput(x);
  }

  void run() override { y_ = net_.forward(); }

  std::vector<float> result() override {
    const ConvShape& s = shape_;
    const Index pixels = s.out_size() * s.out_size();
    std::vector<float> nhwc(static_cast<std::size_t>(s.y_count()));
    for (Index i = 0, count = s.y_count(); i < count; ++i) {
      const Index out = i % s.out, pixel = i / s.out % pixels, n = i / (s.out * pixels);
      nhwc[static_cast<std::size_t>(i)] = y_.ptr<float>()[(n * s.out + out) * pixels + pixel];
    }
    return nhwc;
  }

 private:
  static cv::Mat blob(Index n, Index channels, Index size) {
    const int dims[] = {static_cast<int>(n), static_cast<int>(channels), static_cast<int>(size), static_cast<int>(size)};
    return cv::Mat(4, dims, CV_32F);
  }

  ConvShape shape_;
  cv::dnn::Net net_;
  cv::Mat y_;
};

class OpencvPeer final : public Peer {
 public:
  const char* name() const override { return "opencv"; }
  std::string version() const override { return CV_VERSION; }
  bool set_threads(int count) override {
    cv::setNumThreads(count);
    return true;
  }
  std::unique_ptr<Job> make(const Problem& p) override {
    return p.operation == Operation::conv ? std::make_unique<OpencvConv>(p) : nullptr;
  }
};

}  // namespace
}  // namespace vitro_bench

VITRO_BENCH_PEER(vitro_bench::OpencvPeer)
