// SPDX-License-Identifier: Apache-2.0
// The machine's peak rate of fused multiply-adds, measured: what the benchmarks of matrix products print their fraction of.
#pragma once

#include "../simd/kernels.hpp"

namespace vitro_bench {

// GFLOP/s (two a lane and instruction) of independent fma instructions of the width that the instruction set's kernels use, on
// one thread, over its processor time: the median of some loops of a few tens of microseconds. 0 where it is not known how to
// measure.
double fma_peak(vitro::simd::Isa isa);
// The same of so many threads at once, together: what the machine's processors are worth while all of them work. Far from
// `threads` times as much, they are threads of one core, or something else runs there.
double fma_peak_together(vitro::simd::Isa isa, int threads);

// Processor time of this thread so far: a figure that another program on the same core does not change (much).
double processor_seconds();

// count times twelve independent fma instructions of that width, in registers alone: work whose time shows nothing but what the
// machine does to it. Nothing where fma_peak() is 0.
void fma_loop(vitro::simd::Isa isa, long count);

}  // namespace vitro_bench
