// SPDX-License-Identifier: Apache-2.0
// Whole files: read with a limit, written so that a reader sees the old file or the new one and never half of either.
#pragma once

#include "error.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace vitro {

// Every error has code io unless another is named; it gives the path, what was being done and the operating system's reason.

// Whether there is anything of that name, readable or not; also where the system does not let us find out, so that nothing that
// may be there is taken for missing.
bool file_exists(const std::string& path) noexcept;

// All bytes of the file. More than max_bytes: invalid_argument, found before anything is allocated where the system knows the
// size. Whatever is no regular file is an error: a pipe without a writer or a terminal would be waited for without end.
Result<std::vector<std::byte>> read_file(const std::string& path, std::size_t max_bytes);

// Writes the bytes to a new file in the same folder, flushes it to the disk and renames it to `path`, which it replaces if it
// is there. After an error `path` is as it was and the new file is gone. The folder must exist. A `path` that names anything
// but a regular file is refused; a symbolic link to one is replaced, not followed.
Status write_file(const std::string& path, std::span<const std::byte> bytes);

// Creates the folder and those above it that are missing. A folder that is already there is a success.
Status make_directories(const std::string& path);

// Makes an empty file in the folder and removes it: whether write_file() would find a place there, tried for real.
Status try_folder(const std::string& path);

// The names of everything in the folder, in no order, without "." and "..".
Result<std::vector<std::string>> list_folder(const std::string& path);

// Removes one file (or symbolic link). That it is not there is an error.
Status remove_file(const std::string& path);

// Keeps other programs and threads that do the same waiting until it is destroyed; the system releases what a killed program
// held. Where the file system has no locks, does nothing.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path) noexcept;
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace vitro
