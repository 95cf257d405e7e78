// SPDX-License-Identifier: Apache-2.0
// The machine's peak rate of fused multiply-adds, measured: what the benchmarks of matrix products print their fraction of.
#pragma once

#include "../simd/kernels.hpp"

namespace vitro_bench {

// GFLOP/s (two a lane and instruction) of independent fma instructions of the width that the instruction set's kernels use, on
// one thread, over its processor time: the median of some loops of a few tens of microseconds. 0 where it is not known how to
// measure.
double fma_peak(vitro::simd::Isa isa);

// Processor time of this thread so far: a figure that another program on the same core does not change (much).
double processor_seconds();

// "model name" of /proc/cpuinfo and the compiler's version, for the head of a table of figures.
const char* compiler_version();
const char* processor_name();

}  // namespace vitro_bench
