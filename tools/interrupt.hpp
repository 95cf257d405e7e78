// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM: the first one asks for an orderly end, the second one ends the program, and neither cuts a file in two.
#pragma once

namespace vitro::tools {

// From here on the first SIGINT or SIGTERM only makes interrupted() true, and the next one ends the program with exit code 130.
void catch_interrupts();

bool interrupted() noexcept;

// While one lives, a signal that would end the program is as good as a first one: what is being written gets finished.
class WriteInPeace {
 public:
  WriteInPeace() noexcept;
  ~WriteInPeace();
  WriteInPeace(const WriteInPeace&) = delete;
  WriteInPeace& operator=(const WriteInPeace&) = delete;
};

}  // namespace vitro::tools
