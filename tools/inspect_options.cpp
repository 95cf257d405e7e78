// SPDX-License-Identifier: Apache-2.0
// The options, their checks and their help text, on CLI11.
#include "inspect_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <string_view>

namespace vitro::tools {
namespace {

constexpr const char* kDescription =
    "Shows what a saved model runs: its layers, the steps of its inference (or of a training step) after capture, and where\n"
    "they keep their memory; and the numbers that a build without a heap needs.";

constexpr const char* kFooter = "Exit codes: 0 done; 1 a file or this machine; 2 the command line.";

// Digits only: the library's own conversion also takes octal, hexadecimal and signs.
CLI::Validator whole(Index low, Index high) {
  const auto check = [low, high](const std::string& text) {
    Index value = 0;
    const auto [end, reason] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool decimal = end == text.data() + text.size() && reason == std::errc() && (text == "0" || !text.starts_with('0'));
    if (decimal && value >= low && value <= high) return std::string();
    return "must be a whole number from " + std::to_string(low) + " to " + std::to_string(high) + ", not \"" +
           text.substr(0, 40) + (text.size() > 40 ? "...\"" : "\"");
  };
  return CLI::Validator(check, "");
}

CLI::Validator named() {
  return CLI::Validator([](const std::string& text) { return std::string(text.empty() ? "must not be empty" : ""); }, "");
}

// CLI11 takes the next argument for the value that is missing after "--batch=". Null if there is none such.
const char* option_without_value(int argc, char** argv) {
  const auto is_one = [](std::string_view argument) { return argument.starts_with("--") && argument.ends_with('='); };
  char** const found = std::find_if(argv + 1, argv + argc, is_one);
  return found == argv + argc ? nullptr : *found;
}

void add_options(CLI::App& app, InspectCommand& c, std::string& isa) {
  app.add_option("model", c.folder, "Folder of the saved model")->type_name("DIR")->required()->check(named());
  app.add_option("--batch", c.batch, "Samples in one run (1)")->type_name("N")->check(whole(1, 65536));
  app.add_flag("--train", c.train, "The training step instead of the inference");
  app.add_option("--isa", isa, "Kernels to use: auto, scalar, blocked, avx2, avx512 (auto)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"auto", "scalar", "blocked", "avx2", "avx512"}));
  app.add_option("--threads", c.threads, "Threads to compute with (1)")->type_name("N")->check(whole(1, 256));
  app.add_flag("!--no-fuse", c.fuse, "Every node a step of its own");
  app.add_flag("!--no-reuse", c.reuse_memory, "Every tensor memory of its own");
  app.add_option("--graphviz", c.graphviz, "Write the steps as a graph for Graphviz")->type_name("FILE")->check(named());
  app.add_option("--arena-svg", c.arena_svg, "Write the map of the arena as SVG")->type_name("FILE")->check(named());
  app.add_flag("--arena-text", c.arena_text, "Print the map of the arena");
}

}  // namespace

ParsedInspect parse_inspect_options(int argc, char** argv) {
  ParsedInspect parsed;
  if (const char* option = option_without_value(argc, argv)) {
    std::fprintf(stderr, "%s must not be empty\nRun with --help for more information.\n", option);
    parsed.exit_code = 2;
    return parsed;
  }
  CLI::App app(kDescription, "inspect");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("inspect ") + VITRO_VERSION);
  app.get_formatter()->column_width(28);
  std::string isa = "auto";
  add_options(app, parsed.command, isa);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    parsed.exit_code = app.exit(error) == 0 ? 0 : 2;
    return parsed;
  }
  const std::map<std::string, Isa> isas = {
      {"scalar", Isa::scalar}, {"blocked", Isa::blocked}, {"avx2", Isa::avx2}, {"avx512", Isa::avx512}};
  if (const auto found = isas.find(isa); found != isas.end()) parsed.command.isa = found->second;
  return parsed;
}

}  // namespace vitro::tools
