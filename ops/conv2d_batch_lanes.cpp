// SPDX-License-Identifier: Apache-2.0
// Convolutions with few channels, computed with the images of the batch in the lanes of the vectors.
#include "conv2d_batch_lanes.hpp"

#include "conv2d_taps.hpp"
#include "row_batch.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

constexpr Index kMostImages = 64;  // of a block: the widest tile, and few enough that a transposed image stays in the caches

// Images of a block. Threads have images of their own; for the gradient with few channels, rows of pixels instead, as narrow
// blocks would be few chains then: 64 images 28x28x1 took two threads with 32 each 1.45 of the time of one.
Index forward_block(const Context& context, const Conv2dProblem& p) noexcept {
  return std::clamp<Index>((p.n + context.threads() - 1) / context.threads(), 1, kMostImages);
}
Index grad_input_block(const Context& context, const Conv2dProblem& p) noexcept {
  constexpr Index kFewestChains = 8;  // two instructions a cycle, each 4 cycles long
  const Index lanes = context.kernels().packed_b_size(1, 1), share = (p.n + context.threads() - 1) / context.threads();
  return std::clamp<Index>(p.c * share >= kFewestChains * lanes ? share : p.n, 1, kMostImages);
}

// `channels` are the columns of the product that has pixels for rows; `image` the floats of an image that is to be transposed,
// `most` those for which that pays.
bool batch_lanes_pay(const Context& context, const Conv2dProblem& p, Index block, Index channels, Index image,
                     Index most) noexcept {
  constexpr float kGain = 1.3f;        // what the two transpositions cost
  constexpr Index kFewestImages = 32;  // with fewer, pixels in the lanes are as fast or faster
  if (p.n == 0 || channels == 0 || p.attrs.groups != 1 || image > most || p.n < kFewestImages) return false;
  return relative_speed(context.kernels(), block) >= kGain * relative_speed(context.kernels(), channels);
}

// A thread's scratch, cut into what a direction needs; the sizes in floats and in pointers.
struct Scratch {
  Scratch(const Context& context, Index block, Index source, Index target_row, Index rows, Index segments, Index copied,
          Index filter_floats) noexcept
      : pitch((block + 15) / 16 * 16),
        source_bytes(aligned_up(float_bytes(context.kernels().packed_b_size(source, block)))),
        target_bytes(aligned_up(float_bytes(target_row * pitch))),
        copied_bytes(aligned_up(float_bytes(copied * block))),
        a_bytes(aligned_up(static_cast<std::size_t>(rows * segments) * sizeof(float*))),
        c_bytes(aligned_up(static_cast<std::size_t>(rows) * sizeof(float*))),
        segment_bytes(aligned_up(static_cast<std::size_t>(segments) * sizeof(Index))),
        filter_bytes(aligned_up(float_bytes(filter_floats))) {}

  std::size_t bytes() const noexcept {
    return source_bytes + target_bytes + copied_bytes + a_bytes + c_bytes + segment_bytes + filter_bytes;
  }
  void place(std::byte* memory) noexcept {
    const auto take = [&memory](std::size_t size) {
      std::byte* const at = memory;
      memory += size;
      return at;
    };
    transposed = reinterpret_cast<float*>(take(source_bytes));
    target = reinterpret_cast<float*>(take(target_bytes));
    copy = reinterpret_cast<float*>(take(copied_bytes));
    a = reinterpret_cast<const float**>(take(a_bytes));
    c = reinterpret_cast<float**>(take(c_bytes));
    b_segments = reinterpret_cast<Index*>(take(segment_bytes));
    filters = reinterpret_cast<float*>(take(filter_bytes));
  }

  Index pitch;  // of the target's rows
  std::size_t source_bytes, target_bytes, copied_bytes, a_bytes, c_bytes, segment_bytes, filter_bytes;
  float* transposed = nullptr;  // the block's images as a packed B: [elements of an image, images]
  float* target = nullptr;      // one row of pixels of the result: [W * channels, pitch]
  float* copy = nullptr;        // the block's images with their padding
  const float** a = nullptr;    // [rows, segments]
  float** c = nullptr;          // [rows]
  Index* b_segments = nullptr;
  float* filters = nullptr;  // gradient: [C, KH, KW, OC]
};

Scratch forward_scratch(const Context& context, const Conv2dProblem& p) noexcept {
  const Index image = padded_height(p) * padded_width(p) * p.c;
  return Scratch(context, forward_block(context, p), image, p.ow * p.oc, p.oc, p.kh * p.kw, has_padding(p.attrs) ? image : 0,
                 0);
}

