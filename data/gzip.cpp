// SPDX-License-Identifier: Apache-2.0
// GzipReader over zlib's inflate, one member at a time; and what stands in its place in a build without zlib.
#include "gzip.hpp"

#include "../core/text.hpp"

#include <algorithm>
#include <optional>

#if defined(VITRO_WITH_ZLIB)
#include <zlib.h>
#endif

namespace vitro {

bool is_gzip(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

#if defined(VITRO_WITH_ZLIB)

namespace {

// zlib counts in unsigned int, which a buffer may exceed.
constexpr std::size_t kMaxPiece = std::size_t{1} << 30;

constexpr int kGzipOnly = 16;  // added to the window size: a gzip header is required, a zlib or raw stream refused

}  // namespace

struct GzipReader::State {
  std::span<const std::byte> compressed;
  std::string name;
  std::size_t consumed = 0;
  std::size_t produced = 0;
  bool in_member = false;
  bool initialised = false;
  std::optional<Error> error;
  z_stream stream{};

  ~State() {
    if (initialised) inflateEnd(&stream);
  }

  Error fail_with(ErrorCode code, const std::string& what) {
    error.emplace(code, "gzip file " + quoted(name) + " " + what);
    return *error;
  }

  Status begin_member() {
    const auto rest = compressed.subspan(consumed);
    if (!is_gzip(rest)) {
      if (consumed > 0) {
        return fail_with(ErrorCode::format,
                         "has " + std::to_string(rest.size()) + " bytes after its last member that are not gzip data");
      }
      return fail_with(ErrorCode::format, "does not start with the bytes 1f 8b");
    }
    // zlib allocates here and nowhere else.
    const int status = initialised ? inflateReset(&stream) : inflateInit2(&stream, MAX_WBITS + kGzipOnly);
    if (status != Z_OK) return fail_with(ErrorCode::out_of_memory, "cannot be decompressed: zlib found no memory");
    initialised = true;
    in_member = true;
    return {};
  }

  // One call of inflate; returns how much it wrote.
  Result<std::size_t> inflate_piece(std::span<std::byte> out) {
    const std::size_t input = std::min(compressed.size() - consumed, kMaxPiece);
    const std::size_t room = std::min(out.size(), kMaxPiece);
    // zlib's interface predates const; inflate does not write to its input.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(compressed.data() + consumed));
    stream.avail_in = static_cast<uInt>(input);
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream, Z_NO_FLUSH);
    consumed += input - stream.avail_in;
    const std::size_t written = room - stream.avail_out;
    produced += written;
    switch (status) {
      case Z_STREAM_END: in_member = false; return written;
      case Z_OK: return written;
      case Z_BUF_ERROR:  // no progress although there is room: the input is at its end
        return fail_with(ErrorCode::format, "stops early: its " + std::to_string(compressed.size()) +
                                                " bytes end inside a member, after " + std::to_string(produced) +
                                                " decompressed bytes");
      case Z_MEM_ERROR: return fail_with(ErrorCode::out_of_memory, "cannot be decompressed: zlib found no memory");
      default:
        return fail_with(ErrorCode::corrupt, "is damaged near byte " + std::to_string(consumed) + " (" +
                                                 (stream.msg != nullptr ? stream.msg : "no reason given") + ")");
    }
  }
};

bool gzip_available() noexcept { return true; }

GzipReader::GzipReader(std::span<const std::byte> compressed, std::string name) : state_(std::make_unique<State>()) {
  state_->compressed = compressed;
  state_->name = std::move(name);
}

Result<std::size_t> GzipReader::read(std::span<std::byte> out) {
  State& state = *state_;
  if (state.error) return *state.error;
  std::size_t filled = 0;
  while (filled < out.size()) {
    if (!state.in_member) {
      // After a member the end of the input is the end of the data; an empty input, which has no member, is refused below.
      if (state.consumed > 0 && state.consumed == state.compressed.size()) break;
      if (const Status begun = state.begin_member(); !begun) return begun.error();
    }
    Result<std::size_t> piece = state.inflate_piece(out.subspan(filled));
    if (!piece) return piece;
    filled += piece.value();
  }
  return filled;
}

#else

struct GzipReader::State {
  std::string name;
};

bool gzip_available() noexcept { return false; }

GzipReader::GzipReader(std::span<const std::byte>, std::string name) : state_(std::make_unique<State>()) {
  state_->name = std::move(name);
}

Result<std::size_t> GzipReader::read(std::span<std::byte>) {
  return Error(ErrorCode::unsupported,
               "gzip file " + quoted(state_->name) +
                   " cannot be read, as this build of Vitro is without zlib; decompress it with gunzip, or build "
                   "with VITRO_WITH_ZLIB=ON");
}

#endif

GzipReader::~GzipReader() = default;

}  // namespace vitro
