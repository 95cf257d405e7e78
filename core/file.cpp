// SPDX-License-Identifier: Apache-2.0
// Whole files and folders over POSIX descriptors: streams cannot flush to the disk and hide the reason of an error.
#include "file.hpp"

#include "text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace vitro {
namespace {

// Owns a descriptor; closing reports what a delayed write (a network file system, a quota) may say only then.
class Descriptor {
 public:
  explicit Descriptor(int number) noexcept : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const noexcept { return number_; }
  bool close() noexcept {
    const int number = number_;
    number_ = -1;
    return number < 0 || ::close(number) == 0;
  }

 private:
  int number_;
};

// "cannot write "a/b": No space left on device"; reads errno. The
// reason comes in the language of the process and is therefore escaped.
Error io_error(const char* action, const std::string& path) {
  const int reason = errno;
  return Error(ErrorCode::io,
               std::string("cannot ") + action + " " + quoted(path) + ": " + escaped(std::generic_category().message(reason)));
}

template <class Call>
auto retried(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// A system call moves at most this much, below every system's limit for one read or write.
constexpr std::size_t kPiece = std::size_t{1} << 26;

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = retried([&] { return ::write(descriptor, bytes.data(), std::min(bytes.size(), kPiece)); });
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A new file beside `path`, its name in `name`. The process number keeps two programs apart, the counter two threads and what
// an earlier program with the same number left behind; the name of `path` itself may be as long as the system allows.
int create_aside(const std::string& path, std::string& name) {
  const std::string start = path.substr(0, path.rfind('/') + 1) + ".vitro-" + std::to_string(::getpid()) + "-";
  for (int attempt = 0;; ++attempt) {
    name = start + std::to_string(attempt) + ".tmp";
    const int descriptor = retried([&] { return ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
    if (descriptor >= 0 || errno != EEXIST || attempt == 1000) return descriptor;
  }
}

Error too_large(const std::string& path, std::size_t max_bytes) {
  return Error(ErrorCode::invalid_argument,
               "file " + quoted(path) + " is larger than the " + std::to_string(max_bytes) + " bytes it may have");
}

}  // namespace

bool file_exists(const std::string& path) noexcept {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

Result<std::vector<std::byte>> read_file(const std::string& path, std::size_t max_bytes) {
  // Without O_NONBLOCK opening a pipe would wait for a writer before anything can be said about it.
  Descriptor file(retried([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
  struct stat info {};
  if (file.number() < 0 || ::fstat(file.number(), &info) != 0) return io_error("open", path);
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
    return Error(ErrorCode::io, "cannot read " + quoted(path) + ": it is not a regular file");
  }
  const auto expected = S_ISREG(info.st_mode) ? static_cast<std::size_t>(info.st_size) : 0;
  if (expected > max_bytes) return too_large(path, max_bytes);
  // The size is a hint: a file may grow or shrink while it is read, and those in /proc have none. One byte more than expected
  // shows the end; for a folder, read() gives the reason.
  std::vector<std::byte> bytes;
  std::size_t size = 0;
  for (;;) {
    if (size == bytes.size()) bytes.resize(size == 0 ? expected + 1 : size + std::max<std::size_t>(size / 2, 65536));
    const std::size_t room = std::min(bytes.size() - size, kPiece);
    const ssize_t got = retried([&] { return ::read(file.number(), bytes.data() + size, room); });
    if (got < 0) return io_error("read", path);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
    if (size > max_bytes) return too_large(path, max_bytes);
  }
  bytes.resize(size);
  return bytes;
}

Status write_file(const std::string& path, std::span<const std::byte> bytes) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return Error(ErrorCode::io, "cannot write " + quoted(path) + ": it is there and is not a regular file");
  }
  std::string aside;
  Descriptor file(create_aside(path, aside));
  if (file.number() < 0) return io_error("create a file beside", path);
  const bool written = write_all(file.number(), bytes) && retried([&] { return ::fsync(file.number()); }) == 0 && file.close();
  if (!written || std::rename(aside.c_str(), path.c_str()) != 0) {
    Error error = io_error(written ? "rename a new file to" : "write", path);
    ::unlink(aside.c_str());
    return error;
  }
  // Makes the new name last through a power cut where the file system can; the file itself is complete either way.
  Descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_CLOEXEC));
  if (folder.number() >= 0) retried([&] { return ::fsync(folder.number()); });
  return {};
}

Status make_directories(const std::string& path) {
  if (path.empty()) return Error(ErrorCode::invalid_argument, "cannot create a folder without a name");
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0777) != 0) {
      const int reason = errno;
      struct stat info {};
      if (::stat(part.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
        errno = reason;
        return io_error("create the folder", part);
      }
    }
    if (end == std::string::npos) return {};
  }
}

Status try_folder(const std::string& path) {
  std::string name;
  const Descriptor file(create_aside(path + "/", name));
  if (file.number() < 0 || ::unlink(name.c_str()) != 0) return io_error("create a file in", path);
  return {};
}

Result<std::vector<std::string>> list_folder(const std::string& path) {
  DIR* folder = ::opendir(path.c_str());
  if (folder == nullptr) return io_error("list", path);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;  // readdir() tells its end from an error by this alone
    const dirent* entry = ::readdir(folder);
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  const int reason = errno;
  ::closedir(folder);
  errno = reason;
  if (reason != 0) return io_error("list", path);
  return names;
}

Status remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0) return io_error("remove", path);
  return {};
}

FolderLock::FolderLock(const std::string& path) noexcept : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ >= 0) retried([&] { return ::flock(descriptor_, LOCK_EX); });
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace vitro
