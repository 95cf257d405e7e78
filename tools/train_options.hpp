// SPDX-License-Identifier: Apache-2.0
// lenet_train's command line.
#pragma once

#include "../models/trainer.hpp"
#include "../ops/context.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace vitro::tools {

// What lenet_train's exit codes mean; also in its --help and in README.md.
enum ExitCode : int {
  kSuccess = 0,
  kFailure = 1,       // a file, the data or this machine: the message says which and what would be right
  kUsage = 2,         // the command line
  kNotFinite = 3,     // the training produced infinities or NaNs and stopped
  kInterrupted = 130  // Ctrl-C (128 + SIGINT) or SIGTERM, after saving if --save was given; a second one: at once
};

// As given; an empty optional is an option that was not. A resumed training takes what is not given from the saved one.
struct TrainCommand {
  std::string data;  // empty: VITRO_MNIST_DIR, data/mnist, data/sample, in this order
  std::optional<Index> epochs;
  std::optional<Index> batch;
  std::optional<std::string> recipe;
  std::optional<std::uint64_t> seed;
  std::optional<Index> limit;  // train on the first so many images only
  int threads = 1;
  std::optional<Isa> isa;
  TrainExecution execution = {.input = InputPolicy::buffered};
  std::string save, load, report;
  bool restart = false;  // with load: a new training from its weights
  bool eval = false;
  bool quiet = false;
};

// Parses argv. If the program should end now (--help, --version, an error) everything has been printed and the result holds the
// exit code only.
struct Parsed {
  TrainCommand command;
  std::optional<int> exit_code;
};
Parsed parse_command_line(int argc, char** argv);

}  // namespace vitro::tools
