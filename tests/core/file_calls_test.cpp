// SPDX-License-Identifier: Apache-2.0
// In which order a file gets to the disk: after a power cut its name must never stand for contents that are not there.
#include "../support/system_calls.hpp"
#include "../support/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vitro/core/file.hpp>

TEST_CASE("a file is on the disk before it has its name, and the name is on the disk before the call returns") {
  const vitro_test::TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  const std::vector<std::byte> bytes(1000);
  vitro_test::watch_calls();
  vitro::write_file(path, bytes).value();
  const std::vector<std::string> calls = vitro_test::watched_calls();
  REQUIRE(calls.size() == 4);
  REQUIRE(calls[0].starts_with("write " + folder.path() + "/."));
  const std::string aside = calls[0].substr(6);
  CHECK(calls[1] == "fsync " + aside);
  CHECK(calls[2] == "rename " + aside + " " + path);
  CHECK(calls[3] == "fsync " + folder.path());
}
