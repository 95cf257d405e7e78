// SPDX-License-Identifier: Apache-2.0
// Where results go, tried before the work begins and looked at when it is done, so that no long training ends with nothing.
#pragma once

#include "train_options.hpp"

namespace vitro::tools {

// Makes the folder of --save and tries for real whether a file can be written there and beside --report. Fails with a sentence
// that names the option, also for a report that would replace a file of the model in --save or --load.
void check_outputs(const TrainCommand& command);

// Whether all that was printed has arrived; later calls say the same.
bool standard_output_is_whole();

}  // namespace vitro::tools
