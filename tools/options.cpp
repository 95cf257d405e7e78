// SPDX-License-Identifier: Apache-2.0
// Checks of values, on CLI11.
#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <string_view>

namespace vitro::tools {
namespace {

// CLI11 takes the next argument for the value that is missing after "--save=". Null if there is none such.
const char* option_without_value(int argc, char** argv) {
  const auto is_one = [](std::string_view argument) { return argument.starts_with("--") && argument.ends_with('='); };
  char** const found = std::find_if(argv + 1, argv + argc, is_one);
  return found == argv + argc ? nullptr : *found;
}

}  // namespace

CLI::Validator whole(std::uint64_t low, std::uint64_t high) {
  const auto check = [low, high](const std::string& text) {
    std::uint64_t value = 0;
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

void add_isa_option(CLI::App& app, std::optional<Isa>& isa) {
  static const std::map<std::string, Isa> kIsas = {
      {"scalar", Isa::scalar}, {"blocked", Isa::blocked}, {"avx2", Isa::avx2}, {"avx512", Isa::avx512}};
  app.add_option_function<std::string>(
         "--isa", [&isa](const std::string& name) { isa = name == "auto" ? std::nullopt : std::optional(kIsas.at(name)); },
         "Kernels to use: auto, scalar, blocked, avx2, avx512 (auto)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"auto", "scalar", "blocked", "avx2", "avx512"}));
}

std::optional<int> parse_or_end(CLI::App& app, int argc, char** argv, int usage) {
  if (const char* option = option_without_value(argc, argv)) {
    std::fprintf(stderr, "%s must not be empty\nRun with --help for more information.\n", option);
    return usage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : usage;
  }
  return std::nullopt;
}

}  // namespace vitro::tools
