// SPDX-License-Identifier: Apache-2.0
// Files: whole or not at all, in good and in bad circumstances.
#include "../support/temporary_folder.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>
#include <vitro/core/file.hpp>
#include <vitro/core/text.hpp>

using Catch::Matchers::ContainsSubstring;
using vitro::ErrorCode;

namespace fs = std::filesystem;

namespace {

using Bytes = std::vector<std::byte>;

Bytes pattern(std::size_t size, unsigned start = 0) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 7 + i / 256 + start) & 0xFF);
  return bytes;
}

// A folder of its own for a test case, gone afterwards.
class Folder {
 public:
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }
  const fs::path& path() const { return path_; }

 private:
  vitro_test::TemporaryFolder folder_;
  fs::path path_ = folder_.path();
};

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

Bytes read(const std::string& path) { return vitro::read_file(path, 1U << 24).value(); }

void write(const std::string& path, const Bytes& bytes) { vitro::write_file(path, bytes).value(); }

}  // namespace

TEST_CASE("what is written is read back, of any size") {
  const Folder folder;
  for (const std::size_t size : {0U, 1U, 4095U, 4096U, 65536U, 300000U}) {
    write(folder / "file", pattern(size));
    CHECK(read(folder / "file") == pattern(size));
  }
  CHECK(folder.entries() == 1);
}

TEST_CASE("a file may have as many bytes as allowed and not one more") {
  const Folder folder;
  write(folder / "file", pattern(100));
  CHECK(vitro::read_file(folder / "file", 100).ok());
  const vitro::Error error = vitro::read_file(folder / "file", 99).error();
  CHECK(error.code() == ErrorCode::invalid_argument);
  CHECK_THAT(error.message(), ContainsSubstring(folder / "file") && ContainsSubstring("99 bytes"));
  write(folder / "empty", {});
  CHECK(vitro::read_file(folder / "empty", 0).value().empty());
}

TEST_CASE("a file that is missing or a folder is an error with the path and the system's reason") {
  const Folder folder;
  const vitro::Error missing = vitro::read_file(folder / "nothing", 10).error();
  CHECK(missing.code() == ErrorCode::io);
  CHECK_THAT(missing.message(), ContainsSubstring(vitro::quoted(folder / "nothing") + ": No such file or directory"));
  const vitro::Error directory = vitro::read_file(folder.path().string(), 10).error();
  CHECK(directory.code() == ErrorCode::io);
  CHECK_THAT(directory.message(), ContainsSubstring("Is a directory"));
}

TEST_CASE("what is no regular file is refused at once, and what has no size is read to its end") {
  const Folder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);  // without a writer: whoever opens it as usual waits
  for (const std::string& path : {folder / "pipe", std::string("/dev/null"), std::string("/dev/zero")}) {
    const vitro::Error error = vitro::read_file(path, 100000).error();
    CHECK(error.code() == ErrorCode::io);
    CHECK_THAT(error.message(), ContainsSubstring(vitro::quoted(path)) && ContainsSubstring("not a regular file"));
  }
  CHECK_FALSE(read("/proc/self/status").empty());  // its size is said to be 0
  CHECK(vitro::read_file("/proc/self/status", 10).error().code() == ErrorCode::invalid_argument);
}

TEST_CASE("trying a folder leaves nothing in it and says why nothing could be written there") {
  const Folder folder;
  CHECK(vitro::try_folder(folder.path().string()).ok());
  CHECK(folder.entries() == 0);
  CHECK_THAT(vitro::try_folder(folder / "no").error().message(), ContainsSubstring("No such file"));
  CHECK_FALSE(vitro::try_folder("/proc").ok());
}

TEST_CASE("a folder's list has every name, and a file that is removed is gone") {
  const Folder folder;
  CHECK(vitro::list_folder(folder.path().string()).value().empty());
  write(folder / "a", pattern(1));
  write(folder / ".b", pattern(1));
  fs::create_directory(folder / "c");
  std::vector<std::string> names = vitro::list_folder(folder.path().string()).value();
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{".b", "a", "c"});
  vitro::remove_file(folder / "a").value();
  CHECK_FALSE(vitro::file_exists(folder / "a"));
  CHECK_THAT(vitro::remove_file(folder / "a").error().message(), ContainsSubstring(vitro::quoted(folder / "a")));
  CHECK_FALSE(vitro::remove_file(folder / "c").ok());
  CHECK_FALSE(vitro::list_folder(folder / "a").ok());
}

