// SPDX-License-Identifier: Apache-2.0
// ncnn, through an embedded Python, since its wheel has neither headers nor the library's symbols: forward convolutions of one
// image, and LeNet-5's inference.
//
// A call from here is three calls into Python's binding; what they cost on a network without layers is named with the version.
// Numbers of 32 bits throughout; Winograd's convolutions, which ncnn takes for 3x3, are its choice.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
// Python's header comes first, as it asks for.
#include "layout.hpp"
#include "peer.hpp"

#include <chrono>
#include <dlfcn.h>
#include <stdexcept>

namespace vitro_bench {
namespace {

// make(description, weights, threads, pixels, shape) -> run() -> output; all arrays are memoryviews of floats.
constexpr const char* kProgram = R"(
import ncnn

def make(description, weights, threads, pixels, shape):
    net = ncnn.Net()
    net.opt.num_threads = threads
    for name in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage", "use_vulkan_compute"):
        setattr(net.opt, name, False)
    if net.load_param_mem(description) != 0 or net.load_model_mem(weights) == 0 and weights:
        raise RuntimeError("ncnn does not read the network")
    image = ncnn.Mat(memoryview(pixels).cast("B").cast("f", shape)).clone()
    output = "y" if " y " in description + " " else "x"
    def run():
        extractor = net.create_extractor()
        extractor.input("x", image)
        return extractor.extract(output)[1]
    return run
)";

struct Release {
  void operator()(PyObject* object) const { Py_DECREF(object); }
};
using Object = std::unique_ptr<PyObject, Release>;

// Throws Python's error where there is one.
Object checked(PyObject* object) {
  if (object != nullptr) return Object(object);
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const Object text(PyObject_Str(value));
  throw std::runtime_error(std::string("Python: ") + PyUnicode_AsUTF8(text.get()));
}

// The network as ncnn's two files have it: lines, and weights each after a zero (numbers of 32 bits).
class Net {
 public:
  void layer(const std::string& line, int blobs = 1) {
    lines_ += line + "\n";
    ++layers_;
    blobs_ += blobs;
  }
  void weights(const std::vector<float>& values, const float* bias, Index out) {
    weights_.append(4, '\0');
    append(values.data(), values.size());
    append(bias, static_cast<std::size_t>(out));
  }
  std::string text() const { return "7767517\n" + std::to_string(layers_) + " " + std::to_string(blobs_) + "\n" + lines_; }
  const std::string& data() const { return weights_; }

 private:
  void append(const float* values, std::size_t count) {
    weights_.append(reinterpret_cast<const char*>(values), count * sizeof(float));
  }
  std::string lines_, weights_;
  int layers_ = 0, blobs_ = 0;
};

class NcnnJob final : public Job {
 public:
  NcnnJob(PyObject* make, const Net& net, int threads, const std::vector<float>& pixels, Index channels, Index size,
          std::vector<std::int64_t> dims, std::vector<std::size_t> order)
      : dims_(std::move(dims)), order_(std::move(order)) {
    const Object shape = checked(Py_BuildValue("(nnn)", channels, size, size));
    const std::string& weights = net.data();
    run_ = checked(PyObject_CallFunction(
        make, "sy#iy#O", net.text().c_str(), weights.data(), static_cast<Py_ssize_t>(weights.size()), threads,
        reinterpret_cast<const char*>(pixels.data()), static_cast<Py_ssize_t>(pixels.size() * sizeof(float)), shape.get()));
  }
  void run() override { output_ = checked(PyObject_CallNoArgs(run_.get())); }

  // ncnn pads each channel to whole vectors; the copy is dense.
  std::vector<float> result() override {
    Py_buffer buffer;
    if (PyObject_GetBuffer(output_.get(), &buffer, PyBUF_FULL_RO) != 0) checked(nullptr);
    std::vector<float> dense(static_cast<std::size_t>(buffer.len) / sizeof(float));
    const int copied = PyBuffer_ToContiguous(dense.data(), &buffer, buffer.len, 'C');
    PyBuffer_Release(&buffer);
    if (copied != 0) checked(nullptr);
    return order_.empty() ? dense : permuted(dense.data(), dims_, order_);
  }

 private:
  std::vector<std::int64_t> dims_;
  std::vector<std::size_t> order_;
  Object run_, output_;
};

class NcnnPeer final : public Peer {
 public:
  NcnnPeer() {
    // Extension modules look for Python's symbols among those of the whole process.
    if (dlopen(VITRO_PEER_PYTHON, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) == nullptr) throw std::runtime_error(dlerror());
    Py_InitializeEx(0);  // without its signal handlers
    const Object path = checked(PyUnicode_FromString(VITRO_PEER_FOLDER));
    PyList_Insert(PySys_GetObject("path"), 0, path.get());
    globals_ = checked(PyDict_New());
    checked(PyRun_String(kProgram, Py_file_input, globals_.get(), globals_.get()));
    make_ = PyDict_GetItemString(globals_.get(), "make");
  }

