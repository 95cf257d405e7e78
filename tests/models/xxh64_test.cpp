// SPDX-License-Identifier: Apache-2.0
// XXH64 against the values of its reference implementation.
#include <catch2/catch_test_macros.hpp>
#include <string_view>
#include <vector>
#include <vitro/models/xxh64.hpp>

using vitro::xxh64;

TEST_CASE("XXH64 has the values of the reference implementation at every length that takes another path") {
  struct Case {
    std::size_t size;
    std::uint64_t plain, seeded;  // XXH64 of libxxhash 0.8.1 with the seeds 0 and 0x9e3779b97f4a7c15
  };
  for (const Case& test :
       {Case{0, 0xef46db3751d8e999, 0xc4349fc93c010000}, Case{1, 0xe934a84adb052768, 0x126bb57a12364aa5},
        Case{3, 0x9ff70a635a6209ab, 0xd169d7c1cb5e443f}, Case{4, 0xae5acdc00a55ac41, 0xaeec91bdfd4f8a43},
        Case{7, 0xd734a6b26f3da63e, 0x60bf31abf53f85dd}, Case{8, 0x87116b3365b924eb, 0xcfcfd09b165b3edb},
        Case{14, 0x8b3c6f96512c86a1, 0x99e2deda4d475a31}, Case{31, 0x0f187c62b1e722b7, 0x74a5c408b232704d},
        Case{32, 0x91b0cb0931a8c629, 0xffed706a1999bb4f}, Case{33, 0x931b043cf8d65b94, 0x5d3268a30eb755d3},
        Case{63, 0x219110bf13e2fa26, 0x3d33bc4bfd4d217f}, Case{64, 0xbf3052e3445775d0, 0x767e0fa4d0ba92ef},
        Case{101, 0x42312f4d55d9bd17, 0x0a7c2d07863f59c2}, Case{1000, 0x698399d62f9c1695, 0xdd42014ab7f506a0}}) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < test.size; ++i) bytes.push_back(static_cast<std::byte>((i * 7 + i / 256) & 255));
    CHECK(xxh64(bytes, 0) == test.plain);
    CHECK(xxh64(bytes, 0x9e3779b97f4a7c15) == test.seeded);
  }
}
