// SPDX-License-Identifier: Apache-2.0
// Convolution forward: im2col as pointers into the image, multiplied by packed filters.
#include "conv2d.hpp"

#include "checks.hpp"
#include "conv2d_batch_lanes.hpp"
#include "conv2d_pixel_lanes.hpp"
#include "row_batch.hpp"

#include <algorithm>
#include <string>

namespace vitro::ops {
namespace {

// Distance in floats between the packed filters of two groups.
Index packed_step(const Context& context, const Conv2dProblem& p) noexcept {
  return packed_b_step(context.kernels(), p.kh * p.kw * p.group_in(), p.group_out());
}

// How the chain of one output pixel is cut into segments. Without groups and dilation the taps of one kernel row lie next to
// each other in the image, so one segment is kw * C long. That takes a window inside the image's width; where there is padding
// at the sides, either the taps become segments of their own, or the rows are copied with their zeros to scratch memory first.
struct ForwardPlan {
  bool whole_rows;  // one segment for each kernel row; otherwise one for each tap
  bool copy;        // the rows are copied, with their padding
  bool shared;      // all windows lie in the source: their kernel rows are equally far from their first pixels
  Index segments, segment_length;
  Index width;   // pixels from one source row to the next
  Index band;    // copy: output rows that are served by one copy of their input rows
  Index height;  // copy: input rows in a band
};

ForwardPlan forward_plan(const Conv2dProblem& p) noexcept {
  const Conv2dAttrs& at = p.attrs;
  ForwardPlan plan{};
  // The more channels, the less long segments gain: 28x28 pixels, 3x3 taps, as many output channels took about 25 to 30
  // %, 15 to 25 %, 4 % and 0 % less time with the copy for 4, 16, 32 and 64 channels (AVX2 and AVX-512 alike).
  constexpr Index kCopyChannels = 32;
  constexpr Index kBandFloats = 1 << 14;  // 64 KiB: the band stays in the caches until it is read
  const bool adjacent = at.groups == 1 && (at.dilation_w == 1 || p.kw == 1);
  const bool inside = at.pad_left == 0 && (p.ow - 1) * at.stride_w + p.kw <= p.w;
  plan.copy = adjacent && !inside && p.kw > 1 && p.c <= kCopyChannels;
  plan.whole_rows = adjacent && (inside || plan.copy);
  const Index reach = at.dilation_h * (p.kh - 1) + 1;
  const bool whole_windows = inside && at.pad_top == 0 && (p.oh - 1) * at.stride_h + reach <= p.h;
  plan.shared = plan.whole_rows && (whole_windows || plan.copy);
  plan.segments = plan.whole_rows ? p.kh : p.kh * p.kw;
  plan.segment_length = plan.whole_rows ? p.kw * p.c : p.group_in();
  plan.width = p.w;
  if (plan.copy) {
    plan.width += at.pad_left + at.pad_right;
    const Index affordable = (kBandFloats / std::max<Index>(plan.width * p.c, 1) - reach) / at.stride_h + 1;
    plan.band = std::clamp<Index>(affordable, 1, p.oh);
    plan.height = (plan.band - 1) * at.stride_h + reach;
  }
  return plan;
}

std::size_t table_bytes(const ForwardPlan& plan) noexcept {
  return aligned_up(static_cast<std::size_t>(plan.segments) * sizeof(Index));
}

// A thread's scratch: the batch's tables, where the kernel rows stand, then the band.
std::size_t thread_bytes(const Conv2dProblem& p, const ForwardPlan& plan) noexcept {
  const Index band = plan.copy ? plan.height * plan.width * p.c : 0;
  return row_batch_bytes(plan.segments) + table_bytes(plan) + aligned_up(float_bytes(band));
}

// Zeros to point to: as long as a segment, and as all channels, since groups step through them.
Index zero_row_floats(const Conv2dProblem& p) noexcept { return p.kw * p.c; }

// One thread's share of the forward pass.
class Forward {
 public:
  Forward(const Conv2dProblem& problem, const ForwardPlan& plan, const float* x, const float* zeros,
          std::byte* scratch) noexcept
      : p_(problem),
        plan_(plan),
        x_(x),
        zeros_(zeros),
        rows_(reinterpret_cast<Index*>(scratch + row_batch_bytes(plan.segments))),
        band_(reinterpret_cast<float*>(scratch + row_batch_bytes(plan.segments) + table_bytes(plan))) {
    for (Index kh = 0; plan.shared && kh < problem.kh; ++kh) {
      rows_[kh] = kh * problem.attrs.dilation_h * plan.width * problem.c;
    }
  }

