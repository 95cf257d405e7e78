// SPDX-License-Identifier: Apache-2.0
// Convolution forward: im2col as pointers into the image, multiplied by packed filters.
#include "conv2d_rows.hpp"

#include "conv2d_taps.hpp"
#include "norm.hpp"
#include "row_batch.hpp"

#include <algorithm>

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

// Padding can be left out where it would be multiplied by finite weights: what it adds is a zero, and of the chain's result
// nothing but the sign of a zero could show it, which the +0 that follows takes away. Rows that are copied contain it, and
// windows that share their distances reach none.
bool may_skip_padding(const Conv2dProblem& p, const ForwardPlan& plan) noexcept {
  return has_padding(p.attrs) && !plan.copy && !plan.shared;
}

constexpr Index kFlag = 16;  // floats behind the packed weights, the first of which is +0 where all weights are finite

bool all_finite(const Context& context, Index count, const float* w) noexcept {
  const float total = context.kernels().sum_squares(count, w);
  std::int32_t finite = 0;
  run_all_finite(count, w, &total, nullptr, &finite);
  return finite != 0;
}

// Outputs [begin, end) of one axis whose windows have the same taps in the image: [tap, tap_end).
struct Windows {
  Index begin, end, tap, tap_end;
};

// The windows from output `begin` on, before `end`.
Windows windows_at(const Axis& axis, Index size, Index begin, Index end) noexcept {
  const auto taps = [&](Index output) {
    const Index first = output * axis.stride - axis.pad;  // pixel of tap 0
    const Index tap = first >= 0 ? 0 : std::min((axis.dilation - 1 - first) / axis.dilation, axis.kernel);
    const Index tap_end = first >= size ? tap : std::clamp((size - 1 - first) / axis.dilation + 1, tap, axis.kernel);
    return Windows{output, output + 1, tap, tap_end};
  };
  Windows windows = taps(begin);
  for (; windows.end < end; ++windows.end) {
    const Windows next = taps(windows.end);
    if (next.tap != windows.tap || next.tap_end != windows.tap_end) break;
  }
  return windows;
}

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

  // Adds the pixels of output rows [h_begin, h_end) of images [n_begin, n_end) to the batch, those together whose windows reach
  // beyond the image by the same taps; they lack these segments. Requires !plan.copy.
  void add_without_padding(Index n_begin, Index n_end, Index h_begin, Index h_end, RowBatch& batch, const float* residual,
                           float* y) const noexcept {
    for (Index oh = h_begin; oh < h_end;) {
      const Windows rows = windows_at(height_axis(p_), p_.h, oh, h_end);
      for (Index ow = 0; ow < p_.ow;) {
        // Where whole kernel rows are segments, none reaches beyond the sides.
        const Windows columns = plan_.whole_rows ? Windows{0, p_.ow, 0, 1} : windows_at(width_axis(p_), p_.w, ow, p_.ow);
        batch.begin_run();
        for (Index n = n_begin; n < n_end; ++n) {
          for (Index i = rows.begin; i < rows.end; ++i) add_windows(n, i, rows, columns, batch, residual, y);
        }
        ow = columns.end;
      }
      oh = rows.end;
    }
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
  // The pixels of one output row that `columns` says, whose windows have the taps that both say.
  void add_windows(Index n, Index oh, const Windows& rows, const Windows& columns, RowBatch& batch, const float* residual,
                   float* y) const noexcept {
    const Conv2dAttrs& at = p_.attrs;
    const Index taps = plan_.whole_rows ? 1 : p_.kw, step = at.stride_w * p_.c;
    for (Index ow = columns.begin; ow < columns.end;) {
      const Index to = ((n * p_.oh + oh) * p_.ow + ow) * p_.oc;
      const RowBatch::Rows added = batch.add(columns.end - ow, y + to, p_.oc, residual == nullptr ? nullptr : residual + to);
      std::fill_n(added.slots, added.count * plan_.segments, nullptr);
      for (Index kh = rows.tap; kh < rows.tap_end; ++kh) {
        const Index ih = oh * at.stride_h - at.pad_top + kh * at.dilation_h;
        for (Index kw = columns.tap; kw < columns.tap_end; ++kw) {
          const Index iw = ow * at.stride_w - at.pad_left + kw * at.dilation_w;
          const float* const pixel = x_ + ((n * p_.h + ih) * p_.w + iw) * p_.c;
          for (Index i = 0; i < added.count; ++i) added.slots[i * plan_.segments + kh * taps + kw] = pixel + i * step;
        }
      }
      ow += added.count;
    }
  }

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

// Output rows [begin, end), counted through all images, in blocks of about as many pixels as a batch of rows holds: whole
// images or some rows of one.
void add_blocks(const Conv2dProblem& p, Index pixels, const Forward& forward, Index begin, Index end, RowBatch& batch,
                const float* residual, float* y) noexcept {
  const Index most_rows = std::max<Index>(pixels / std::max<Index>(p.ow, 1), 1);
  for (Index row = begin; row < end;) {
    const Index n = row / p.oh, oh = row % p.oh;
    const Index images = oh > 0 ? 1 : std::clamp<Index>(std::min(most_rows, end - row) / p.oh, 1, p.n - n);
    const Index rows = std::min({p.oh - oh, end - row, most_rows});
    forward.add_without_padding(n, n + images, oh, oh + rows, batch, residual, y);
    batch.flush();
    row += images * rows;
  }
}

}  // namespace

