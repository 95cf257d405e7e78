// SPDX-License-Identifier: Apache-2.0
// Reads cpuid and xgetbv, and says which of the kernels' instruction-set groups they allow.
#include "features.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace vitro::simd {

namespace {

// Bit numbers: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, CPUID, and volume 1, section 13.3
// (XCR0).
constexpr std::uint32_t kLeaf1EcxFma = 1u << 12;
constexpr std::uint32_t kLeaf1EcxOsxsave = 1u << 27;
constexpr std::uint32_t kLeaf1EcxAvx = 1u << 28;
constexpr std::uint32_t kLeaf7EbxAvx2 = 1u << 5;
constexpr std::uint32_t kLeaf7EbxAvx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL
constexpr std::uint64_t kXcr0Avx = 1u << 1 | 1u << 2;                                 // XMM, upper halves of YMM
constexpr std::uint64_t kXcr0Avx512 = kXcr0Avx | 1u << 5 | 1u << 6 | 1u << 7;         // opmask, upper ZMM, ZMM16-31

template <class Bits>
constexpr bool has(Bits value, Bits bits) noexcept {
  return (value & bits) == bits;
}

}  // namespace

FeatureSet features(const CpuidRecord& record) noexcept {
  FeatureSet result;
  // Without OSXSAVE the operating system saves no AVX register, whatever the CPU offers.
  const bool avx = record.max_leaf >= 1 && has(record.leaf1_ecx, kLeaf1EcxOsxsave | kLeaf1EcxAvx) && has(record.xcr0, kXcr0Avx);
  result.fma = avx && has(record.leaf1_ecx, kLeaf1EcxFma);
  result.avx2 = result.fma && record.max_leaf >= 7 && has(record.leaf7_ebx, kLeaf7EbxAvx2);
  result.avx512 = result.avx2 && has(record.leaf7_ebx, kLeaf7EbxAvx512) && has(record.xcr0, kXcr0Avx512);
  return result;
}

CpuidRecord read_cpuid() noexcept {
  CpuidRecord record;
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  record.max_leaf = static_cast<std::uint32_t>(__get_cpuid_max(0, nullptr));  // an int in Clang
  if (record.max_leaf >= 1) {
    __cpuid(1, eax, ebx, ecx, edx);
    record.leaf1_ecx = ecx;
  }
  if (record.max_leaf >= 7) {
    __cpuid_count(7, 0, eax, ebx, ecx, edx);
    record.leaf7_ebx = ebx;
  }
  if (has(record.leaf1_ecx, kLeaf1EcxOsxsave)) {
    // xgetbv faults where OSXSAVE is not set. Written as assembly because the intrinsic needs -mxsave for the whole file.
    unsigned low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    record.xcr0 = static_cast<std::uint64_t>(high) << 32 | low;
  }
#endif
  return record;
}

}  // namespace vitro::simd
