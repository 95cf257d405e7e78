// SPDX-License-Identifier: Apache-2.0
// The convolution and its gradients by definition: which products make up one element, in the contract's order.
#pragma once

#include "../../ops/conv2d.hpp"
#include "support.hpp"

namespace vitro_test {

using ops::Conv2dAttrs;
using ops::Conv2dProblem;

inline Shape x_shape(const Conv2dProblem& p) { return {p.n, p.h, p.w, p.c}; }
inline Shape w_shape(const Conv2dProblem& p) { return {p.kh, p.kw, p.group_in(), p.oc}; }
inline Shape y_shape(const Conv2dProblem& p) { return {p.n, p.oh, p.ow, p.oc}; }

// A pixel of x, or +0 in the padding.
inline float padded(const Conv2dProblem& p, ConstTensorView x, Index n, Index ih, Index iw, Index ic) {
  return ih < 0 || iw < 0 || ih >= p.h || iw >= p.w ? 0.0f : x(n, ih, iw, ic);
}

// Calls term(a, b) for each product of y(n, oh, ow, oc).
template <class Term>
void forward_terms(const Conv2dProblem& p, ConstTensorView x, ConstTensorView w, Index n, Index oh, Index ow, Index oc,
                   const Term& term) {
  const Index first = oc / p.group_out() * p.group_in();
  for (Index kh = 0; kh < p.kh; ++kh) {
    for (Index kw = 0; kw < p.kw; ++kw) {
      const Index ih = oh * p.attrs.stride_h - p.attrs.pad_top + kh * p.attrs.dilation_h;
      const Index iw = ow * p.attrs.stride_w - p.attrs.pad_left + kw * p.attrs.dilation_w;
      for (Index ic = 0; ic < p.group_in(); ++ic) term(padded(p, x, n, ih, iw, first + ic), w(kh, kw, ic, oc));
    }
  }
}

// The same for dx(n, ih, iw, c): every window that has the pixel under one of its taps.
template <class Term>
void grad_input_terms(const Conv2dProblem& p, ConstTensorView dy, ConstTensorView w, Index n, Index ih, Index iw, Index c,
                      const Term& term) {
  const Index group = c / p.group_in();
  for (Index kh = 0; kh < p.kh; ++kh) {
    for (Index kw = 0; kw < p.kw; ++kw) {
      for (Index oh = 0; oh < p.oh; ++oh) {
        if (oh * p.attrs.stride_h - p.attrs.pad_top + kh * p.attrs.dilation_h != ih) continue;
        for (Index ow = 0; ow < p.ow; ++ow) {
          if (ow * p.attrs.stride_w - p.attrs.pad_left + kw * p.attrs.dilation_w != iw) continue;
          for (Index oc = group * p.group_out(); oc < (group + 1) * p.group_out(); ++oc) {
            term(dy(n, oh, ow, oc), w(kh, kw, c % p.group_in(), oc));
          }
        }
      }
    }
  }
}

// The same for dw(kh, kw, ic, oc), images [begin, end).
template <class Term>
void grad_weight_terms(const Conv2dProblem& p, ConstTensorView x, ConstTensorView dy, Index begin, Index end, Index kh,
                       Index kw, Index ic, Index oc, const Term& term) {
  const Index c = oc / p.group_out() * p.group_in() + ic;
  for (Index n = begin; n < end; ++n) {
    for (Index oh = 0; oh < p.oh; ++oh) {
      for (Index ow = 0; ow < p.ow; ++ow) {
        const Index ih = oh * p.attrs.stride_h - p.attrs.pad_top + kh * p.attrs.dilation_h;
        const Index iw = ow * p.attrs.stride_w - p.attrs.pad_left + kw * p.attrs.dilation_w;
        term(padded(p, x, n, ih, iw, c), dy(n, oh, ow, oc));
      }
    }
  }
}

// body(element, i0, i1, i2, i3) for each element of a tensor of rank 4.
template <class Body>
void for_each_element(Tensor& tensor, const Body& body) {
  const TensorView view = tensor.view();
  for (Index i = 0; i < view.dim(0); ++i) {
    for (Index j = 0; j < view.dim(1); ++j) {
      for (Index k = 0; k < view.dim(2); ++k) {
        for (Index l = 0; l < view.dim(3); ++l) body(view(i, j, k, l), i, j, k, l);
      }
    }
  }
}

// The bits that the contract asks for.
inline Tensor expected_conv2d(const Conv2dProblem& p, ConstTensorView x, ConstTensorView w, const Tensor* bias,
                              const Tensor* residual, bool relu) {
  Tensor y(y_shape(p));
  for_each_element(y, [&](float& element, Index n, Index oh, Index ow, Index oc) {
    float chain = 0.0f;
    forward_terms(p, x, w, n, oh, ow, oc, [&](float a, float b) { chain = std::fma(a, b, chain); });
    const Conv2dAttrs& at = p.attrs;
    if (at.pad_top + at.pad_left + at.pad_bottom + at.pad_right > 0) chain += 0.0f;
    if (bias != nullptr) chain += bias->data()[oc];
    if (residual != nullptr) chain += residual->view()(n, oh, ow, oc);
    element = relu && chain < 0.0f ? 0.0f : chain;
  });
  return y;
}

inline Tensor expected_conv2d_grad_input(const Conv2dProblem& p, ConstTensorView dy, ConstTensorView w) {
  Tensor dx(x_shape(p));
  for_each_element(dx, [&](float& element, Index n, Index ih, Index iw, Index c) {
    grad_input_terms(p, dy, w, n, ih, iw, c, [&](float a, float b) { element = std::fma(a, b, element); });
  });
  return dx;
}

inline Tensor expected_conv2d_grad_weight(const Conv2dProblem& p, ConstTensorView x, ConstTensorView dy) {
  const Index images = std::max<Index>(1, 512 / (p.oh * p.ow));
  Tensor dw(w_shape(p));
  for_each_element(dw, [&](float& element, Index kh, Index kw, Index ic, Index oc) {
    for (Index begin = 0; begin < p.n; begin += images) {
      float chain = 0.0f;
      const Index end = std::min(p.n, begin + images);
      grad_weight_terms(p, x, dy, begin, end, kh, kw, ic, oc, [&](float a, float b) { chain = std::fma(a, b, chain); });
      element += chain;
    }
  });
  return dw;
}

// A legal convolution, small enough for the loops above.
inline Conv2dProblem draw_conv2d(Draw& draw) {
  const auto small = [&](Index low, Index high) { return static_cast<std::uint16_t>(draw.range(low, high)); };
  for (;;) {
    Conv2dAttrs attrs;
    if (!draw.one_in(3)) attrs.stride_h = small(1, 3), attrs.stride_w = small(1, 3);
    if (draw.one_in(2)) attrs.dilation_h = small(1, 3), attrs.dilation_w = small(1, 3);
    if (draw.one_in(2)) {
      attrs.pad_top = small(0, 3), attrs.pad_left = small(0, 3), attrs.pad_bottom = small(0, 3), attrs.pad_right = small(0, 3);
    }
    if (draw.one_in(3)) attrs.groups = small(2, 5);
    const bool depthwise = draw.one_in(6);
    const Index in = depthwise ? 1 : draw.one_in(8) ? 40 : draw.range(1, 7);
    const Index out = draw.one_in(8) ? 67 : draw.range(1, 9);
    const Shape x{draw.one_in(10) ? 0 : draw.range(1, 4), draw.range(1, 9), draw.range(1, 9), in * attrs.groups};
    const Shape w{draw.range(1, 4), draw.range(1, 4), in, out * attrs.groups};
    if (const Result<Conv2dProblem> problem = ops::conv2d_problem(attrs, x, w)) return problem.value();
  }
}

inline std::string describe(const Conv2dProblem& p) {
  const Index attrs[] = {p.attrs.stride_h, p.attrs.stride_w,   p.attrs.dilation_h, p.attrs.dilation_w, p.attrs.pad_top,
                         p.attrs.pad_left, p.attrs.pad_bottom, p.attrs.pad_right,  p.attrs.groups};
  return "x " + to_string(x_shape(p)) + ", w " + to_string(w_shape(p)) + ", stride dilation pad groups " +
         to_string(std::span<const Index>(attrs));
}

}  // namespace vitro_test