TEST_CASE("who locks a folder waits for who holds it") {
  const Folder folder;
  std::atomic<bool> released = false;
  std::thread other;
  {
    const vitro::FolderLock lock(folder.path().string());
    other = std::thread([&] {
      const vitro::FolderLock second(folder.path().string());
      CHECK(released);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    released = true;
  }
  other.join();
  const vitro::FolderLock nothing(folder / "no");
}

TEST_CASE("a written file replaces the old one and obeys the process's file mode mask") {
  const Folder folder;
  write(folder / "file", pattern(5000));
  const mode_t mask = ::umask(0027);
  write(folder / "file", pattern(10));
  ::umask(mask);
  CHECK(read(folder / "file") == pattern(10));
  struct stat info {};
  REQUIRE(::stat((folder / "file").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777U) == 0640U);
  CHECK(folder.entries() == 1);
}

TEST_CASE("a name may be as long as the system allows") {
  const Folder folder;
  write(folder / std::string(255, 'n'), pattern(3));
  CHECK(read(folder / std::string(255, 'n')) == pattern(3));
}

TEST_CASE("a rename that fails leaves nothing behind") {
  const Folder folder;
  const vitro::Status status = vitro::write_file(folder / std::string(256, 'n'), pattern(3));
  REQUIRE_FALSE(status);
  CHECK(status.error().code() == ErrorCode::io);
  CHECK_THAT(status.error().message(), ContainsSubstring("File name too long"));
  CHECK(folder.entries() == 0);
}

TEST_CASE("a symbolic link is replaced, and the file that it named is left alone") {
  const Folder folder;
  write(folder / "target", pattern(8));
  fs::create_symlink("target", folder / "link");
  write(folder / "link", pattern(9));
  CHECK(read(folder / "target") == pattern(8));
  CHECK(read(folder / "link") == pattern(9));
  CHECK_FALSE(fs::is_symlink(folder / "link"));
}

TEST_CASE("a folder that is missing, or is a file, is an error and not created") {
  const Folder folder;
  const vitro::Status missing = vitro::write_file(folder / "no/file", pattern(3));
  REQUIRE_FALSE(missing);
  CHECK_THAT(missing.error().message(), ContainsSubstring(folder / "no/file") && ContainsSubstring("No such file"));
  write(folder / "plain", pattern(3));
  CHECK_FALSE(vitro::write_file(folder / "plain/file", pattern(3)));
  CHECK(folder.entries() == 1);
}

TEST_CASE("what is no regular file is not replaced") {
  // A pipe stands for devices: a test that fails as root must not have replaced /dev/full.
  const Folder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const std::string& path : {folder / "pipe", folder.path().string()}) {
    const vitro::Status status = vitro::write_file(path, pattern(3));
    REQUIRE_FALSE(status);
    CHECK(status.error().code() == ErrorCode::io);
    CHECK_THAT(status.error().message(), ContainsSubstring(path) && ContainsSubstring("not a regular file"));
  }
  CHECK(fs::is_fifo(folder / "pipe"));
}

TEST_CASE("a folder that may not be written to is an error that leaves the old file") {
  const Folder folder;
  write(folder / "file", pattern(20));
  fs::permissions(folder.path(),
                  fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);
  const bool root = ::geteuid() == 0;  // to whom nothing is forbidden
  if (root) REQUIRE(::seteuid(65534) == 0);
  const vitro::Status status = vitro::write_file(folder / "file", pattern(3));
  if (root) REQUIRE(::seteuid(0) == 0);
  REQUIRE_FALSE(status);
  CHECK_THAT(status.error().message(), ContainsSubstring("Permission denied"));
  CHECK(read(folder / "file") == pattern(20));
  CHECK(folder.entries() == 1);
}

TEST_CASE("a disk that fills up while writing is an error that leaves the old file and nothing else") {
  // A limit on the size of files makes write() stop short and then fail, as a full disk does.
  const Folder folder;
  write(folder / "file", pattern(20));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit limit = before;
  limit.rlim_cur = 10000;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  const vitro::Status status = vitro::write_file(folder / "file", pattern(50000));
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  REQUIRE_FALSE(status);
  CHECK(status.error().code() == ErrorCode::io);
  CHECK_THAT(status.error().message(), ContainsSubstring("cannot write") && ContainsSubstring("File too large"));
  CHECK(read(folder / "file") == pattern(20));
  CHECK(folder.entries() == 1);
}

TEST_CASE("a leftover of a killed program does not stand in the way") {
  const Folder folder;
  const std::string leftover = folder / (".vitro-" + std::to_string(::getpid()) + "-0.tmp");
  write(leftover, pattern(1));
  write(folder / "file", pattern(30));
  CHECK(read(folder / "file") == pattern(30));
  CHECK(read(leftover) == pattern(1));
}

TEST_CASE("a reader sees one writer's file or another's, and never half of either") {
  const Folder folder;
  write(folder / "file", pattern(100000, 0));
  std::atomic<int> running{3};
  std::vector<std::thread> writers;
  for (unsigned number = 1; number <= 3; ++number) {
    writers.emplace_back([&, number] {
      for (int round = 0; round < 20; ++round) write(folder / "file", pattern(100000 + number, number));
      --running;
    });
  }
  int wrong = 0;
  do {
    const Bytes bytes = read(folder / "file");
    if (bytes != pattern(bytes.size(), static_cast<unsigned>(bytes.size() - 100000))) ++wrong;
  } while (running > 0);
  for (std::thread& writer : writers) writer.join();
  CHECK(wrong == 0);
  CHECK(folder.entries() == 1);
}

TEST_CASE("no descriptor stays open") {
  const Folder folder;
  const std::size_t before = open_descriptors();
  write(folder / "file", pattern(10));
  read(folder / "file");
  CHECK_FALSE(vitro::read_file(folder / "file", 1));
  CHECK_FALSE(vitro::read_file(folder.path().string(), 1));
  CHECK_FALSE(vitro::write_file(folder / std::string(256, 'n'), pattern(3)));
  CHECK(open_descriptors() == before);
}

TEST_CASE("folders are created with those above them") {
  const Folder folder;
  CHECK(vitro::make_directories(folder / "a/b/c"));
  CHECK(fs::is_directory(folder / "a/b/c"));
  CHECK(vitro::make_directories(folder / "a/b/c"));
  CHECK(vitro::make_directories(folder / "a//d/"));
  CHECK(fs::is_directory(folder / "a/d"));
  CHECK(vitro::make_directories("/"));
  CHECK(vitro::make_directories("."));
}

TEST_CASE("a file exists whether or not it can be read, and so does a link that points nowhere") {
  const Folder folder;
  CHECK_FALSE(vitro::file_exists(folder / "missing"));
  CHECK_FALSE(vitro::file_exists(folder / "missing/below"));
  fs::create_directory(folder / "folder");
  CHECK(vitro::file_exists(folder / "folder"));
  fs::create_symlink("nowhere", folder / "link");
  CHECK(vitro::file_exists(folder / "link"));
  CHECK(vitro::file_exists(folder / std::string(300, 'x')));  // not to be found out: taken for there
}

TEST_CASE("a file where a folder should be is an error that names it") {
  const Folder folder;
  write(folder / "plain", pattern(1));
  const vitro::Status status = vitro::make_directories(folder / "plain/sub");
  REQUIRE_FALSE(status);
  CHECK(status.error().code() == ErrorCode::io);
  CHECK_THAT(status.error().message(), ContainsSubstring(vitro::quoted(folder / "plain")));
  CHECK(vitro::make_directories("").error().code() == ErrorCode::invalid_argument);
  CHECK_FALSE(vitro::make_directories("/proc/no"));
}
