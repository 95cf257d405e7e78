// SPDX-License-Identifier: Apache-2.0
// Files for the tests of data/, made byte by byte here, so that what is expected does not come from the code under test.
#pragma once

#include "../support/temporary_folder.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <vector>

namespace vitro_test {

using Bytes = std::vector<std::byte>;

inline Bytes bytes(std::initializer_list<int> values) {
  Bytes result;
  for (const int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

inline Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Bytes prefix(const Bytes& all, std::size_t size) {
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size)};
}

inline Bytes big_endian(std::uint32_t value) {
  return bytes({static_cast<int>(value >> 24), static_cast<int>(value >> 16 & 255), static_cast<int>(value >> 8 & 255),
                static_cast<int>(value & 255)});
}

inline Bytes little_endian(std::uint32_t value, int size) {
  Bytes result;
  for (int i = 0; i < size; ++i) result.push_back(static_cast<std::byte>(value >> 8 * i & 255));
  return result;
}

inline Bytes idx_header(std::initializer_list<std::uint32_t> dims) {
  Bytes result = bytes({0, 0, 8, static_cast<int>(dims.size())});
  for (const std::uint32_t dim : dims) result = result + big_endian(dim);
  return result;
}

// `size` bytes without a pattern that a shift by a few could repeat.
inline Bytes pattern(std::size_t size) {
  Bytes result;
  std::uint32_t state = 12345;
  for (std::size_t i = 0; i < size; ++i) {
    state = state * 1664525U + 1013904223U;
    result.push_back(static_cast<std::byte>(state >> 24));
  }
  return result;
}

// One gzip member (RFC 1952) of stored blocks (RFC 1951, 3.2.4), with a CRC-32 computed bit by bit.
inline Bytes gzip_member(const Bytes& data) {
  Bytes result = bytes({0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255});
  std::size_t begin = 0;
  do {
    const std::size_t size = std::min<std::size_t>(data.size() - begin, 65535);
    result.push_back(static_cast<std::byte>(begin + size == data.size() ? 1 : 0));
    const auto length = static_cast<std::uint32_t>(size);
    result = result + little_endian(length, 2) + little_endian(~length & 0xffff, 2);
    result.insert(result.end(), data.begin() + static_cast<std::ptrdiff_t>(begin),
                  data.begin() + static_cast<std::ptrdiff_t>(begin + size));
    begin += size;
  } while (begin < data.size());
  std::uint32_t crc = 0xffffffff;
  for (const std::byte byte : data) {
    crc ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
  }
  return result + little_endian(~crc, 4) + little_endian(static_cast<std::uint32_t>(data.size()), 4);
}

// A folder of a test's own into which files are written by name.
class DataFolder : public TemporaryFolder {
 public:
  // The path of a name in the folder.
  std::string add(const std::string& name) const { return path() + "/" + name; }
  void write(const std::string& name, const Bytes& contents) const {
    std::FILE* file = std::fopen(add(name).c_str(), "wb");
    if (file == nullptr || std::fwrite(contents.data(), 1, contents.size(), file) != contents.size() ||
        std::fclose(file) != 0) {
      std::abort();
    }
  }
};

}  // namespace vitro_test
