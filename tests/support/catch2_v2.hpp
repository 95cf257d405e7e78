// SPDX-License-Identifier: Apache-2.0
// Lets tests that are written for Catch2 3 build with Catch2 2.13, the version of Debian 12 and Ubuntu 22.04: its one header,
// and the few names of version 3 that it lacks. The build tree forwards version 3's header names to this file.
#pragma once

#include <catch2/catch.hpp>
#include <string>

namespace vitro_test {

// Ends the running test case as skipped: prints the reason, and makes main() return 4 if no other test case ran.
[[noreturn]] void skip(const std::string& reason);

}  // namespace vitro_test

#if !defined(SKIP)
#define SKIP(...) ::vitro_test::skip((::Catch::ReusableStringStream() << __VA_ARGS__ + ::Catch::StreamEndStop()).str())
#endif

namespace Catch {

using Detail::Approx;

namespace Matchers {

inline auto ContainsSubstring(const std::string& text, CaseSensitive::Choice choice = CaseSensitive::Yes) {
  return Contains(text, choice);
}

}  // namespace Matchers
}  // namespace Catch
