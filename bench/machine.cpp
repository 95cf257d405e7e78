// SPDX-License-Identifier: Apache-2.0
// Names the machine, the compiler and the time; chooses cores.
#include "machine.hpp"

#include <ctime>
#include <fstream>
#include <sched.h>

namespace vitro_bench {

const char* compiler_version() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

const char* processor_name() {
  static const std::string name = [] {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
      const std::size_t colon = line.find(": ");
      if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
    }
    return std::string("unknown processor");
  }();
  return name.c_str();
}

std::string utc_now() {
  const std::time_t time = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
  return text;
}

std::vector<int> pin(int count) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cores;
  for (int core = CPU_SETSIZE - 1; core >= 0 && static_cast<int>(cores.size()) < count; --core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  for (const int core : cores) CPU_SET(core, &chosen);
  sched_setaffinity(0, sizeof chosen, &chosen);
  return cores;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + '"';
}

}  // namespace vitro_bench
