// SPDX-License-Identifier: Apache-2.0
// inspect's command line.
#pragma once

#include "../ops/context.hpp"

#include <optional>
#include <string>

namespace vitro::tools {

struct InspectCommand {
  std::string folder;  // of a saved model
  Index batch = 1;
  bool train = false;  // the training step in place of the inference
  std::optional<Isa> isa;
  int threads = 1;
  bool fuse = true, reuse_memory = true;
  bool arena_text = false;
  std::string graphviz, arena_svg;  // files to write; empty: none
};

// Parses argv. If the program should end now (--help, --version, an error) everything has been printed and the result holds the
// exit code only: 0, or 2 for an error.
struct ParsedInspect {
  InspectCommand command;
  std::optional<int> exit_code;
};
ParsedInspect parse_inspect_options(int argc, char** argv);

}  // namespace vitro::tools
