// SPDX-License-Identifier: Apache-2.0
// CPU features as a pure function of cpuid and xgetbv values, so that it can be tested on recorded machines.
#pragma once

#include <cstdint>

namespace vitro::simd {

// Instruction-set groups the kernels are compiled for. A group counts as present only when every feature in it is there and the
// operating system saves the registers it uses (xgetbv).
struct FeatureSet {
  bool fma = false;     // AVX and FMA3: enough for the scalar kernels' fma instruction
  bool avx2 = false;    // fma, and AVX2
  bool avx512 = false;  // avx2, and AVX-512 F, BW, DQ, VL

  // Whether everything in `required` is present here.
  constexpr bool contains(const FeatureSet& required) const noexcept {
    return (fma || !required.fma) && (avx2 || !required.avx2) && (avx512 || !required.avx512);
  }
};

// The values that features() reads. Zero where a leaf does not exist.
struct CpuidRecord {
  std::uint32_t max_leaf = 0;   // cpuid(0).eax
  std::uint32_t leaf1_ecx = 0;  // cpuid(1).ecx
  std::uint32_t leaf7_ebx = 0;  // cpuid(7, 0).ebx
  std::uint64_t xcr0 = 0;       // xgetbv(0), read only where cpuid(1).ecx has OSXSAVE
};

FeatureSet features(const CpuidRecord& record) noexcept;

// Reads this machine's values; all zero on a machine that is not x86-64.
CpuidRecord read_cpuid() noexcept;

}  // namespace vitro::simd
