// SPDX-License-Identifier: Apache-2.0
// The drawn cases behind tests/golden/digests.txt: for each operation a function that runs some and hashes what they give.
#pragma once

#include "../../ops/bias.hpp"
#include "../../ops/broadcast.hpp"
#include "../../ops/conv2d.hpp"
#include "../../ops/cross_entropy.hpp"
#include "../../ops/layout.hpp"
#include "../../ops/linear.hpp"
#include "../../ops/metrics.hpp"
#include "../../ops/pool2d.hpp"
#include "../../ops/relu.hpp"
#include "../../ops/sgd.hpp"
#include "../../ops/softmax.hpp"
#include "support.hpp"

namespace vitro_test {

// 64-bit FNV-1a (Fowler, Noll, Vo).
class Digest {
 public:
  void add(const Tensor& tensor) {
    for (const float value : tensor.span()) add_word(canonical_bits(value));
  }
  template <class T>
  void add_numbers(const BasicTensor<T>& tensor) {
    for (const T value : tensor.span()) add_word(static_cast<std::uint32_t>(value));
  }
  std::uint64_t value() const { return value_; }

 private:
  void add_word(std::uint32_t word) {
    for (int byte = 0; byte < 4; ++byte, word >>= 8) value_ = (value_ ^ (word & 0xff)) * 0x100000001b3ULL;
  }
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

// Some cases of one operation. `draw` gives the same numbers on every machine and in every build.
struct DigestCase {
  const char* operation;
  void (*run)(Context& context, Draw& draw, Digest& digest);
};

inline void digest_linear(Context& context, Draw& draw, Digest& digest, int direction) {
  struct Size {
    Index rows, in, out;
  };
  // The chains run over `in`, `out` and `rows`: each is once beyond two blocks of k; 1024 rows are a batch split at chunks.
  for (const Size& s :
       {Size{9, 1100, 33}, Size{7, 37, 1090}, Size{1300, 6, 10}, Size{1024, 5, 3}, Size{64, 256, 120}, Size{1, 84, 10}}) {
    const Tensor x = draw.tensor({s.rows, s.in}), w = draw.tensor({s.in, s.out}), dy = draw.tensor({s.rows, s.out});
    const Tensor bias = draw.tensor({s.out}), residual = draw.tensor({s.rows, s.out});
    Tensor y(dy.shape()), dx(x.shape()), dw(w.shape());
    if (direction == 0) {
      ops::linear(context, {}, x, w, y, {.bias = bias, .residual = residual, .relu = true});
      digest.add(y);
    } else if (direction == 1) {
      ops::linear_grad_input(context, {}, dy, w, dx);
      digest.add(dx);
    } else {
      ops::linear_grad_weight(context, {}, x, dy, dw);
      digest.add(dw);
    }
  }
}

inline void digest_conv2d(Context& context, Draw& draw, Digest& digest, int direction) {
  struct Size {
    ops::Conv2dAttrs attrs;
    Shape x, w;
  };
  const Size sizes[] = {
      {{}, {5, 28, 28, 1}, {5, 5, 1, 6}},
      {{}, {20, 12, 12, 6}, {5, 5, 6, 16}},
      {{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1}, {2, 6, 7, 130}, {3, 3, 130, 17}},
      {{.pad_top = 1, .pad_left = 2, .pad_bottom = 0, .pad_right = 3}, {3, 9, 30, 3}, {3, 4, 3, 8}},
      {{.stride_h = 3, .stride_w = 2, .dilation_h = 2, .dilation_w = 3, .pad_top = 2}, {2, 19, 21, 5}, {3, 3, 5, 7}},
      {{.stride_h = 2, .stride_w = 2, .pad_left = 1, .groups = 3}, {2, 11, 10, 12}, {3, 2, 4, 9}},
      {{.pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1, .groups = 10}, {2, 8, 8, 10}, {3, 3, 1, 10}},
      {{.stride_w = 3}, {3, 7, 16, 20}, {1, 1, 20, 40}},
      {{}, {1100, 1, 2, 2}, {1, 2, 2, 3}},
  };
  for (const Size& s : sizes) {
    const Shape shape = ops::conv2d_shape(s.attrs, s.x, s.w).value();
    const Tensor x = draw.tensor(s.x), w = draw.tensor(s.w), dy = draw.tensor(shape), bias = draw.tensor({shape[3]});
    Tensor y(shape), dx(s.x), dw(s.w);
    if (direction == 0) {
      ops::conv2d(context, s.attrs, x, w, y, {.bias = bias, .residual = dy, .relu = true});
      digest.add(y);
    } else if (direction == 1) {
      ops::conv2d_grad_input(context, s.attrs, dy, w, dx);
      digest.add(dx);
    } else {
      ops::conv2d_grad_weight(context, s.attrs, x, dy, dw);
      digest.add(dw);
    }
  }
}

inline void digest_pools(Context& context, Draw& draw, Digest& digest, bool max, bool gradient) {
  const ops::Pool2dAttrs windows[] = {
      {.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2},
      {.kernel_h = 3, .kernel_w = 2, .stride_h = 2, .pad_top = 1, .pad_right = 1, .ceil_mode = true},
      {.kernel_h = 3, .kernel_w = 4, .stride_w = 3, .pad_left = 2, .ceil_mode = true, .divisor = ops::AverageDivisor::padded},
      {.kernel_h = 24, .kernel_w = 24, .divisor = ops::AverageDivisor::window},
  };
  for (const ops::Pool2dAttrs& attrs : windows) {
    const Tensor x = draw.tensor({3, 24, 25, 19});
    const Shape shape = ops::average_pool2d_shape(attrs, x.shape()).value();
    const Tensor dy = draw.tensor(shape);
    Tensor y(shape), dx(x.shape());
    if (!max) {
      ops::average_pool2d(context, attrs, x, y);
      ops::average_pool2d_grad(context, attrs, dy, dx);
    } else if (ops::max_pool2d_problem(attrs, x.shape()).value().argmax_bytes() == 1) {
      BasicTensor<std::uint8_t> argmax(shape);
      ops::max_pool2d(context, attrs, x, y, argmax);
      ops::max_pool2d_grad(context, attrs, argmax, dy, dx);
      if (!gradient) digest.add_numbers(argmax);
    } else {
      LabelTensor argmax(shape);
      ops::max_pool2d(context, attrs, x, y, argmax);
      ops::max_pool2d_grad(context, attrs, argmax, dy, dx);
      if (!gradient) digest.add_numbers(argmax);
    }
    digest.add(gradient ? dx : y);
  }
}

inline void digest_softmax(Context& context, Draw& draw, Digest& digest, bool log, bool gradient) {
  for (const Shape& shape : {Shape{64, 10}, Shape{3, 5, 17}, Shape{2, 1000}, Shape{500, 1}}) {
    Tensor x = draw.tensor(shape), y(shape), dx(shape);
    for (float& value : x.span()) value *= 20.0f;
    const Tensor dy = draw.tensor(shape);
    if (log) {
      ops::log_softmax(context, {}, x, y);
      ops::log_softmax_grad(context, {}, y, dy, dx);
    } else {
      ops::softmax(context, {}, x, y);
      ops::softmax_grad(context, {}, y, dy, dx);
    }
    digest.add(gradient ? dx : y);
  }
}

inline void digest_cross_entropy(Context& context, Draw& draw, Digest& digest, bool gradient) {
  for (const Shape& shape : {Shape{64, 10}, Shape{700, 3}, Shape{2, 1000}}) {
    const Tensor x = draw.tensor(shape), dloss = draw.tensor(Shape{});
    const LabelTensor labels = draw.labels(shape[0], shape[1]);
    Tensor loss(Shape{}), probabilities(shape), dx(shape);
    ops::cross_entropy(context, {}, x, labels, loss, probabilities);
    ops::cross_entropy_grad(context, {}, probabilities, labels, dloss, dx);
    digest.add(gradient ? dx : loss);
    if (!gradient) digest.add(probabilities);
  }
}

inline void digest_binary(Context& context, Draw& draw, Digest& digest, ops::BinaryOp op) {
  struct Pair {
    Shape a, b;
  };
  for (const Pair& pair : {Pair{{700}, {700}}, Pair{{3, 1, 50}, {20, 1}}, Pair{{4, 5, 6, 7}, {7}}, Pair{{1}, {2, 30}}}) {
    const Tensor a = draw.tensor(pair.a, true), b = draw.tensor(pair.b, true);
    Tensor y(broadcast_shapes(pair.a, pair.b).value());
    ops::binary(context, {op}, a, b, y);
    digest.add(y);
  }
}

inline void digest_sum_to_shape(Context& context, Draw& draw, Digest& digest) {
  struct Pair {
    Shape from, to;
  };
  for (const Pair& pair : {Pair{{1300, 20}, {20}}, Pair{{20, 1300}, {20, 1}}, Pair{{30, 4, 50, 6}, {4, 1, 6}},
                           Pair{{2, 9, 3, 8, 4, 7}, {2, 1, 3, 1, 4, 1}}, Pair{{3000}, {}}}) {
    Tensor dx(pair.to);
    ops::sum_to_shape(context, draw.tensor(pair.from), dx);
    digest.add(dx);
  }
}

inline void digest_bias(Context& context, Draw& draw, Digest& digest, bool gradient) {
  for (const Shape& shape : {Shape{1300, 6}, Shape{2, 12, 12, 16}, Shape{64, 120}}) {
    const Tensor x = draw.tensor(shape), b = draw.tensor({shape[shape.rank() - 1]});
    Tensor y(shape), db(b.shape());
    ops::bias(context, {}, x, b, y);
    ops::bias_grad(context, {}, x, db);
    digest.add(gradient ? db : y);
  }
}

inline void digest_relu(Context& context, Draw& draw, Digest& digest, bool gradient) {
  const Tensor x = draw.tensor({3001}, true), dy = draw.tensor({3001}, true);
  Tensor y({3001}), dx({3001});
  ops::relu(context, {}, x, y);
  ops::relu_grad(context, {}, y, dy, dx);
  digest.add(gradient ? dx : y);
}

inline void digest_sgd(Context& context, Draw& draw, Digest& digest) {
  Tensor hyper = draw.tensor({3}), velocity = draw.tensor({2001}), parameter = draw.tensor({2001});
  for (int step = 0; step < 3; ++step) ops::sgd(context, {}, hyper, draw.tensor({2001}), velocity, parameter);
  digest.add(velocity);
  digest.add(parameter);
}

inline void digest_permute(Context& context, Draw& draw, Digest& digest) {
  const Tensor x = draw.tensor({4, 5, 6, 7});
  Tensor y({6, 4, 7, 5});
  ops::permute(context, {{2, 0, 3, 1, 4, 5}, 4}, x, y);
  digest.add(y);
}

inline void digest_predict(Context& context, Draw& draw, Digest& digest) {
  LabelTensor predicted({500});
  ops::predict(context, draw.tensor({500, 10}, true), predicted);
  digest.add_numbers(predicted);
}

// New operations go to the end: a case's place decides its stream.
using D = Digest;
inline constexpr DigestCase kDigestCases[] = {
    {"linear", [](Context& c, Draw& r, D& d) { digest_linear(c, r, d, 0); }},
    {"linear_grad_input", [](Context& c, Draw& r, D& d) { digest_linear(c, r, d, 1); }},
    {"linear_grad_weight", [](Context& c, Draw& r, D& d) { digest_linear(c, r, d, 2); }},
    {"conv2d", [](Context& c, Draw& r, D& d) { digest_conv2d(c, r, d, 0); }},
    {"conv2d_grad_input", [](Context& c, Draw& r, D& d) { digest_conv2d(c, r, d, 1); }},
    {"conv2d_grad_weight", [](Context& c, Draw& r, D& d) { digest_conv2d(c, r, d, 2); }},
    {"bias", [](Context& c, Draw& r, D& d) { digest_bias(c, r, d, false); }},
    {"bias_grad", [](Context& c, Draw& r, D& d) { digest_bias(c, r, d, true); }},
    {"relu", [](Context& c, Draw& r, D& d) { digest_relu(c, r, d, false); }},
    {"relu_grad", [](Context& c, Draw& r, D& d) { digest_relu(c, r, d, true); }},
    {"max_pool2d", [](Context& c, Draw& r, D& d) { digest_pools(c, r, d, true, false); }},
    {"max_pool2d_grad", [](Context& c, Draw& r, D& d) { digest_pools(c, r, d, true, true); }},
    {"average_pool2d", [](Context& c, Draw& r, D& d) { digest_pools(c, r, d, false, false); }},
    {"average_pool2d_grad", [](Context& c, Draw& r, D& d) { digest_pools(c, r, d, false, true); }},
    {"softmax", [](Context& c, Draw& r, D& d) { digest_softmax(c, r, d, false, false); }},
    {"softmax_grad", [](Context& c, Draw& r, D& d) { digest_softmax(c, r, d, false, true); }},
    {"log_softmax", [](Context& c, Draw& r, D& d) { digest_softmax(c, r, d, true, false); }},
    {"log_softmax_grad", [](Context& c, Draw& r, D& d) { digest_softmax(c, r, d, true, true); }},
    {"cross_entropy", [](Context& c, Draw& r, D& d) { digest_cross_entropy(c, r, d, false); }},
    {"cross_entropy_grad", [](Context& c, Draw& r, D& d) { digest_cross_entropy(c, r, d, true); }},
    {"add", [](Context& c, Draw& r, D& d) { digest_binary(c, r, d, ops::BinaryOp::add); }},
    {"mul", [](Context& c, Draw& r, D& d) { digest_binary(c, r, d, ops::BinaryOp::mul); }},
    {"sum_to_shape", digest_sum_to_shape},
    {"permute", digest_permute},
    {"sgd", digest_sgd},
    {"predict", digest_predict},
};

// The same cases for every context: drawn from a stream of the operation's own.
inline std::uint64_t digest_of(const DigestCase& test, Context& context) {
  Draw draw(1000 + static_cast<std::uint64_t>(&test - kDigestCases));
  Digest digest;
  test.run(context, draw, digest);
  return digest.value();
}

}  // namespace vitro_test