Scratch grad_input_scratch(const Context& context, const Conv2dProblem& p) noexcept {
  return Scratch(context, grad_input_block(context, p), p.oh * p.ow * p.oc, p.w * p.c, p.c, p.kh * p.kw, 0,
                 p.kh * p.kw * p.c * p.oc);
}

// Rows of the target are the channels of pixel `pixel` of the row.
void set_target(const Scratch& scratch, Index pixel, Index channels) noexcept {
  for (Index i = 0; i < channels; ++i) scratch.c[i] = scratch.target + (pixel * channels + i) * scratch.pitch;
}

// Calls body(first image, images) for the blocks of [begin, end).
template <class Body>
void for_each_block(Index begin, Index end, Index most, const Body& body) noexcept {
  for (Index n = begin; n < end; n += most) body(n, std::min(most, end - n));
}

// y[images, row of pixels] of one block's residual and ReLU, which the products could not apply to transposed images.
void finish_rows(const Context& context, const Conv2dProblem& p, Index images, Index row, const Epilogue& epilogue,
                 float* y) noexcept {
  const Index image = p.oh * p.ow * p.oc;
  for (Index n = 0; n < images; ++n) {
    float* const at = y + n * image;
    context.kernels().add(row, at, epilogue.residual + (at - y), at);
    if (epilogue.relu) context.kernels().relu(row, at, at);
  }
}

}  // namespace

bool forward_in_batch_lanes(const Context& context, const Conv2dProblem& p) noexcept {
  // Larger images fill the lanes with their pixels. 64 images: 8x8x2 took 15 us this way and 22 that way, 28x28x1 155 and 156
  // (AVX-512), 272 and 228 (AVX2).
  constexpr Index kMostFloats = 512;
  return batch_lanes_pay(context, p, forward_block(context, p), p.oc, padded_height(p) * padded_width(p) * p.c, kMostFloats);
}

bool grad_input_in_batch_lanes(const Context& context, const Conv2dProblem& p) noexcept {
  constexpr Index kMostFloats = 1 << 13;  // a block of 64 takes 2 MB, the second-level cache
  return batch_lanes_pay(context, p, grad_input_block(context, p), p.c, p.oh * p.ow * p.oc, kMostFloats);
}

std::size_t forward_batch_lanes_bytes(const Context& context, const Conv2dProblem& p) noexcept {
  return forward_scratch(context, p).bytes();
}

std::size_t grad_input_batch_lanes_bytes(const Context& context, const Conv2dProblem& p) noexcept {
  return grad_input_scratch(context, p).bytes();
}

void run_forward_batch_lanes(Context& context, const Conv2dProblem& p, const float* x, const float* filters,
                             const Epilogue& epilogue, float* y) noexcept {
  const simd::KernelTable& kernels = context.kernels();
  const Conv2dAttrs& at = p.attrs;
  const Index width = padded_width(p), image = padded_height(p) * width * p.c, row = p.ow * p.oc;
  const bool adjacent = at.dilation_w == 1 || p.kw == 1;  // the taps of a kernel row are one segment
  simd::GemmRows product;
  product.rows = p.oc;
  product.segments = adjacent ? p.kh : p.kh * p.kw;
  product.segment_length = adjacent ? p.kw * p.c : p.c;
  product.packed_k = image;
  product.row_bias = epilogue.bias;
  product.relu = epilogue.relu && epilogue.residual == nullptr;
  const Index depth = p.kh * p.kw * p.c;

  context.parallel_for(p.n, p.oh * row * (depth / 16 + 1), [&](Index begin, Index end, int thread) {
    Scratch scratch = forward_scratch(context, p);
    scratch.place(context.thread_scratch(thread));
    simd::GemmRows pixel = product;
    pixel.a = scratch.a, pixel.b_segments = scratch.b_segments, pixel.packed_b = scratch.transposed, pixel.c = scratch.c;
    for (Index oc = 0; oc < p.oc; ++oc) {
      for (Index s = 0; s < product.segments; ++s) {
        scratch.a[oc * product.segments + s] = filters + oc * depth + s * product.segment_length;
      }
    }
    for_each_block(begin, end, forward_block(context, p), [&](Index first, Index images) {
      const float* source = x + first * p.h * p.w * p.c;
      if (has_padding(at)) {
        for (Index n = 0; n < images; ++n) copy_padded_image(p, source + n * p.h * p.w * p.c, scratch.copy + n * image);
        source = scratch.copy;
      }
      pack_b(kernels, image, images, source, 1, image, scratch.transposed);
      pixel.n = images;
      for (Index oh = 0; oh < p.oh; ++oh) {
        for (Index ow = 0; ow < p.ow; ++ow) {
          for (Index s = 0; s < product.segments; ++s) {
            const Index kh = adjacent ? s : s / p.kw, kw = adjacent ? 0 : s % p.kw;
            const Index ih = oh * at.stride_h + kh * at.dilation_h, iw = ow * at.stride_w + kw * at.dilation_w;
            scratch.b_segments[s] = (ih * width + iw) * p.c;
          }
          set_target(scratch, ow, p.oc);
          kernels.gemm_rows(pixel);
        }
        const Index to = first * p.oh * row + oh * row;
        kernels.transpose(row, images, scratch.target, scratch.pitch, y + to, p.oh * row);
        if (epilogue.residual != nullptr) {
          finish_rows(context, p, images, row, {nullptr, epilogue.residual + to, epilogue.relu}, y + to);
        }
      }
    });
  });
}

