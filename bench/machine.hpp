// SPDX-License-Identifier: Apache-2.0
// What a program says about the machine beside its figures, and on which of its cores it runs.
#pragma once

#include <string>
#include <vector>

namespace vitro_bench {

// "model name" of /proc/cpuinfo, the compiler's name and version, the time in UTC.
const char* processor_name();
const char* compiler_version();
std::string utc_now();

// Keeps the process, and all threads that libraries start, on the last `count` of the cores it may use, or on all of them
// where there are fewer; returns them.
std::vector<int> pin(int count);

// A JSON string. Control characters become spaces.
std::string quoted(const std::string& text);

}  // namespace vitro_bench
