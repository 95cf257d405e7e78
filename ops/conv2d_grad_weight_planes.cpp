// SPDX-License-Identifier: Apache-2.0
// The gradient of few filters, with a kernel row's taps in the lanes of the vectors.
#include "conv2d_grad_weight_planes.hpp"

#include "conv2d_chunks.hpp"
#include "conv2d_grad_weight_columns.hpp"
#include "conv2d_taps.hpp"
#include "row_batch.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

struct Planes : ImageChunks {
  explicit Planes(const Conv2dProblem& p) noexcept
      : ImageChunks(p),
        run(p.kw * p.c),
        step((run + simd::kPlaneStep - 1) / simd::kPlaneStep * simd::kPlaneStep),
        row(p.kh * step),
        pass(std::clamp<Index>(kPassFloats / std::max<Index>(row * p.oc, 1), 1, std::max<Index>(chunks, 1))),
        image(padded_height(p) * padded_width(p) * p.c),
        together(has_padding(p.attrs) ? 1 : std::clamp<Index>(kNearFloats / (image + p.oh * p.ow * p.oc), 1, images)) {}

  std::size_t table_bytes(const Conv2dProblem& p) const noexcept {
    return aligned_up(static_cast<std::size_t>(together * p.oh * p.ow) * sizeof(Index));
  }
  std::size_t copy_bytes() const noexcept { return float_bytes(image + simd::kPlaneStep); }

  static constexpr Index kPassFloats = 1 << 18;
  static constexpr Index kNearFloats = 1 << 13;  // 32 KB, a share of the first-level cache
  Index run, step;                               // taps of a kernel row, and as many columns as the kernel computes
  Index row;                                     // floats of a row of sums: [OC, KH, step]
  Index pass;                                    // chunks whose sums stand in shared scratch at a time
  Index image;                                   // floats of a (padded) image
  Index together;  // images that are multiplied at once: they are read for each kernel row and tile
};

// One thread's products.
class Product {
 public:
  Product(const simd::KernelTable& kernels, const Conv2dProblem& p, const Planes& planes, std::byte* scratch) noexcept
      : kernels_(kernels), p_(p), planes_(planes), copy_(reinterpret_cast<float*>(scratch + planes.table_bytes(p))) {
    Index* const pixels = reinterpret_cast<Index*>(scratch);
    const Index line = padded_width(p) * p.c;
    for (Index n = 0, i = 0; n < planes.together; ++n) {
      for (Index oh = 0; oh < p.oh; ++oh) {
        for (Index ow = 0; ow < p.ow; ++ow, ++i) {
          pixels[i] = n * planes.image + oh * p.attrs.stride_h * line + ow * p.attrs.stride_w * p.c;
        }
      }
    }
    std::fill_n(copy_ + planes.image, simd::kPlaneStep, 0.0f);
    product_.rows = p.oc, product_.n = planes.step;
    product_.a_row_stride = 1, product_.a_column_stride = p.oc;
    product_.b_rows = pixels;
    product_.c_stride = planes.row;
  }

  // Images [begin, end) of the batch, one chunk: sums = its chains.
  void run(const float* x, const float* dy, Index begin, Index end, float* sums) noexcept {
    const Index image = p_.h * p_.w * p_.c, outputs = p_.oh * p_.ow * p_.oc;
    product_.chain = false;
    for (Index n = begin, count = 0; n < end; n += count) {
      // A kernel row's last vector reaches beyond it: the batch's last image is copied, as one with padding is.
      const Index in_place = has_padding(p_.attrs) ? 0 : std::min({end - n, p_.n - 1 - n, planes_.together});
      count = std::max<Index>(in_place, 1);
      if (in_place == 0) copy_padded_image(p_, x + n * image, copy_);
      multiply(in_place == 0 ? copy_ : x + n * image, dy + n * outputs, count, sums);
      product_.chain = true;
    }
  }

 private:
  void multiply(const float* source, const float* dy, Index images, float* sums) noexcept {
    product_.k = images * p_.oh * p_.ow;
    product_.a = dy;
    for (Index kh = 0; kh < p_.kh; ++kh) {
      product_.b = source + kh * p_.attrs.dilation_h * padded_width(p_) * p_.c;
      product_.c = sums + kh * planes_.step;
      kernels_.gemm_planes(product_);
    }
  }

  const simd::KernelTable& kernels_;
  const Conv2dProblem& p_;
  const Planes& planes_;
  float* copy_;
  simd::GemmPlanes product_;
};

}  // namespace

bool grad_weight_in_planes(const Context& context, const Conv2dProblem& p) noexcept {
  if (!grad_weight_by_columns(context, p) || (p.attrs.dilation_w != 1 && p.kw != 1)) return false;
  const Planes planes(p);
  return 5 * planes.run >= 4 * planes.step && planes.image >= simd::kPlaneStep;
}

ScratchSize grad_weight_planes_scratch(const Context&, const Conv2dProblem& p) noexcept {
  const Planes planes(p);
  return {chunk_sum_bytes(planes.pass, planes.row * p.oc), planes.table_bytes(p) + planes.copy_bytes()};
}

void run_grad_weight_planes(Context& context, const Conv2dProblem& p, const float* x, const float* dy, float* dw) noexcept {
  const Planes planes(p);
  const simd::KernelTable& kernels = context.kernels();
  const Index size = planes.row * p.oc;
  float* const memory = reinterpret_cast<float*>(context.shared_scratch());
  const auto add = [&](Index begin, Index end, int thread, float* sums) {
    Product product(kernels, p, planes, context.thread_scratch(thread));
    for (Index chunk = begin; chunk < end; ++chunk, sums += size) {
      const Index n = chunk * planes.images;
      product.run(x, dy, n, std::min(n + planes.images, p.n), sums);
    }
  };
  const float* const total =
      add_chunks(context, planes.chunks, planes.pass, size, planes.images * p.oh * p.ow * size / 16, memory, add);
  for (Index kh = 0; kh < p.kh; ++kh) {
    kernels.transpose(p.oc, planes.run, total + kh * planes.step, planes.row, dw + kh * planes.run * p.oc, p.oc);
  }
}

}  // namespace vitro::ops
