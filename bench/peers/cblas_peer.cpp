// SPDX-License-Identifier: Apache-2.0
// OpenBLAS and MKL: products by cblas_sgemm, MKL's also with a packed B, and a convolution by im2col as one writes it by hand.
//
// Compiled once for each library. VITRO_PEER_MKL is defined for MKL, VITRO_PEER_PREFIX for an OpenBLAS whose functions have
// one.
#include "floats.hpp"
#include "peer.hpp"

#include <cstring>
#ifdef VITRO_PEER_MKL
#include <mkl_cblas.h>
#include <mkl_service.h>
#define VITRO_PEER_SGEMM cblas_sgemm
#else
#include <cblas.h>
#define VITRO_PEER_JOIN(prefix, name) prefix##name
#define VITRO_PEER_EXPAND(prefix, name) VITRO_PEER_JOIN(prefix, name)
#ifdef VITRO_PEER_PREFIX
#define VITRO_PEER_OPENBLAS(name) VITRO_PEER_EXPAND(VITRO_PEER_PREFIX, name)
#else
#define VITRO_PEER_OPENBLAS(name) name
#endif
#define VITRO_PEER_SGEMM VITRO_PEER_OPENBLAS(cblas_sgemm)
#endif

namespace vitro_bench {
namespace {

int narrow(Index value) { return static_cast<int>(value); }

void sgemm(Index m, Index n, Index k, const float* a, const float* b, float beta, float* c) {
  VITRO_PEER_SGEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, narrow(m), narrow(n), narrow(k), 1.0f, a, narrow(k), b, narrow(n),
                   beta, c, narrow(n));
}

class GemmJob final : public Job {
 public:
  explicit GemmJob(const Problem& p) : p_(p), c_(p.gemm.m * p.gemm.n) {}
  void run() override { sgemm(p_.gemm.m, p_.gemm.n, p_.gemm.k, p_.a, p_.b, 0.0f, c_.data()); }
  std::vector<float> result() override { return c_.copy(); }

 private:
  Problem p_;
  Floats c_;
};

#ifdef VITRO_PEER_MKL
class PackedGemmJob final : public Job {
 public:
  explicit PackedGemmJob(const Problem& p)
      : p_(p),
        c_(p.gemm.m * p.gemm.n),
        packed_(static_cast<Index>(
            cblas_sgemm_pack_get_size(CblasBMatrix, narrow(p.gemm.m), narrow(p.gemm.n), narrow(p.gemm.k)) / sizeof(float))) {
    const auto [m, n, k] = p.gemm;
    cblas_sgemm_pack(CblasRowMajor, CblasBMatrix, CblasNoTrans, narrow(m), narrow(n), narrow(k), 1.0f, p.b, narrow(n),
                     packed_.data());
  }
  void run() override {
    const auto [m, n, k] = p_.gemm;
    cblas_sgemm_compute(CblasRowMajor, CblasNoTrans, CblasPacked, narrow(m), narrow(n), narrow(k), p_.a, narrow(k),
                        packed_.data(), narrow(n), 0.0f, c_.data(), narrow(n));
  }
  std::vector<float> result() override { return c_.copy(); }

 private:
  Problem p_;
  Floats c_, packed_;
};
#else
// x becomes one row of kernel * kernel * in numbers for each output pixel, and the rest is a product. The bias is written first
// and added to, which saves a pass.
class Im2colJob final : public Job {
 public:
  explicit Im2colJob(const Problem& p)
      : p_(p), columns_(p.conv.batch * p.conv.out_size() * p.conv.out_size() * depth()), y_(p.conv.y_count()) {}

  void run() override {
    const ConvShape& s = p_.conv;
    const Index rows = s.batch * s.out_size() * s.out_size();
    im2col();
    for (Index row = 0; row < rows; ++row) {
      std::memcpy(y_.data() + row * s.out, p_.bias, static_cast<std::size_t>(s.out) * sizeof(float));
    }
    sgemm(rows, s.out, depth(), columns_.data(), p_.b, 1.0f, y_.data());
  }
  std::vector<float> result() override { return y_.copy(); }

 private:
  Index depth() const { return p_.conv.kernel * p_.conv.kernel * p_.conv.in; }

  void im2col() {
    const ConvShape& s = p_.conv;
    const std::size_t pixel = static_cast<std::size_t>(s.in) * sizeof(float);
    float* column = columns_.data();
    for (Index n = 0; n < s.batch; ++n) {
      for (Index oh = 0; oh < s.out_size(); ++oh) {
        for (Index ow = 0; ow < s.out_size(); ++ow) {
          for (Index kh = 0; kh < s.kernel; ++kh) {
            for (Index kw = 0; kw < s.kernel; ++kw, column += s.in) {
              const Index h = oh * s.stride - s.pad + kh, w = ow * s.stride - s.pad + kw;
              if (h < 0 || h >= s.size || w < 0 || w >= s.size) {
                std::memset(column, 0, pixel);
              } else {
                std::memcpy(column, p_.a + ((n * s.size + h) * s.size + w) * s.in, pixel);
              }
            }
          }
        }
      }
    }
  }

  Problem p_;
  Floats columns_, y_;
};
#endif

class CblasPeer final : public Peer {
 public:
#ifdef VITRO_PEER_MKL
  // Threads by GNU's OpenMP, like oneDNN's; with one thread its speed is that of the sequential layer.
  CblasPeer() { mkl_set_threading_layer(MKL_THREADING_GNU); }
  const char* name() const override { return "mkl"; }
  std::string version() const override {
    char text[200] = {};
    mkl_get_version_string(text, sizeof text);
    return text;
  }
  bool set_threads(int count) override {
    mkl_set_dynamic(0);
    mkl_set_num_threads(count);
    return true;
  }
#else
  const char* name() const override { return "openblas"; }
  // The last word is the processor whose kernels it has chosen: an old one where it does not know this machine's.
  std::string version() const override {
    return std::string(VITRO_PEER_OPENBLAS(openblas_get_config)()) + ": " + VITRO_PEER_OPENBLAS(openblas_get_corename)();
  }
  bool set_threads(int count) override {
    if (VITRO_PEER_OPENBLAS(openblas_get_parallel)() == OPENBLAS_SEQUENTIAL) return count == 1;
    VITRO_PEER_OPENBLAS(openblas_set_num_threads)(count);
    return true;
  }
#endif

  std::unique_ptr<Job> make(const Problem& p) override {
    if (p.operation == Operation::gemm) return std::make_unique<GemmJob>(p);
#ifdef VITRO_PEER_MKL
    if (p.operation == Operation::gemm_packed) return std::make_unique<PackedGemmJob>(p);
#else
    if (p.operation == Operation::conv) return std::make_unique<Im2colJob>(p);
#endif
    return nullptr;
  }
};

}  // namespace
}  // namespace vitro_bench

VITRO_BENCH_PEER(vitro_bench::CblasPeer)