  const char* name() const override { return "ncnn"; }
  std::string version() const override {
    const Object text = checked(PyRun_String("ncnn.__version__", Py_eval_input, globals_.get(), globals_.get()));
    char cost[100];
    std::snprintf(cost, sizeof cost, ", called through Python (%.1f us of each call, measured on a network without layers)",
                  empty_call() * 1e6);
    return PyUnicode_AsUTF8(text.get()) + std::string(cost);
  }
  bool set_threads(int count) override {
    threads_ = count;
    return true;
  }

  std::unique_ptr<Job> make(const Problem& p) override {
    if (p.operation == Operation::conv && p.conv.batch == 1) return conv(p);
    if (p.operation == Operation::lenet_scores && p.lenet.batch == 1) return lenet(p);
    return nullptr;
  }

 private:
  double empty_call() const {
    Net net;
    net.layer("Input x 0 1 x");
    NcnnJob job(make_, net, 1, std::vector<float>(28 * 28), 1, 28, {}, {});
    double best = 1;
    for (int i = 0; i < 1000; ++i) {
      const auto start = std::chrono::steady_clock::now();
      job.run();
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
  }

  // One convolution; its weights follow those before.
  static void add_conv(Net& net, const std::string& names, const ConvShape& s, const float* w, const float* bias, bool relu) {
    net.layer("Convolution " + names + " 0=" + std::to_string(s.out) + " 1=" + std::to_string(s.kernel) +
              " 3=" + std::to_string(s.stride) + " 4=" + std::to_string(s.pad) + " 5=1 6=" + std::to_string(s.w_count()) +
              (relu ? " 9=1" : ""));
    net.weights(permuted(w, {s.kernel, s.kernel, s.in, s.out}, {3, 2, 0, 1}), bias, s.out);
  }

  std::unique_ptr<Job> conv(const Problem& p) const {
    const ConvShape& s = p.conv;
    Net net;
    net.layer("Input x 0 1 x");
    add_conv(net, "conv 1 1 x y", s, p.b, p.bias, false);
    return std::make_unique<NcnnJob>(make_, net, threads_, permuted(p.a, {s.size, s.size, s.in}, {2, 0, 1}), s.in, s.size,
                                     std::vector<std::int64_t>{s.out, s.out_size(), s.out_size()},
                                     std::vector<std::size_t>{1, 2, 0});
  }

  std::unique_ptr<Job> lenet(const Problem& p) const {
    const std::vector<std::vector<float>>& w = p.lenet.parameters;
    Net net;
    const auto linear = [&](const std::string& names, const std::vector<float>& weights, const std::vector<float>& bias,
                            bool relu) {
      const auto out = static_cast<std::int64_t>(bias.size()), in = static_cast<std::int64_t>(weights.size()) / out;
      net.layer("InnerProduct " + names + " 0=" + std::to_string(out) + " 1=1 2=" + std::to_string(in * out) +
                (relu ? " 9=1" : ""));
      net.weights(permuted(weights.data(), {in, out}, {1, 0}), bias.data(), out);
    };
    net.layer("Input x 0 1 x");
    add_conv(net, "conv1 1 1 x a", {.batch = 1, .size = 28, .in = 1, .kernel = 5, .out = 6}, w[0].data(), w[1].data(), true);
    net.layer("Pooling pool1 1 1 a b 0=0 1=2 2=2");
    add_conv(net, "conv2 1 1 b c", {.batch = 1, .size = 12, .in = 6, .kernel = 5, .out = 16}, w[2].data(), w[3].data(), true);
    net.layer("Pooling pool2 1 1 c d 0=0 1=2 2=2");
    net.layer("Flatten flat 1 1 d e");
    linear("fc1 1 1 e f", permuted(w[4].data(), {4, 4, 16, 120}, {2, 0, 1, 3}), w[5], true);
    linear("fc2 1 1 f g", w[6], w[7], true);
    linear("fc3 1 1 g y", w[8], w[9], false);
    return std::make_unique<NcnnJob>(make_, net, threads_, std::vector<float>(p.a, p.a + 28 * 28), 1, 28,
                                     std::vector<std::int64_t>{}, std::vector<std::size_t>{});
  }

  Object globals_;
  PyObject* make_ = nullptr;  // of globals_
  int threads_ = 1;
};

}  // namespace
}  // namespace vitro_bench

VITRO_BENCH_PEER(vitro_bench::NcnnPeer)
