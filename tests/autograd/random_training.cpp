// SPDX-License-Identifier: Apache-2.0
// Drawing the nodes.
#include "random_training.hpp"

namespace vitro_test {
namespace {

std::uint16_t small(Draw& draw, Index low, Index high) { return static_cast<std::uint16_t>(draw.range(low, high)); }

// A shape that broadcasts to `shape`: axes of size 1, or the first ones left out.
Shape narrower(Draw& draw, const Shape& shape) {
  std::vector<Index> dims;
  for (int axis = static_cast<int>(draw.range(0, shape.rank())); axis < shape.rank(); ++axis) {
    dims.push_back(draw.one_in(2) ? 1 : shape[axis]);
  }
  return Shape(std::span<const Index>(dims));
}

// A shape that it broadcasts to: an axis of size 1 widened, or one more in front.
Shape wider(const Shape& shape) {
  std::vector<Index> dims(shape.dims().begin(), shape.dims().end());
  const auto one = std::find(dims.begin(), dims.end(), 1);
  if (one == dims.end()) {
    dims.insert(dims.begin(), 2);
  } else {
    *one = 3;
  }
  return Shape(std::span<const Index>(dims));
}

}  // namespace

std::vector<Var> RandomTraining::record(Tape& tape) {
  Draw draw(number_ << 1 | 1);
  tape_ = &tape;
  draw_ = &draw;
  used_slots_ = used_parameters_ = used_velocities_ = used_constants_ = 0;
  live_.clear();
  parameter_vars_.clear();
  outputs_.clear();
  const Shape image({draw.range(1, 3), draw.range(3, 9), draw.range(3, 9), draw.range(1, 5)});
  live_.push_back(draw.one_in(3) ? bytes_to_unit(tape.input(BasicView<const std::uint8_t>(slot(Kind::pixels, image).bytes)))
                                 : input(image, draw.one_in(3)));
  const Index operations = draw.range(2, 14);
  for (Index i = 0; i < operations; ++i) live_.push_back(grow(draw.one_in(5) ? pick() : live_.back()));
  const Var result = loss();
  outputs_.push_back(result);
  for (const Var x : live_) {
    if (draw.one_in(5)) outputs_.push_back(x);
  }
  if (draw.one_in(6) || !tape.tensors()[result.id].needs_gradient) return outputs_;  // inference
  tape.backward(result);
  update(result);
  return outputs_;
}

Var RandomTraining::grow(Var x) {
  const Shape shape = x.shape();
  if (shape.rank() == 4 && draw_->one_in(2)) return grow_image(x);
  switch (draw_->range(0, 11)) {
    case 0:
    case 1: return relu(x);
    case 2: return add_bias(x, weight({shape[shape.rank() - 1]}));
    case 3:
    case 4:
    case 5: return binary(x);
    case 6: return softmax(x);
    case 7: return log_softmax(x);
    case 8: {
      const ops::DropoutAttrs attrs{.seed_low = small(*draw_, 0, 99),
                                    .layer = small(*draw_, 0, 9),
                                    .rate = 0.25F * static_cast<float>(draw_->range(0, 3))};
      return dropout(x, number(Kind::step), attrs);
    }
    case 9: return shape.rank() == 4 ? flatten(x) : reshape(x, {1, shape[0], -1, 1});
    case 10: return shape.rank() == 4 ? permute(x, {0, 2, 1, 3}) : permute(x, {1, 0});
    default: break;
  }
  const Var rows = shape.rank() == 2 ? x : reshape(x, {-1, shape[shape.rank() - 1]});
  const Index out = draw_->range(1, 7);
  const Var w = weight({rows.shape()[1], out});
  return draw_->one_in(2) ? linear(rows, w, weight({out})) : linear(rows, w);
}

Var RandomTraining::grow_image(Var x) {
  switch (draw_->range(0, 4)) {
    case 0:
    case 1: return convolution(x);
    case 2: return pool(relu(x));
    case 3: return pool(x);
    default: return relu(pool(x));
  }
}

Var RandomTraining::convolution(Var x) {
  const Shape shape = x.shape();
  const Index kh = draw_->range(1, std::min<Index>(3, shape[1])), kw = draw_->range(1, std::min<Index>(3, shape[2]));
  ops::Conv2dAttrs attrs{.stride_h = small(*draw_, 1, 2),
                         .stride_w = small(*draw_, 1, 2),
                         .pad_top = small(*draw_, 0, 1),
                         .pad_left = small(*draw_, 0, 1),
                         .pad_bottom = small(*draw_, 0, 1),
                         .pad_right = small(*draw_, 0, 1)};
  if (2 * (kh - 1) + 1 <= shape[1] && draw_->one_in(3)) attrs.dilation_h = 2;
  Index out = draw_->range(1, 6);
  if (draw_->one_in(3)) {
    attrs.groups = static_cast<std::uint16_t>(shape[3]);
    out = shape[3] * draw_->range(1, 2);
  }
  const Var w = weight({kh, kw, shape[3] / attrs.groups, out});
  const Var y = draw_->one_in(2) ? conv2d(x, w, weight({out}), attrs) : conv2d(x, w, attrs);
  if (draw_->one_in(2)) return y;
  // The end of a residual block.
  const Var sum = draw_->one_in(2) ? add(y, input(y.shape())) : add(input(y.shape(), true), y);
  return draw_->one_in(2) ? relu(sum) : sum;
}

Var RandomTraining::pool(Var x) {
  const Shape shape = x.shape();
  const Index most_h = std::min<Index>(3, shape[1]), most_w = std::min<Index>(3, shape[2]);
  ops::Pool2dAttrs attrs{.kernel_h = small(*draw_, 1, most_h),
                         .kernel_w = small(*draw_, 1, most_w),
                         .stride_h = small(*draw_, 1, 2),
                         .stride_w = small(*draw_, 1, 2),
                         .ceil_mode = draw_->one_in(4)};
  if (attrs.kernel_h > 1) attrs.pad_top = small(*draw_, 0, 1);
  if (attrs.kernel_w > 1) attrs.pad_right = small(*draw_, 0, 1);
  return draw_->one_in(3) ? average_pool2d(x, attrs) : max_pool2d(x, attrs);
}

Var RandomTraining::binary(Var x) {
  const bool product = draw_->one_in(2);
  Var other = x;
  switch (draw_->range(0, 5)) {
    case 0: break;  // x + x
    case 3: {
      const Var y = add(x, input(wider(x.shape()), draw_->one_in(2)));
      return y.shape().rank() == x.shape().rank() ? y : reshape(y, {-1, y.shape()[y.shape().rank() - 1]});
    }
    case 1: other = weight(narrower(*draw_, x.shape())); break;
    case 2: other = input(x.shape(), draw_->one_in(2)); break;
    default:  // an earlier result of that shape, of which there may be none but x
      for (const Var candidate : live_) {
        if (candidate.shape() == x.shape() && draw_->one_in(2)) other = candidate;
      }
  }
  if (draw_->one_in(2)) std::swap(x, other);
  return product ? mul(x, other) : add(x, other);
}

// Cross-entropy of what is there last, or a weighted sum of it; perhaps with a second term.
Var RandomTraining::loss() {
  const Var last = live_.back();
  Var result;
  if (draw_->one_in(4)) {
    result = sum_to(mul(last, input(last.shape())), Shape());
  } else {
    const Var rows = last.shape().rank() == 2 ? last : flatten(last);
    const Index classes = draw_->range(2, 5);
    const Var scores = linear(rows, weight({rows.shape()[1], classes}));
    const Var labels = tape_->input(slot(Kind::labels, {rows.shape()[0]}, classes).numbers.view());
    const CrossEntropyResult entropy = cross_entropy_with_probabilities(scores, labels);
    if (draw_->one_in(4)) outputs_.push_back(entropy.probabilities);
    if (draw_->one_in(4)) outputs_.push_back(count_correct(scores, labels));
    result = entropy.loss;
  }
  if (!draw_->one_in(4)) return result;
  const Var other = pick();
  const Shape shape = other.shape();  // a copy: the weight may move the table that it stands in
  return add(result, sum_to(mul(other, broadcast_to(weight({1}), shape)), Shape()));
}

// Updates in drawn order, watched and clipped or not, with nodes between them that read parameters before and after.
void RandomTraining::update(Var loss) {
  std::vector<std::pair<Var, Var>> pairs;
  for (const Var p : parameter_vars_) {
    if (const Var g = tape_->gradient(p); g.id != kNoTensor) pairs.emplace_back(p, g);
  }
  if (pairs.empty()) return;
  for (const auto& [p, g] : pairs) {
    if (draw_->one_in(6)) outputs_.push_back(g);
  }
  Var total, ok = draw_->one_in(3) ? number(Kind::guard) : Var{};
  if (draw_->one_in(2)) {
    total = sum_squares(loss);
    ok = ok.tape == nullptr ? all_finite(loss) : all_finite(loss, total, ok);
    for (const auto& [p, g] : pairs) {
      total = sum_squares(g, total);
      ok = all_finite(g, total, ok);
    }
    outputs_.push_back(ok);
    if (draw_->one_in(2)) {
      const Var factor = clip_factor(total, input(Shape()));
      for (auto& pair : pairs) pair.second = mul(pair.second, factor);
    }
  }
  const Var hyper[] = {tape_->input(slot(Kind::hyper, {3}).floats.view()), tape_->input(slot(Kind::hyper, {3}).floats.view())};
  const bool one_hyper = draw_->one_in(2), eventful = draw_->one_in(2);
  for (std::size_t i = pairs.size(); i-- > 0;) {
    std::swap(pairs[i], pairs[static_cast<std::size_t>(draw_->range(0, static_cast<Index>(i)))]);
    const auto [p, g] = pairs[i];
    const bool before = eventful && draw_->one_in(2);
    const Var early = before ? relu(draw_->one_in(2) ? p : reshape(p, {-1})) : Var{};
    const Var velocity = tape_->state(memory(velocities_, used_velocities_, p.shape(), 3));
    const Var rates = hyper[one_hyper ? 0 : draw_->range(0, 1)];
    if (ok.tape != nullptr && !(eventful && draw_->one_in(4))) {
      sgd_update(p, velocity, g, rates, ok);
    } else {
      sgd_update(p, velocity, g, rates);
    }
    if (!before) continue;
    const Var after = draw_->one_in(2) ? input(early.shape()) : early.shape() == p.shape() ? p : reshape(p, {-1});
    outputs_.push_back(add(early, after));
  }
}

}  // namespace vitro_test
