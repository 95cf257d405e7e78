// SPDX-License-Identifier: Apache-2.0
// A training step whose nodes are drawn, with the memory that it works on: for comparing a plan with the tape it was made from.
#pragma once

#include "../ops/support.hpp"

#include <deque>
#include <vitro/autograd/functions.hpp>
#include <vitro/data/idx.hpp>

namespace vitro_test {

// What is drawn depends on the number given alone, so that two trainings of one number record the same nodes and begin with the
// same memory. Shapes are small; values may repeat (so that maxima have ties and ReLUs zeros) or be awkward.
class RandomTraining {
 public:
  explicit RandomTraining(std::uint64_t number) : number_(number) {
    Draw draw(number);
    ties_ = draw.one_in(3);
    awkward_ = draw.one_in(4);
  }

  // New inputs, labels, hyper-parameters, dropout step and guards; parameters and velocities stay.
  void begin_step(std::uint64_t step) {
    step_ = step;
    for (std::size_t i = 0; i < slots_.size(); ++i) fill(slots_[i], i);
  }

  // Records one step: forward, backward, perhaps clipping, updates, perhaps more nodes after them. Returns what shall be read.
  std::vector<Var> record(Tape& tape);

  const std::deque<Tensor>& parameters() const noexcept { return parameters_; }

 private:
  enum class Kind { input, hyper, step, guard, labels, pixels };
  struct Slot {
    Kind kind;
    Index classes = 0;
    Tensor floats;
    LabelTensor numbers;
    ByteTensor bytes;
  };

  float value(Draw& draw) const {
    if (ties_) return static_cast<float>(draw.range(-2, 2)) * (draw.one_in(2) ? -0.5F : 0.5F);  // -0 among them
    return awkward_ && draw.one_in(3) ? draw.awkward_number() : draw.number();
  }

  void fill(Slot& slot, std::size_t index) {
    Draw draw(number_ << 24 | step_ << 16 | index << 1 | 1);
    switch (slot.kind) {
      case Kind::input:
        for (float& x : slot.floats.span()) x = value(draw);
        return;
      case Kind::hyper:
        slot.floats.data()[0] = 0.25F * draw.number();
        slot.floats.data()[1] = draw.number();
        slot.floats.data()[2] = draw.one_in(2) ? 0.0F : 0.1F * draw.number();
        return;
      case Kind::step: slot.numbers.data()[0] = static_cast<std::int32_t>(draw.range(0, 1000)); return;
      case Kind::guard: slot.numbers.data()[0] = draw.one_in(3) ? 0 : 1; return;
      case Kind::labels:
        for (std::int32_t& x : slot.numbers.span()) x = static_cast<std::int32_t>(draw.range(0, slot.classes - 1));
        return;
      case Kind::pixels:
        for (std::uint8_t& x : slot.bytes.span()) x = static_cast<std::uint8_t>(draw.range(0, ties_ ? 3 : 255));
        return;
    }
  }

  // The next slot of this recording, made when it is recorded for the first time.
  Slot& slot(Kind kind, const Shape& shape, Index classes = 0) {
    if (used_slots_ == slots_.size()) {
      Slot made{kind, classes, {}, {}, {}};
      if (kind == Kind::pixels) {
        made.bytes = ByteTensor(shape);
      } else if (kind == Kind::input || kind == Kind::hyper) {
        made.floats = Tensor(shape);
      } else {
        made.numbers = LabelTensor(shape);
      }
      slots_.push_back(std::move(made));
      fill(slots_.back(), slots_.size() - 1);
    }
    return slots_[used_slots_++];
  }
  Var input(const Shape& shape, bool needs_gradient = false) {
    return tape_->input(slot(Kind::input, shape).floats.view(), needs_gradient);
  }
  Var number(Kind kind) { return tape_->input(slot(kind, Shape()).numbers.view()); }

  Tensor& memory(std::deque<Tensor>& list, std::size_t& used, const Shape& shape, std::uint64_t salt) {
    if (used == list.size()) {
      list.emplace_back(shape);
      Draw draw(number_ << 24 | salt << 20 | list.size() << 1);
      for (float& x : list.back().span()) x = ties_ ? value(draw) : 0.5F * draw.number();
    }
    return list[used++];
  }
  // A weight: a new parameter, one that is there already, or now and then a constant.
  Var weight(const Shape& shape) {
    if (draw_->one_in(6)) return tape_->constant(memory(constants_, used_constants_, shape, 1));
    if (draw_->one_in(4)) {
      for (const Var p : parameter_vars_) {
        if (p.shape() == shape) return p;
      }
    }
    parameter_vars_.push_back(tape_->parameter(memory(parameters_, used_parameters_, shape, 2)));
    return parameter_vars_.back();
  }

  Var grow(Var x);        // one operation on x
  Var grow_image(Var x);  // the same, one that takes [N, H, W, C]
  Var convolution(Var x);
  Var pool(Var x);
  Var binary(Var x);
  Var pick() { return live_[static_cast<std::size_t>(draw_->range(0, static_cast<Index>(live_.size()) - 1))]; }
  Var loss();
  void update(Var loss);

  std::uint64_t number_;
  std::uint64_t step_ = 0;
  bool ties_ = false, awkward_ = false;
  std::deque<Slot> slots_;
  std::deque<Tensor> parameters_, velocities_, constants_;

  // Of the recording that is under way.
  Tape* tape_ = nullptr;
  Draw* draw_ = nullptr;
  std::size_t used_slots_ = 0, used_parameters_ = 0, used_velocities_ = 0, used_constants_ = 0;
  std::vector<Var> live_, parameter_vars_, outputs_;
};

}  // namespace vitro_test
