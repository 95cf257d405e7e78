// SPDX-License-Identifier: Apache-2.0
// Convolutions with few channels, computed with the pixels of an image in the lanes of the vectors.
#include "conv2d_pixel_lanes.hpp"

#include "conv2d_batch_lanes.hpp"
#include "conv2d_taps.hpp"
#include "row_batch.hpp"

#include <algorithm>

namespace vitro::ops {
namespace {

constexpr Index kBandFloats = 1 << 13;  // 32 KB: a band's planes stay in the first-level cache until they are read

constexpr Index columns_of(Index pixels) noexcept {
  return (pixels + simd::kPlaneStep - 1) / simd::kPlaneStep * simd::kPlaneStep;
}

// Floats from one plane to the next: room for a last tile's unused columns, and an odd number of cache lines, so that planes do
// not fall into the same sets.
constexpr Index plane_floats(Index pixels) noexcept { return (pixels + simd::kPlaneStep + 15) / 32 * 32 + 16; }

// How an image is cut into bands of rows, and the planes of one band. Forward the rows are y's, for the gradient dx's.
struct Bands {
  Bands(Index image_rows, Index affordable) noexcept {
    const Index most = std::clamp<Index>(affordable, 1, std::max<Index>(image_rows, 1));
    count = (image_rows + most - 1) / most;
    rows = (image_rows + count - 1) / count;
  }
  Index count, rows;  // of an image, of a band (the last may have fewer)
};

struct ForwardBands : Bands {
  explicit ForwardBands(const Conv2dProblem& p) noexcept
      : ForwardBands(p, padded_width(p), p.attrs.dilation_h * (p.kh - 1) + 1) {}
  ForwardBands(const Conv2dProblem& p, Index width_, Index reach) noexcept
      : Bands(p.oh, (kBandFloats - (reach - 1) * width_ * p.c) / (p.attrs.stride_h * width_ * (p.c + p.oc) + 1)),
        width(width_),
        x_rows((rows - 1) * p.attrs.stride_h + reach),
        x_plane(plane_floats(x_rows * width)),
        row(p.attrs.stride_h * width),
        y_plane(plane_floats((rows - 1) * row + p.ow)) {}

  std::size_t x_bytes(const Conv2dProblem& p) const noexcept { return float_bytes(p.c * x_plane); }
  std::size_t y_bytes(const Conv2dProblem& p) const noexcept { return float_bytes(p.oc * y_plane); }

  Index width;            // pixels of a padded row
  Index x_rows, x_plane;  // padded rows of a band, floats of their plane
  Index row, y_plane;     // columns from one output row to the next, floats of an output plane
};

// The planes of input rows [top, top + x_rows) of a padded image. What lies between planes stays +0.
void load_planes(const Context& context, const Conv2dProblem& p, const ForwardBands& bands, const float* image, Index top,
                 float* planes) noexcept {
  const Index first = std::max<Index>(top - p.attrs.pad_top, 0);
  const Index last = std::min(top - p.attrs.pad_top + bands.x_rows, p.h);
  if (has_padding(p.attrs)) std::fill_n(planes, p.c * bands.x_plane, 0.0f);
  if (first >= last) return;
  float* const to = planes + (first + p.attrs.pad_top - top) * bands.width + p.attrs.pad_left;
  const bool joined = bands.width == p.w;  // the rows follow each other in the plane, too
  const Index rows = joined ? 1 : last - first, pixels = joined ? (last - first) * p.w : p.w;
  for (Index i = 0; i < rows; ++i) {
    const float* const from = image + (first + i) * p.w * p.c;
    if (p.c == 1) {
      std::copy_n(from, pixels, to + i * bands.width);
    } else {
      context.kernels().transpose(pixels, p.c, from, p.c, to + i * bands.width, bands.x_plane);
    }
  }
}

// The gradient's bands, of rows of dx. Its padded pixels lie in a plane for each phase of the strides (and channel), in which
// those that a tap reaches from neighbouring outputs are neighbours, too.
struct GradInputBands : Bands {
  explicit GradInputBands(const Conv2dProblem& p) noexcept
      : Bands(p.h, affordable(p)),
        phases(Index{p.attrs.stride_h} * p.attrs.stride_w),
        width((padded_width(p) + p.attrs.stride_w - 1) / p.attrs.stride_w),
        dx_plane(plane_floats(((rows - 1 + p.attrs.stride_h - 1) / p.attrs.stride_h + 1) * width)),
        dy_rows(std::min((rows - 1 + p.attrs.dilation_h * (p.kh - 1)) / p.attrs.stride_h + 1, p.oh)),
        dy_plane(plane_floats((dy_rows - 1) * width + p.ow)),
        strip(std::clamp<Index>(kBandFloats / (p.oc * width), 1, dy_rows)) {}

