// SPDX-License-Identifier: Apache-2.0
// The options, their checks and their help text, on CLI11.
#include "inspect_options.hpp"

#include "options.hpp"

namespace vitro::tools {
namespace {

constexpr const char* kDescription =
    "Shows what a saved model runs: its layers, the steps of its inference (or of a training step) after capture, and where\n"
    "they keep their memory; and the numbers that a build without a heap needs.";

constexpr const char* kFooter = "Exit codes: 0 done; 1 a file or this machine; 2 the command line.";

void add_options(CLI::App& app, InspectCommand& c) {
  app.add_option("model", c.folder, "Folder of the saved model")->type_name("DIR")->required()->check(named());
  app.add_option("--batch", c.batch, "Samples in one run (1)")->type_name("N")->check(whole(1, 65536));
  app.add_flag("--train", c.train, "The training step instead of the inference");
  add_isa_option(app, c.isa);
  app.add_option("--threads", c.threads, "Threads to compute with (1)")->type_name("N")->check(whole(1, 256));
  app.add_flag_callback(
      "--no-fuse", [&c] { c.fuse = false; }, "Every node a step of its own");
  app.add_flag_callback(
      "--no-reuse", [&c] { c.reuse_memory = false; }, "Every tensor memory of its own");
  app.add_option("--graphviz", c.graphviz, "Write the steps as a graph for Graphviz")->type_name("FILE")->check(named());
  app.add_option("--arena-svg", c.arena_svg, "Write the map of the arena as SVG")->type_name("FILE")->check(named());
  app.add_flag("--arena-text", c.arena_text, "Print the map of the arena");
}

}  // namespace

ParsedInspect parse_inspect_options(int argc, char** argv) {
  ParsedInspect parsed;
  CLI::App app(kDescription, "inspect");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("inspect ") + VITRO_VERSION);
  app.get_formatter()->column_width(28);
  add_options(app, parsed.command);
  parsed.exit_code = parse_or_end(app, argc, argv, 2);
  return parsed;
}

}  // namespace vitro::tools
