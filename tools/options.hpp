// SPDX-License-Identifier: Apache-2.0
// What the programs' command lines have in common: checks of values, and the end that parsing may bring.
#pragma once

#include "../ops/context.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace vitro::tools {

// A whole number from low to high, in decimal digits only: CLI11's own conversion also takes octal, hexadecimal and signs, and
// turns what is too large into the largest number.
CLI::Validator whole(std::uint64_t low, std::uint64_t high);
// Not empty.
CLI::Validator named();

// --isa: "auto" (the default, no value) or the name of an instruction set.
void add_isa_option(CLI::App& app, std::optional<Isa>& isa);

// Parses argv; if the program should end now (--help, --version, an error), everything has been printed and the result is the
// exit code: 0, or `usage` for an error.
std::optional<int> parse_or_end(CLI::App& app, int argc, char** argv, int usage);

}  // namespace vitro::tools
