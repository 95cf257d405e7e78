// SPDX-License-Identifier: Apache-2.0
// What every library in the comparison is wrapped into: a module that prepares problems and runs them.
//
// Each peer is a shared object of its own, loaded with its own namespace (see load.cpp), because several of them export the
// same symbols. Vitro is one more implementation of Peer, linked into the program. All arrays that cross this interface are
// dense and in Vitro's layouts; a peer that prefers another one copies when the job is made, which nobody times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace vitro_bench {

using Index = std::ptrdiff_t;

enum class Operation {
  gemm,              // c[m, n] = a[m, k] * b[k, n], all three as they are
  gemm_packed,       // the same with b (and c, where the library wants) laid out before, as it likes
  conv,              // y = conv2d(x, w) + bias; a = x, b = w, laid out before as the library likes
  conv_grad_input,   // dx; a = dy, b = w
  conv_grad_weight,  // dw; a = x, b = dy
  lenet_step,        // one training step of LeNet-5
  lenet_scores,      // LeNet-5's scores[batch, 10]: inference
};

// Square filters, strides and padding, as all layers of LeNet-5 and ResNet-18 have them.
// x[batch, size, size, in], w[kernel, kernel, in, out], y[batch, out_size(), out_size(), out].
struct ConvShape {
  Index batch = 0, size = 0, in = 0, kernel = 0, out = 0, stride = 1, pad = 0;

  Index out_size() const { return (size + 2 * pad - kernel) / stride + 1; }
  Index x_count() const { return batch * size * size * in; }
  Index w_count() const { return kernel * kernel * in * out; }
  Index y_count() const { return batch * out_size() * out_size() * out; }
};

struct GemmShape {
  Index m = 0, n = 0, k = 0;
};

struct Sgd {
  float rate, momentum, weight_decay;
};

// Parameters in the order of the model's layers, weight before bias, as Vitro lays them out: filters [kh, kw, in, out], linear
// weights [in, out], of which the first reads pixels in the order (h, w, channel). A step is forward, mean cross-entropy,
// backward and one update.
struct LenetShape {
  Index batch = 0;
  std::vector<std::vector<float>> parameters;
  Sgd sgd{0.01f, 0.9f, 5e-4f};
};

// Of `gemm`, `conv` and `lenet` the one that the operation needs. Operands outlive the job.
struct Problem {
  Operation operation = Operation::gemm;
  GemmShape gemm;
  ConvShape conv;
  LenetShape lenet;  // a: images[batch, 28, 28, 1] in [0, 1], read anew in each run, as are the labels
  const float* a = nullptr;
  const float* b = nullptr;
  const float* bias = nullptr;           // [out], for conv
  const std::int32_t* labels = nullptr;  // [batch], for lenet_step
};

// One problem, ready to be run as often as one likes: memory taken, layouts chosen, code generated.
class Job {
 public:
  Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  virtual ~Job() = default;

  // What is timed. Complete when it returns.
  virtual void run() = 0;
  // After at least one run(): c, y, dx, dw or the scores; for lenet_step by how much all runs together have changed each
  // parameter (which shows a wrong layout, gradient or update, where the loss hardly would).
  virtual std::vector<float> result() = 0;
  // Of lenet_step: the mean loss of the last run, before its update.
  virtual float loss() const { return 0; }
};

class Peer {
 public:
  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;

  virtual const char* name() const = 0;
  virtual std::string version() const = 0;
  // For jobs made and run from now on. A peer that cannot have so many says false and is left out.
  virtual bool set_threads(int count) = 0;
  // Null where the library does not offer the operation.
  virtual std::unique_ptr<Job> make(const Problem& problem) = 0;
};

}  // namespace vitro_bench

// What lenet_step's result is: all of `now` less all of `before`.
inline std::vector<float> change(const std::vector<std::vector<float>>& now, const std::vector<std::vector<float>>& before) {
  std::vector<float> result;
  for (std::size_t i = 0; i < now.size(); ++i) {
    for (std::size_t j = 0; j < now[i].size(); ++j) result.push_back(now[i][j] - before[i][j]);
  }
  return result;
}

// What a module exports: its one Peer, which lives as long as the module.
#define VITRO_BENCH_PEER(Type)                                                              \
  extern "C" __attribute__((visibility("default"))) vitro_bench::Peer* vitro_bench_peer() { \
    static Type peer;                                                                       \
    return &peer;                                                                           \
  }
