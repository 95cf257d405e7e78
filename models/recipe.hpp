// SPDX-License-Identifier: Apache-2.0
// Recipe: how the learning rate, momentum and weight decay run over a training, and how images are varied.
#pragma once

#include "../core/shape.hpp"

#include <span>
#include <string>
#include <string_view>

namespace vitro {

enum class Decay : unsigned char {
  none,    // the rate stays where the warm-up ends
  cosine,  // from there down to 0 at the end of the training along half a cosine (Loshchilov & Hutter 2017, without restarts)
};

struct Recipe {
  std::string name;
  float rate = 0.01F;       // the highest learning rate
  Index warmup_epochs = 0;  // over which the rate rises linearly, step by step, to `rate`
  Decay decay = Decay::none;
  float momentum = 0.9F;        // at the start
  float momentum_drop = 0.0F;   // lowered by this ...
  Index momentum_epochs = 1;    // ... after every so many epochs ...
  float momentum_floor = 0.0F;  // ... but never under this
  float weight_decay = 0.0F;
  float clip_norm = 0.0F;  // gradients longer than this, over all parameters, are scaled to it; 0: never
  int shift = 0;           // each image is moved by up to so many pixels in both directions, drawn anew each epoch
};

// "seed": the rate rises to 0.01 over 5 epochs and stays; momentum 0.9, lowered by 0.01 every 10 epochs, never under 0.5.
Recipe seed_recipe();
// "default": the rate rises to 0.05 in one epoch and falls along a cosine; momentum 0.9, weight decay 5e-4, shifts of up to 2.
Recipe default_recipe();

// The recipes above by name; an error that lists the names for any other.
Result<Recipe> try_recipe(std::string_view name);

// What an update reads: the contents of the tensor that sgd_update() calls hyper.
struct Hyper {
  float rate, momentum, weight_decay;
};

// For step `step` of `steps` in epoch `epoch` of `epochs` (all from 0). The rate of the very first step is not 0: a warm-up of
// W steps has the rates 1/W, 2/W, ..., 1. IEEE operations only, so the same on every machine.
Hyper hyper_at(const Recipe& recipe, Index epoch, Index epochs, Index step, Index steps) noexcept;

}  // namespace vitro
