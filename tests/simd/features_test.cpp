// SPDX-License-Identifier: Apache-2.0
// Feature detection on recorded machines: what the vendors' manuals say their cpuid leaves hold.
#include "../../simd/features.hpp"

#include <catch2/catch_test_macros.hpp>

using vitro::simd::CpuidRecord;
using vitro::simd::features;
using vitro::simd::FeatureSet;

namespace {

// cpuid(1).ecx: SSE3, SSSE3, SSE4.1, SSE4.2 and POPCNT in every record below, then FMA, OSXSAVE (with XSAVE) and AVX.
constexpr std::uint32_t kSse = 1u << 0 | 1u << 9 | 1u << 19 | 1u << 20 | 1u << 23;
constexpr std::uint32_t kFma = 1u << 12;
constexpr std::uint32_t kXsave = 1u << 26;
constexpr std::uint32_t kOsxsave = 1u << 27;
constexpr std::uint32_t kAvx = 1u << 28;
// cpuid(7, 0).ebx: BMI1, AVX2, BMI2; AVX-512 F, DQ, IFMA, CD, BW, VL; PF and ER are Xeon Phi's.
constexpr std::uint32_t kHaswell = 1u << 3 | 1u << 5 | 1u << 8;
constexpr std::uint32_t kAvx512f = 1u << 16, kAvx512dq = 1u << 17, kAvx512pf = 1u << 26, kAvx512er = 1u << 27;
constexpr std::uint32_t kAvx512cd = 1u << 28, kAvx512bw = 1u << 30, kAvx512vl = 1u << 31;
constexpr std::uint32_t kSkylakeServer = kHaswell | kAvx512f | kAvx512dq | kAvx512cd | kAvx512bw | kAvx512vl;
// XCR0: x87, XMM, YMM; opmask, upper halves of ZMM0-15, ZMM16-31.
constexpr std::uint64_t kSaveSse = 0x3, kSaveAvx = 0x7, kSaveAvx512 = 0xE7;

bool same(const FeatureSet& a, const FeatureSet& b) { return a.contains(b) && b.contains(a); }

constexpr FeatureSet kNothing{};
constexpr FeatureSet kFmaOnly{.fma = true};
constexpr FeatureSet kUpToAvx2{.fma = true, .avx2 = true};
constexpr FeatureSet kUpToAvx512{.fma = true, .avx2 = true, .avx512 = true};

}  // namespace

TEST_CASE("A record of zeros has no feature") { CHECK(same(features(CpuidRecord{}), kNothing)); }

TEST_CASE("Intel processors have the groups of their generation") {
  SECTION("Nehalem (2008): SSE4.2, no AVX") {
    CHECK(same(features({.max_leaf = 0xB, .leaf1_ecx = kSse, .leaf7_ebx = 0, .xcr0 = 0}), kNothing));
  }
  SECTION("Sandy Bridge (2011): AVX without FMA") {
    CHECK(same(features({.max_leaf = 0xD, .leaf1_ecx = kSse | kXsave | kOsxsave | kAvx, .leaf7_ebx = 0, .xcr0 = kSaveAvx}),
               kNothing));
  }
  SECTION("Haswell (2013): AVX2 and FMA") {
    const CpuidRecord haswell{
        .max_leaf = 0xD, .leaf1_ecx = kSse | kFma | kXsave | kOsxsave | kAvx, .leaf7_ebx = kHaswell, .xcr0 = kSaveAvx};
    CHECK(same(features(haswell), kUpToAvx2));
  }
  SECTION("Knights Landing (2016): AVX-512 F, CD, ER and PF, but neither BW, DQ nor VL") {
    const CpuidRecord phi{.max_leaf = 0xD,
                          .leaf1_ecx = kSse | kFma | kXsave | kOsxsave | kAvx,
                          .leaf7_ebx = kHaswell | kAvx512f | kAvx512cd | kAvx512er | kAvx512pf,
                          .xcr0 = kSaveAvx512};
    CHECK(same(features(phi), kUpToAvx2));
  }
  SECTION("Skylake-SP (2017): AVX-512 F, CD, BW, DQ and VL") {
    const CpuidRecord server{.max_leaf = 0x16,
                             .leaf1_ecx = kSse | kFma | kXsave | kOsxsave | kAvx,
                             .leaf7_ebx = kSkylakeServer,
                             .xcr0 = kSaveAvx512 | 1u << 9};
    CHECK(same(features(server), kUpToAvx512));
  }
  SECTION("Alder Lake (2021): AVX-512 fused off") {
    const CpuidRecord desktop{.max_leaf = 0x20,
                              .leaf1_ecx = kSse | kFma | kXsave | kOsxsave | kAvx,
                              .leaf7_ebx = kHaswell,
                              .xcr0 = kSaveAvx | 1u << 9};
    CHECK(same(features(desktop), kUpToAvx2));
  }
}