  // Rows whose planes stay in the first-level cache; where these are fewer than the kernel's, so that dy would be transposed
  // for one band after the other, in the second-level cache, and the product takes them a strip at a time.
  static Index affordable(const Conv2dProblem& p) noexcept {
    constexpr Index kFarBandFloats = 1 << 16;
    const Index row = padded_width(p) * (p.c + p.oc) + 1, near = kBandFloats / row;
    if (near >= std::min(p.kh, p.h)) return near;
    return std::max(kFarBandFloats * p.attrs.stride_h * p.attrs.stride_w / row, near);
  }

  std::size_t dx_bytes(const Conv2dProblem& p) const noexcept { return float_bytes(phases * p.c * dx_plane); }
  std::size_t dy_bytes(const Conv2dProblem& p) const noexcept { return float_bytes(p.oc * dy_plane); }
  std::size_t taken_bytes() const noexcept { return static_cast<std::size_t>(dy_plane) * sizeof(std::int32_t); }

  Index phases, width, dx_plane;  // of a row of a plane, of a plane
  Index dy_rows, dy_plane;        // rows of dy that reach a band, at most
  Index strip;                    // rows of dy that are multiplied at a time
};

// The share of lanes that compute a pixel, less the copies to planes and back: `copied` elements for each element of the
// result, whose chain has k terms. row: columns from one row of outputs to the next.
float pixel_lanes_speed(const Conv2dProblem& p, Index row, Index k, float copied) noexcept {
  constexpr float kCopy = 5;  // fma of a lane that take the time of one copied element
  const Index columns = columns_of((p.oh - 1) * row + p.ow);
  return static_cast<float>(p.oh * p.ow) / static_cast<float>(columns) / (1 + kCopy * copied / static_cast<float>(k));
}

// The same with `channels` columns and pixels in the rows, whose segments of `segment` terms cost as much as `more` terms more.
float channel_lanes_speed(const Context& context, Index channels, Index segment, Index more) noexcept {
  const float lanes = static_cast<float>(context.kernels().packed_b_size(1, channels));
  return static_cast<float>(channels) / lanes * static_cast<float>(segment) / static_cast<float>(segment + more);
}

bool fits_in_planes(const Conv2dProblem& p) noexcept { return p.n > 0 && p.oc > 0 && p.c > 0 && p.attrs.groups == 1; }

}  // namespace

// The constants of both functions are those that chose best among 18 convolutions at batch 1, of 8x8 to 112x112 pixels, 1 to 64
// channels and 1x1 to 7x7 taps, with AVX-512 and AVX2. Where they choose the worse way, it takes up to a fifth longer forward
// and up to a third for the gradient; the better way is up to three times as fast forward and seven times for the gradient.
bool forward_in_pixel_lanes(const Context& context, const Conv2dProblem& p) noexcept {
  if (!fits_in_planes(p) || p.attrs.stride_w != 1 || forward_in_batch_lanes(context, p)) return false;
  // Shares of the peak that the tiles reach. Without vectors there are no lanes to fill, and compilers make more of the other
  // tiles.
  const float tile = context.kernels().packed_b_size(1, 1) == 1 ? 0.65f : 0.85f;
  const float in = static_cast<float>(padded_height(p) * padded_width(p) * p.c), out = static_cast<float>(p.oh * p.ow * p.oc);
  const Index row = p.attrs.stride_h * padded_width(p);
  return tile * pixel_lanes_speed(p, row, p.kh * p.kw * p.c, 1 + in / out) > channel_lanes_speed(context, p.oc, p.kw * p.c, 4);
}

bool grad_input_in_pixel_lanes(const Context& context, const Conv2dProblem& p) noexcept {
  if (!fits_in_planes(p) || grad_input_in_batch_lanes(context, p)) return false;
  constexpr float kTile = 0.65f;
  const float in = static_cast<float>(p.oh * p.ow * p.oc), out = static_cast<float>(p.h * p.w * p.c);
  // C is read and written for each tap, which takes the time of two terms.
  const float taps = static_cast<float>(p.oc) / static_cast<float>(p.oc + 2);
  // The other way has a product for each combination of taps that reach a pixel.
  const Index runs = p.kh * p.kw == 1 ? 0 : (2 * p.kh - 1) * (2 * p.kw - 1);
  const float products = 1 + static_cast<float>(runs) / static_cast<float>(p.n * p.h * p.w);
  const Index row = (padded_width(p) + p.attrs.stride_w - 1) / p.attrs.stride_w;
  const Index terms = std::max<Index>(p.kh * p.kw * p.oc / (Index{p.attrs.stride_h} * p.attrs.stride_w), 1);
  return kTile * taps * pixel_lanes_speed(p, row, terms, 1 + in / out) > channel_lanes_speed(context, p.c, p.oc, 8) / products;
}

std::size_t forward_pixel_lanes_bytes(const Conv2dProblem& p) noexcept {
  const ForwardBands bands(p);
  return bands.x_bytes(p) + bands.y_bytes(p) + aligned_up(static_cast<std::size_t>(p.kh * p.kw * p.c) * sizeof(Index));
}

void run_forward_pixel_lanes(Context& context, const Conv2dProblem& p, const float* x, const float* w, const Epilogue& epilogue,
                             float* y) noexcept {
  const simd::KernelTable& kernels = context.kernels();
  const Conv2dAttrs& at = p.attrs;
  const ForwardBands bands(p);
  simd::GemmPlanes product;
  product.rows = p.oc;
  product.k = p.kh * p.kw * p.c;
  product.a = w, product.a_row_stride = 1, product.a_column_stride = p.oc;
  product.c_stride = bands.y_plane;
  product.row_bias = epilogue.bias;
  product.relu = epilogue.relu && epilogue.residual == nullptr;

  const Index work = bands.rows * p.ow * p.oc * (product.k / 16 + 1);
  context.parallel_for(p.n * bands.count, work, [&](Index begin, Index end, int thread) {
    std::byte* const scratch = context.thread_scratch(thread);
    float* const planes = reinterpret_cast<float*>(scratch);
    float* const results = reinterpret_cast<float*>(scratch + bands.x_bytes(p));
    Index* const b_rows = reinterpret_cast<Index*>(scratch + bands.x_bytes(p) + bands.y_bytes(p));
    for (Index tap = 0, k = 0; tap < p.kh * p.kw; ++tap) {
      const Index shift = tap / p.kw * at.dilation_h * bands.width + tap % p.kw * at.dilation_w;
      for (Index c = 0; c < p.c; ++c) b_rows[k++] = c * bands.x_plane + shift;
    }
    std::fill_n(planes, p.c * bands.x_plane, 0.0f);
    simd::GemmPlanes band = product;
    band.b = planes, band.b_rows = b_rows, band.c = results;
    for (Index item = begin; item < end; ++item) {
      const Index n = item / bands.count, oh = item % bands.count * bands.rows, rows = std::min(bands.rows, p.oh - oh);
      load_planes(context, p, bands, x + n * p.h * p.w * p.c, oh * at.stride_h, planes);
      band.n = columns_of((rows - 1) * bands.row + p.ow);
      kernels.gemm_planes(band);
      const Index to = (n * p.oh + oh) * p.ow * p.oc, row_floats = p.ow * p.oc;
      for (Index i = 0; i < rows; ++i) {
        kernels.transpose(p.oc, p.ow, results + i * bands.row, bands.y_plane, y + to + i * row_floats, p.oc);
      }
      if (epilogue.residual != nullptr) {
        kernels.add(rows * row_floats, y + to, epilogue.residual + to, y + to);
        if (epilogue.relu) kernels.relu(rows * row_floats, y + to, y + to);
      }
    }
  });
}

std::size_t grad_input_pixel_lanes_bytes(const Conv2dProblem& p) noexcept {
  const GradInputBands bands(p);
  return bands.dx_bytes(p) + bands.dy_bytes(p) + bands.taken_bytes() +
         aligned_up(static_cast<std::size_t>(p.oc) * sizeof(Index));
}

namespace {

// One thread's share of the gradient of the input.
class GradInput {
 public:
  GradInput(const Context& context, const Conv2dProblem& p, const GradInputBands& bands, const float* w,
            std::byte* scratch) noexcept
      : context_(context),
        p_(p),
        bands_(bands),
        dx_(reinterpret_cast<float*>(scratch)),
        dy_(reinterpret_cast<float*>(scratch + bands.dx_bytes(p))),
        taken_(reinterpret_cast<std::int32_t*>(scratch + bands.dx_bytes(p) + bands.dy_bytes(p))),
        w_(w) {
    Index* const b_rows = reinterpret_cast<Index*>(scratch + bands.dx_bytes(p) + bands.dy_bytes(p) + bands.taken_bytes());
    for (Index oc = 0; oc < p.oc; ++oc) b_rows[oc] = oc * bands.dy_plane;
    std::fill_n(dy_, p.oc * bands.dy_plane, 0.0f);  // what lies between the rows stays +0
    // The outputs of rows that end where the table's last row does; behind it lie the columns that only fill a tile.
    std::fill_n(taken_, bands.dy_plane, 0);
    for (Index i = 0; i < bands.dy_rows; ++i) std::fill_n(taken_ + i * bands.width, p.ow, -1);
    product_.rows = p.c;
    product_.k = p.oc;
    product_.a_row_stride = p.oc, product_.a_column_stride = 1;
    product_.b_rows = b_rows;
    product_.c_stride = bands.dx_plane;
    product_.chain = true;
  }

