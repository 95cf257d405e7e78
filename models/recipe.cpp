// SPDX-License-Identifier: Apache-2.0
// The two recipes and the schedules' arithmetic.
#include "recipe.hpp"

#include "../core/text.hpp"

#include <algorithm>
#include <array>

namespace vitro {
namespace {

// (1 + cos(pi t)) / 2 for t in [0, 1], in double, by the Taylor series of the sine: cos(pi t) = -sin(pi (t - 1/2)), and for |x|
// <= pi/2 the first neglected term, x^19 / 19!, is under 5e-14. From libm the library takes nothing that rounds differently
// somewhere.
double half_cosine(double t) noexcept {
  constexpr double kPi = 3.14159265358979323846;
  const double x = kPi * (t - 0.5);
  const double square = x * x;
  double term = x;
  double sine = x;
  for (int k = 3; k <= 17; k += 2) {
    term = term * -square / static_cast<double>(k * (k - 1));
    sine += term;
  }
  return std::clamp(0.5 - 0.5 * sine, 0.0, 1.0);
}

}  // namespace

Recipe seed_recipe() {
  Recipe recipe;
  recipe.name = "seed";
  recipe.rate = 0.01F;
  recipe.warmup_epochs = 5;
  recipe.momentum_drop = 0.01F;
  recipe.momentum_epochs = 10;
  recipe.momentum_floor = 0.5F;
  return recipe;
}

Recipe default_recipe() {
  Recipe recipe;
  recipe.name = "default";
  recipe.rate = 0.05F;
  recipe.warmup_epochs = 1;
  recipe.decay = Decay::cosine;
  recipe.weight_decay = 5e-4F;
  recipe.shift = 2;
  return recipe;
}

Result<Recipe> try_recipe(std::string_view name) {
  for (Recipe& recipe : std::array{default_recipe(), seed_recipe()}) {
    if (recipe.name == name) return std::move(recipe);
  }
  return Error(ErrorCode::invalid_argument, "there is no recipe " + quoted(name) + "; there are \"default\" and \"seed\"");
}

Hyper hyper_at(const Recipe& recipe, Index epoch, Index epochs, Index step, Index steps) noexcept {
  const Index now = epoch * steps + step;
  const Index warmup = recipe.warmup_epochs * steps;
  double factor = 1.0;
  if (now < warmup) {
    factor = static_cast<double>(now + 1) / static_cast<double>(warmup);
  } else if (recipe.decay == Decay::cosine) {
    const Index decaying = std::max<Index>(epochs * steps - warmup, 1);
    factor = half_cosine(static_cast<double>(std::min(now - warmup, decaying)) / static_cast<double>(decaying));
  }
  const Index drops = recipe.momentum_epochs > 0 ? epoch / recipe.momentum_epochs : 0;
  const double momentum =
      static_cast<double>(recipe.momentum) - static_cast<double>(recipe.momentum_drop) * static_cast<double>(drops);
  return {static_cast<float>(static_cast<double>(recipe.rate) * factor),
          static_cast<float>(std::max(momentum, static_cast<double>(recipe.momentum_floor))), recipe.weight_decay};
}

}  // namespace vitro
