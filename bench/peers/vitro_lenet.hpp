// SPDX-License-Identifier: Apache-2.0
// LeNet-5 on Vitro's eager tape: training step and inference.
#pragma once

#include "../../ops/context.hpp"
#include "peer.hpp"

namespace vitro_bench {

std::unique_ptr<Job> make_lenet_step(const std::shared_ptr<vitro::Context>& context, const Problem& problem);
std::unique_ptr<Job> make_lenet_scores(const std::shared_ptr<vitro::Context>& context, const Problem& problem);

}  // namespace vitro_bench