  // Rows [h_begin, h_end) of one image's gradient.
  void run(const float* dy, Index h_begin, Index h_end, float* dx) noexcept {
    const Axis h_axis = height_axis(p_);
    const OutputRange seen(h_axis, h_begin, h_end);
    for (Index oh = seen.begin; oh < seen.end; ++oh) {
      context_.kernels().transpose(p_.ow, p_.oc, dy + oh * p_.ow * p_.oc, p_.oc, dy_ + (oh - seen.begin) * bands_.width,
                                   bands_.dy_plane);
    }
    std::fill_n(dx_, bands_.phases * p_.c * bands_.dx_plane, 0.0f);
    top_ = (h_begin + p_.attrs.pad_top) / p_.attrs.stride_h;
    for (Index kh = 0; kh < p_.kh; ++kh) {
      const Outputs oh(h_axis, kh, h_begin, h_end);
      for (Index begin = oh.begin; begin < oh.end; begin += bands_.strip) {
        const Index pixel = oh.first_pixel + (begin - oh.begin) * h_axis.stride;
        add_kernel_row(kh, pixel, std::min(bands_.strip, oh.end - begin), dy_ + (begin - seen.begin) * bands_.width);
      }
    }
    for (Index ih = h_begin; ih < h_end; ++ih) store_row(ih, dx + ih * p_.w * p_.c);
  }