std::size_t forward_rows_packed_bytes(const Context& context, const Conv2dProblem& p) noexcept {
  const Index flag = may_skip_padding(p, forward_plan(p)) ? kFlag : 0;
  return float_bytes(packed_step(context, p) * p.attrs.groups + flag);
}

void pack_forward_rows(Context& context, const Conv2dProblem& p, const float* w, float* packed) noexcept {
  const Index step = packed_step(context, p), depth = p.kh * p.kw * p.group_in();
  for (Index group = 0; group < p.attrs.groups; ++group) {
    pack_b(context, depth, p.group_out(), w + group * p.group_out(), p.oc, 1, packed + group * step);
  }
  if (may_skip_padding(p, forward_plan(p))) {
    packed[step * p.attrs.groups] = all_finite(context, depth * p.oc, w) ? 0.0f : 1.0f;
  }
}

ScratchSize forward_rows_scratch(const Conv2dProblem& p) noexcept {
  return {aligned_up(float_bytes(zero_row_floats(p))), thread_bytes(p, forward_plan(p))};
}

void run_forward_rows(Context& context, const Conv2dProblem& p, const float* x, const float* packed, const Epilogue& epilogue,
                      std::byte* scratch, float* y) noexcept {
  const ForwardPlan plan = forward_plan(p);
  float* const zeros = reinterpret_cast<float*>(scratch);
  std::fill_n(zeros, zero_row_floats(p), 0.0f);

  simd::GemmRows product;
  product.n = p.group_out();
  product.near_a = plan.copy;
  product.far_c = is_far(p.n * p.oh * p.ow * p.oc);
  product.segments = plan.segments;
  product.segment_length = plan.segment_length;
  product.packed_b = packed;
  product.packed_k = plan.segments * plan.segment_length;
  product.bias = epilogue.bias;
  product.relu = epilogue.relu;
  const GroupStep step{p.attrs.groups, p.group_in(), p.group_out(), packed_step(context, p)};
  const Index work = p.ow * (p.oc * (product.packed_k / 16 + 1) + plan.segments);
  const bool skips = may_skip_padding(p, plan) && packed[step.packed_b * p.attrs.groups] == 0.0f;

  context.parallel_for(p.n * p.oh, work, [&](Index begin, Index end, int thread) {
    std::byte* const thread_scratch = context.thread_scratch(thread);
    Forward forward(p, plan, x, zeros, thread_scratch);
    simd::GemmRows rows = product;
    rows.a_segments = forward.shared_rows();
    RowBatch batch(context.kernels(), rows, step, epilogue.residual != nullptr, thread_scratch);
    if (skips) {
      return add_blocks(p, RowBatch::capacity(plan.segments), forward, begin, end, batch, epilogue.residual, y);
    }
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

}  // namespace vitro::ops
