// SPDX-License-Identifier: Apache-2.0
// Vitro's training step of LeNet-5, recorded and run on the eager tape.
#pragma once

#include "../../ops/context.hpp"
#include "peer.hpp"

namespace vitro_bench {

std::unique_ptr<Job> make_lenet_step(const std::shared_ptr<vitro::Context>& context, const Problem& problem);

}  // namespace vitro_bench