TEST_CASE("AMD processors have the groups of their generation") {
  SECTION("Bulldozer (2011): AVX and FMA4, which is another instruction than FMA3") {
    CHECK(same(features({.max_leaf = 0xD, .leaf1_ecx = kSse | kXsave | kOsxsave | kAvx, .leaf7_ebx = 0, .xcr0 = kSaveAvx}),
               kNothing));
  }
  SECTION("Piledriver (2012): FMA3 without AVX2") {
    const CpuidRecord piledriver{
        .max_leaf = 0xD, .leaf1_ecx = kSse | kFma | kXsave | kOsxsave | kAvx, .leaf7_ebx = 1u << 3, .xcr0 = kSaveAvx};
    CHECK(same(features(piledriver), kFmaOnly));
  }
  SECTION("Zen 2 (2019): AVX2 and FMA") {
    const CpuidRecord zen2{
        .max_leaf = 0x10, .leaf1_ecx = kSse | kFma | kXsave | kOsxsave | kAvx, .leaf7_ebx = kHaswell, .xcr0 = kSaveAvx};
    CHECK(same(features(zen2), kUpToAvx2));
  }
  SECTION("Zen 4 (2022): AVX-512") {
    const CpuidRecord zen4{.max_leaf = 0x10,
                           .leaf1_ecx = kSse | kFma | kXsave | kOsxsave | kAvx,
                           .leaf7_ebx = kSkylakeServer,
                           .xcr0 = kSaveAvx512};
    CHECK(same(features(zen4), kUpToAvx512));
  }
}

TEST_CASE("A group counts only where the operating system saves its registers") {
  const std::uint32_t ecx = kSse | kFma | kXsave | kOsxsave | kAvx;
  SECTION("AVX-512 without opmask and ZMM in XCR0 leaves AVX2") {
    CHECK(same(features({.max_leaf = 0x16, .leaf1_ecx = ecx, .leaf7_ebx = kSkylakeServer, .xcr0 = kSaveAvx}), kUpToAvx2));
  }
  SECTION("any one of the three AVX-512 states missing leaves AVX2") {
    for (const unsigned bit : {5u, 6u, 7u}) {
      const std::uint64_t xcr0 = kSaveAvx512 & ~(std::uint64_t{1} << bit);
      CHECK(same(features({.max_leaf = 0x16, .leaf1_ecx = ecx, .leaf7_ebx = kSkylakeServer, .xcr0 = xcr0}), kUpToAvx2));
    }
  }
  SECTION("AVX without YMM in XCR0 leaves nothing") {
    CHECK(same(features({.max_leaf = 0xD, .leaf1_ecx = ecx, .leaf7_ebx = kHaswell, .xcr0 = kSaveSse}), kNothing));
  }
  SECTION("AVX without OSXSAVE leaves nothing, whatever is left in the record of XCR0") {
    const std::uint32_t no_osxsave = ecx & ~kOsxsave;
    CHECK(same(features({.max_leaf = 0xD, .leaf1_ecx = no_osxsave, .leaf7_ebx = kHaswell, .xcr0 = 0}), kNothing));
    CHECK(same(features({.max_leaf = 0xD, .leaf1_ecx = no_osxsave, .leaf7_ebx = kHaswell, .xcr0 = kSaveAvx}), kNothing));
  }
  SECTION("a hypervisor that hides leaf 7 leaves FMA") {
    CHECK(same(features({.max_leaf = 6, .leaf1_ecx = ecx, .leaf7_ebx = kHaswell, .xcr0 = kSaveAvx}), kFmaOnly));
  }
  SECTION("AVX2 with FMA hidden leaves nothing, because every kernel of ours uses it") {
    CHECK(same(features({.max_leaf = 0xD, .leaf1_ecx = ecx & ~kFma, .leaf7_ebx = kHaswell, .xcr0 = kSaveAvx}), kNothing));
  }
}

TEST_CASE("This machine's record agrees with the compiler's own detection") {
#if defined(__x86_64__)
  const FeatureSet here = features(vitro::simd::read_cpuid());
  __builtin_cpu_init();
  CHECK(here.fma == (__builtin_cpu_supports("avx") && __builtin_cpu_supports("fma")));
  CHECK(here.avx2 == (here.fma && __builtin_cpu_supports("avx2")));
  CHECK(here.avx512 == (here.avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")));
#else
  CHECK(same(features(vitro::simd::read_cpuid()), kNothing));
#endif
}
