// SPDX-License-Identifier: Apache-2.0
// Digests of every operation's results on drawn cases, committed in tests/golden/digests.txt: a change of bits is a decision.
//
// To decide so, run this program with VITRO_WRITE_DIGESTS set to a file name: it writes the digests it gets there (after
// checking that all contexts agree) instead of comparing. Copy that file over digests.txt and say why in the commit.
#include "digest_cases.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

using namespace vitro_test;

namespace {

// Lines "<operation> <digest in hex>"; others begin with #.
std::map<std::string, std::string> committed_digests() {
  std::ifstream file(VITRO_DIGESTS);
  REQUIRE(file.is_open());
  std::map<std::string, std::string> digests;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string operation, digest;
    words >> operation >> digest;
    REQUIRE(digests.emplace(operation, digest).second);
  }
  return digests;
}

std::string hex(std::uint64_t digest) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  return text;
}

}  // namespace

TEST_CASE("every operation has the committed bits on every instruction set and number of threads") {
  const char* const write_to = std::getenv("VITRO_WRITE_DIGESTS");
  const auto contexts = make_contexts();
  std::string lines;
  const std::map<std::string, std::string> committed =
      write_to == nullptr ? committed_digests() : std::map<std::string, std::string>{};
  for (const DigestCase& test : kDigestCases) {
    INFO(test.operation);
    const std::string want = hex(digest_of(test, *contexts.front()));
    lines += std::string(test.operation) + " " + want + "\n";
    for (const auto& context : contexts) {
      INFO(name_of(*context));
      CHECK(hex(digest_of(test, *context)) == want);
    }
    if (write_to != nullptr) continue;
    const auto found = committed.find(test.operation);
    REQUIRE(found != committed.end());
    CHECK(want == found->second);
  }
  if (write_to != nullptr) {
    std::ofstream(write_to)
        << "# Digests of the operations' results on drawn cases (64-bit FNV-1a over little-endian floats, every NaN "
           "as 0x7fc00000);\n# written by tests/ops/digest_test.cpp, which says how and when.\n"
        << lines;
  } else {
    CHECK(committed.size() == std::size(kDigestCases));
  }
}