  const Index* shared_rows() const noexcept { return plan_.shared ? rows_ : nullptr; }

  // Makes the input rows of output rows [oh, oh + count) of an image readable.
  void load(Index n, Index oh, Index count) noexcept {
    source_ = x_ + n * p_.h * p_.w * p_.c;
    if (!plan_.copy) return;
    const Index first = oh * p_.attrs.stride_h - p_.attrs.pad_top;
    const Index last = first + (count - 1) * p_.attrs.stride_h + p_.attrs.dilation_h * (p_.kh - 1);
    source_row_ = first;
    float* to = band_;
    for (Index ih = first; ih <= last; ++ih) {
      if (ih < 0 || ih >= p_.h) {
        to = std::fill_n(to, plan_.width * p_.c, 0.0f);
        continue;
      }
      to = std::fill_n(to, p_.attrs.pad_left * p_.c, 0.0f);
      to = std::copy_n(source_ + ih * p_.w * p_.c, p_.w * p_.c, to);
      to = std::fill_n(to, p_.attrs.pad_right * p_.c, 0.0f);
    }
    source_ = band_;
  }

  // Adds the pixels of one output row to the batch.
  void add_row(Index n, Index oh, RowBatch& batch, const float* residual, float* y) const noexcept {
    const Index row = (n * p_.oh + oh) * p_.ow * p_.oc;
    for (Index ow = 0; ow < p_.ow;) {
      const Index at = row + ow * p_.oc;
      const RowBatch::Rows rows = batch.add(p_.ow - ow, y + at, p_.oc, residual == nullptr ? nullptr : residual + at);
      const float** slots = rows.slots;
      if (plan_.shared) {
        const Index first_row = oh * p_.attrs.stride_h - p_.attrs.pad_top - source_row_;
        const float* const first = source_ + (first_row * plan_.width + ow * p_.attrs.stride_w) * p_.c;
        for (Index i = 0; i < rows.count; ++i) slots[i] = first + i * p_.attrs.stride_w * p_.c;
        ow += rows.count;
        continue;
      }
      for (Index kh = 0; kh < p_.kh; ++kh) {
        const Index ih = oh * p_.attrs.stride_h - p_.attrs.pad_top + kh * p_.attrs.dilation_h;
        const float* const pixels = ih < 0 || ih >= p_.h ? nullptr : source_ + (ih - source_row_) * plan_.width * p_.c;
        if (plan_.whole_rows) {
          fill_segment(pixels, ow * p_.attrs.stride_w, rows.count, slots++);
          continue;
        }
        for (Index kw = 0; kw < p_.kw; ++kw) {
          const Index column = ow * p_.attrs.stride_w - p_.attrs.pad_left + kw * p_.attrs.dilation_w;
          fill_segment(pixels, column, rows.count, slots++);
        }
      }
      ow += rows.count;
    }
  }

 private:
  // One segment's pointers for `count` output pixels: into the source row `pixels` (null for one in the padding) from `column`
  // on, a stride apart, and to zeros before and behind the row.
  void fill_segment(const float* pixels, Index column, Index count, const float** slots) const noexcept {
    const Index stride = p_.attrs.stride_w;
    const Index begin = pixels == nullptr ? count : std::clamp<Index>((stride - 1 - column) / stride, 0, count);
    const Index end = pixels == nullptr ? count : std::clamp<Index>((plan_.width + stride - 1 - column) / stride, begin, count);
    for (Index i = 0; i < begin; ++i) slots[i * plan_.segments] = zeros_;
    for (Index i = begin; i < end; ++i) slots[i * plan_.segments] = pixels + (column + i * stride) * p_.c;
    for (Index i = end; i < count; ++i) slots[i * plan_.segments] = zeros_;
  }

