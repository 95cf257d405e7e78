// SPDX-License-Identifier: Apache-2.0
// LeNet-5 in Vitro's two modes: its training step written by hand, and its inference.
#pragma once

#include "../../ops/context.hpp"
#include "peer.hpp"

namespace vitro_bench {

enum class Mode {
  eager,     // recorded and run anew in every step
  captured,  // recorded once, then a plan is replayed; inference is a Session
};

std::unique_ptr<Job> make_lenet_step(const std::shared_ptr<vitro::Context>& context, const Problem& problem, Mode mode);
std::unique_ptr<Job> make_lenet_scores(const std::shared_ptr<vitro::Context>& context, const Problem& problem, Mode mode);

}  // namespace vitro_bench