 private:
  // A row of a phase's planes in which the padded row and column lie.
  float* plane_row(Index row, Index column) const noexcept {
    const Index phase = row % p_.attrs.stride_h * p_.attrs.stride_w + column % p_.attrs.stride_w;
    return dx_ + phase * p_.c * bands_.dx_plane + (row / p_.attrs.stride_h - top_) * bands_.width;
  }

  // Adds what the taps of one kernel row bring from `rows` rows of dy, the first of them to pixel row ih and on.
  void add_kernel_row(Index kh, Index ih, Index rows, const float* dy) noexcept {
    product_.n = columns_of((rows - 1) * bands_.width + p_.ow);
    product_.b = dy;
    product_.taken = taken_ + (bands_.dy_rows - rows) * bands_.width;
    for (Index kw = 0; kw < p_.kw; ++kw) {
      const Index column = kw * p_.attrs.dilation_w;
      product_.a = w_ + (kh * p_.kw + kw) * p_.c * p_.oc;
      product_.c = plane_row(ih + p_.attrs.pad_top, column) + column / p_.attrs.stride_w;
      context_.kernels().gemm_planes(product_);
    }
  }

  // One row of dx, put together from its phases.
  void store_row(Index ih, float* to) const noexcept {
    const Index step = p_.attrs.stride_w;
    for (Index iw = 0; iw < std::min(step, p_.w); ++iw) {
      const Index column = iw + p_.attrs.pad_left;
      const float* const from = plane_row(ih + p_.attrs.pad_top, column) + column / step;
      context_.kernels().transpose(p_.c, (p_.w - iw + step - 1) / step, from, bands_.dx_plane, to + iw * p_.c, step * p_.c);
    }
  }

  const Context& context_;
  const Conv2dProblem& p_;
  const GradInputBands& bands_;
  float *dx_, *dy_;
  std::int32_t* taken_;
  const float* w_;
  Index top_ = 0;  // of the planes' rows
  simd::GemmPlanes product_;
};

}  // namespace

void run_grad_input_pixel_lanes(Context& context, const Conv2dProblem& p, const float* dy, const float* w, float* dx) noexcept {
  const GradInputBands bands(p);
  const Index work = bands.rows * p.w * p.c * (p.kh * p.kw * p.oc / 16 + 1);
  context.parallel_for(p.n * bands.count, work, [&](Index begin, Index end, int thread) {
    GradInput gradient(context, p, bands, w, context.thread_scratch(thread));
    for (Index item = begin; item < end; ++item) {
      const Index n = item / bands.count, top = item % bands.count * bands.rows;
      gradient.run(dy + n * p.oh * p.ow * p.oc, top, std::min(top + bands.rows, p.h), dx + n * p.h * p.w * p.c);
    }
  });
}

}  // namespace vitro::ops
