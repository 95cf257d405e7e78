// SPDX-License-Identifier: Apache-2.0
// A plan's arena as a picture: which tensor lies where, and for which steps.
#pragma once

#include "../autograd/plan.hpp"

#include <string>

namespace vitro::tools {

// For a terminal: a row for each block, in the order of their places, with a bar over the steps that need it. Where there are
// more steps than columns, each column stands for several.
std::string arena_text(const Plan& plan);

// The same to scale, as an SVG document that needs nothing else: steps to the right, bytes upwards, the lower bound as a line.
std::string arena_svg(const Plan& plan);

}  // namespace vitro::tools
