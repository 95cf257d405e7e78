// SPDX-License-Identifier: Apache-2.0
// Index, a constant, and the namespaces of the kernel variants; no functions, so that files compiled with ISA flags may include
// it.
//
// The entry points of a variant stand in vitro::simd::<variant> under the names they have in KernelTable: scalar, blocked,
// avx2, avx512, and scalar_fma, blocked_fma for the sources that are compiled a second time with the hardware's fma
// instruction.
#pragma once

#include <cstddef>

// Defined by the build for the second compilation only, together with the flag that allows the instruction.
#ifdef VITRO_SIMD_FMA
#ifndef __FMA__
#error "VITRO_SIMD_FMA needs -mfma."
#endif
#define VITRO_SCALAR scalar_fma
#define VITRO_BLOCKED blocked_fma
#else
#define VITRO_SCALAR scalar
#define VITRO_BLOCKED blocked
#endif

namespace vitro::simd {

using Index = std::ptrdiff_t;

constexpr Index kSumChunk = 512;  // terms of one chain of a sum along an outer axis, part of the numerics contract

}  // namespace vitro::simd