void run_grad_input_batch_lanes(Context& context, const Conv2dProblem& p, const float* dy, const float* w, float* dx) noexcept {
  const simd::KernelTable& kernels = context.kernels();
  const Axis h_axis = height_axis(p), w_axis = width_axis(p);
  const Index image = p.oh * p.ow * p.oc, row = p.w * p.c, taps = p.kh * p.kw;
  const Index block = grad_input_block(context, p), blocks = (p.n + block - 1) / block;
  const Index bands = blocks % context.threads() == 0 ? 1 : std::min<Index>(context.threads(), std::max<Index>(p.h, 1));
  // Outputs fall where taps rise. With the rows of dy turned round, those that a row of taps multiplies lie next to each other,
  // in its order, and are one segment: where each tap was one, 32 images 12x12x6 took 0.84 of the time, 64 0.91, 64 of 28x28x1
  // 0.87 (AVX-512).
  const bool adjacent = w_axis.stride == w_axis.dilation;
  simd::GemmRows product;
  product.rows = p.c;

  const Index work = p.h * row * block / bands * (taps * p.oc / 16 + 1);
  context.parallel_for(blocks * bands, work, [&](Index begin, Index end, int thread) {
    Scratch scratch = grad_input_scratch(context, p);
    scratch.place(context.thread_scratch(thread));
    for (Index ic = 0; ic < p.c; ++ic) {
      for (Index tap = 0; tap < taps; ++tap) {
        std::copy_n(w + (tap * p.c + ic) * p.oc, p.oc, scratch.filters + (ic * taps + tap) * p.oc);
      }
    }
    simd::GemmRows pixel = product;
    pixel.a = scratch.a, pixel.b_segments = scratch.b_segments, pixel.packed_b = scratch.transposed, pixel.c = scratch.c;
    for (Index item = begin; item < end; ++item) {
      const Index first = item / bands * block, images = std::min(block, p.n - first), band = item % bands;
      const Index top = band * p.h / bands, bottom = (band + 1) * p.h / bands;
      const OutputRange seen(h_axis, top, bottom);
      pixel.n = images, pixel.packed_k = (seen.end - seen.begin) * p.ow * p.oc;
      for (Index i = 0, to = 0; i < (seen.end - seen.begin) * p.ow; ++i, to += p.oc) {
        const Index oh = seen.begin + i / p.ow, ow = p.ow - 1 - i % p.ow;
        const float* const from = dy + first * image + (oh * p.ow + ow) * p.oc;
        kernels.pack_b({pixel.packed_k, images, from, 1, image, scratch.transposed, to, to + p.oc});
      }
      for (Index ih = top; ih < bottom; ++ih) {
        const TapRun rows = taps_at(h_axis, ih);
        for (Index iw = 0; iw < p.w; ++iw) {
          const TapRun columns = taps_at(w_axis, iw);
          const Index runs = adjacent ? std::min<Index>(columns.taps, 1) : columns.taps;
          pixel.segments = rows.taps * runs;
          pixel.segment_length = adjacent ? columns.taps * p.oc : p.oc;
          for (Index s = 0; s < pixel.segments; ++s) {
            const Index i = s / runs, j = s % runs;
            const Index tap = (rows.tap + i * rows.tap_step) * p.kw + columns.tap + j * columns.tap_step;
            const Index oh = rows.out - i * rows.out_step - seen.begin, ow = columns.out - j * columns.out_step;
            scratch.b_segments[s] = (oh * p.ow + p.ow - 1 - ow) * p.oc;
            for (Index ic = 0; ic < p.c; ++ic) scratch.a[ic * pixel.segments + s] = scratch.filters + (ic * taps + tap) * p.oc;
          }
          set_target(scratch, iw, p.c);
          kernels.gemm_rows(pixel);
        }
        kernels.transpose(row, images, scratch.target, scratch.pitch, dx + (first * p.h + ih) * row, p.h * row);
      }
    }
  });
}

}  // namespace vitro::ops