  const Conv2dProblem& p_;
  const ForwardPlan& plan_;
  const float* x_;
  const float* zeros_;
  Index* rows_;
  float* band_;
  const float* source_ = nullptr;  // input row source_row_ of the image
  Index source_row_ = 0;
};

std::string conv_names(const Shape& x, const Shape& w) {
  return "conv2d: x of shape " + to_string(x) + " and w of shape " + to_string(w);
}

// Output size along one axis, or 0 where the dilated kernel is larger than the padded input. Divides instead of multiplying, as
// dilation * (kernel - 1) may overflow.
Index output_size(Index padded, Index kernel, Index stride, Index dilation) noexcept {
  if (padded == 0 || kernel - 1 > (padded - 1) / dilation) return 0;
  return (padded - 1 - dilation * (kernel - 1)) / stride + 1;
}

}  // namespace

Result<Shape> conv2d_shape(const Conv2dAttrs& a, const Shape& x, const Shape& w) {
  if (x.rank() != 4 || w.rank() != 4) {
    return shape_error(conv_names(x, w) + " do not convolve; x is [N, H, W, C] and w is [KH, KW, C / groups, OC].");
  }
  if (a.stride_h == 0 || a.stride_w == 0 || a.dilation_h == 0 || a.dilation_w == 0 || a.groups == 0) {
    return Error(ErrorCode::invalid_argument,
                 conv_names(x, w) + " have a stride, dilation or group count of 0; each is at least 1.");
  }
  if (w[0] == 0 || w[1] == 0) {
    return shape_error(conv_names(x, w) + " do not convolve; a kernel is at least 1 x 1.");
  }
  if (x[3] % a.groups != 0 || w[3] % a.groups != 0) {
    return shape_error(conv_names(x, w) + " have " + std::to_string(x[3]) + " input and " + std::to_string(w[3]) +
                       " output channels, which must both be multiples of the " + std::to_string(a.groups) + " groups.");
  }
  if (w[2] != x[3] / a.groups) {
    return shape_error(conv_names(x, w) + " do not match: each filter reads " + std::to_string(w[2]) + " channels, but with " +
                       std::to_string(a.groups) + " group(s) it must read " + std::to_string(x[3] / a.groups) + ".");
  }
  const Index padded[] = {x[1] + a.pad_top + a.pad_bottom, x[2] + a.pad_left + a.pad_right};
  const Index oh = output_size(padded[0], w[0], a.stride_h, a.dilation_h);
  const Index ow = output_size(padded[1], w[1], a.stride_w, a.dilation_w);
  if (oh == 0 || ow == 0) {
    const Index dilation[] = {a.dilation_h, a.dilation_w};
    return shape_error(conv_names(x, w) + " do not convolve: the kernel " + to_string(w.dims().first(2)) + " with dilation " +
                       to_string(dilation) + " covers more than the padded image " + to_string(padded) + ".");
  }
  const Index dims[] = {x[0], oh, ow, w[3]};
  return Shape::make(dims);
}

Result<Conv2dProblem> conv2d_problem(const Conv2dAttrs& attrs, const Shape& x, const Shape& w) {
  const Result<Shape> y = conv2d_shape(attrs, x, w);
  if (!y) return y.error();
  // Some paths copy an image with its padding: its size must not overflow either.
  const Index padded[] = {x[0], x[1] + attrs.pad_top + attrs.pad_bottom, x[2] + attrs.pad_left + attrs.pad_right, x[3]};
  if (const Result<Shape> fits = Shape::make(padded); !fits) return fits.error();
  return Conv2dProblem{x[0], x[1], x[2], x[3], w[0], w[1], y.value()[1], y.value()[2], w[3], attrs};
}

std::size_t conv2d_packed_bytes(const Context& context, const Conv2dProblem& problem) {
  const bool other_roles = forward_in_pixel_lanes(context, problem) || forward_in_batch_lanes(context, problem);
  if (other_roles) return float_bytes(problem.kh * problem.kw * problem.c * problem.oc);
  return float_bytes(packed_step(context, problem) * problem.attrs.groups);
}

ScratchSize conv2d_packed_scratch(const Context& context, const Conv2dProblem& problem) {
  if (forward_in_pixel_lanes(context, problem)) return {0, forward_pixel_lanes_bytes(problem)};
  const bool lanes = forward_in_batch_lanes(context, problem);
  return {aligned_up(float_bytes(zero_row_floats(problem))),
          lanes ? forward_batch_lanes_bytes(context, problem) : thread_bytes(problem, forward_plan(problem))};
}

ScratchSize conv2d_scratch(const Context& context, const Conv2dProblem& problem) {
  ScratchSize size = conv2d_packed_scratch(context, problem);
  if (!forward_in_pixel_lanes(context, problem)) size.shared_bytes += conv2d_packed_bytes(context, problem);
  return size;
}

void pack_conv2d(Context& context, const Conv2dProblem& p, const float* w, float* packed) noexcept {
  if (forward_in_pixel_lanes(context, p)) {
    std::copy_n(w, p.kh * p.kw * p.c * p.oc, packed);
    return;
  }
  if (forward_in_batch_lanes(context, p)) {
    const Index depth = p.kh * p.kw * p.c;
    return context.kernels().transpose(depth, p.oc, w, p.oc, packed, depth);
  }
  const Index step = packed_step(context, p);
  for (Index group = 0; group < p.attrs.groups; ++group) {
    context.kernels().pack_b(p.kh * p.kw * p.group_in(), p.group_out(), w + group * p.group_out(), p.oc, 1,
                             packed + group * step);
  }
}

void run_conv2d(Context& context, const Conv2dProblem& problem, const float* x, const float* w, const Epilogue& epilogue,
                float* y) noexcept {
  if (forward_in_pixel_lanes(context, problem)) return run_forward_pixel_lanes(context, problem, x, w, epilogue, y);
  float* const packed = reinterpret_cast<float*>(context.shared_scratch() + aligned_up(float_bytes(zero_row_floats(problem))));
  pack_conv2d(context, problem, w, packed);
  run_conv2d_packed(context, problem, x, packed, epilogue, y);
}

void run_conv2d_packed(Context& context, const Conv2dProblem& p, const float* x, const float* packed, const Epilogue& epilogue,
                       float* y) noexcept {
  if (p.n == 0 || p.oc == 0) return;
  if (forward_in_pixel_lanes(context, p)) return run_forward_pixel_lanes(context, p, x, packed, epilogue, y);
  if (forward_in_batch_lanes(context, p)) return run_forward_batch_lanes(context, p, x, packed, epilogue, y);
  const ForwardPlan plan = forward_plan(p);
  float* const zeros = reinterpret_cast<float*>(context.shared_scratch());
  std::fill_n(zeros, zero_row_floats(p), 0.0f);

  simd::GemmRows product;
  product.n = p.group_out();
  product.segments = plan.segments;
  product.segment_length = plan.segment_length;
  product.packed_b = packed;
  product.packed_k = plan.segments * plan.segment_length;
  product.bias = epilogue.bias;
  product.relu = epilogue.relu;
  const GroupStep step{p.attrs.groups, p.group_in(), p.group_out(), packed_step(context, p)};
  const Index work = p.ow * (p.oc * (product.packed_k / 16 + 1) + plan.segments);

  context.parallel_for(p.n * p.oh, work, [&](Index begin, Index end, int thread) {
    std::byte* const scratch = context.thread_scratch(thread);
    Forward forward(p, plan, x, zeros, scratch);
    simd::GemmRows rows = product;
    rows.a_segments = forward.shared_rows();
    RowBatch batch(context.kernels(), rows, step, epilogue.residual != nullptr, scratch);
    for (Index row = begin; row < end;) {  // row n * OH + oh of the output
      const Index n = row / p.oh, oh = row % p.oh;
      Index count = std::min(p.oh - oh, end - row);
      if (plan.copy) count = std::min(count, plan.band);
      forward.load(n, oh, count);
      for (Index i = 0; i < count; ++i) forward.add_row(n, oh + i, batch, epilogue.residual, y);
      if (plan.copy) batch.flush();  // before the band is overwritten
      row += count;
    }
    batch.flush();
  });
}

void conv2d(Context& context, const Conv2dAttrs& attrs, ConstTensorView x, ConstTensorView w, TensorView y,
            const EpilogueViews& epilogue) {
  const Conv2dProblem problem = conv2d_problem(attrs, x.shape(), w.shape()).value();
  require_shape("conv2d", {"y", y}, Shape{problem.n, problem.oh, problem.ow, problem.oc});
  require_contiguous("conv2d", {{"x", x}, {"w", w}, {"y", y}});
  require_apart("conv2d", {"y", y}, {{"x", x}, {"w", w}});
  context.reserve_scratch(conv2d_scratch(context, problem));
  run_conv2d(context, problem, x.data(), w.data(), checked_epilogue("conv2d", epilogue, y), y.data());
}

}  // namespace vitro::ops
