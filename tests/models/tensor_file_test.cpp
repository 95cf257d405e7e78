// SPDX-License-Identifier: Apache-2.0
// Tensor files: the format byte for byte, and every way in which a file can break it.
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <unistd.h>
#include <vector>
#include <vitro/core/file.hpp>
#include <vitro/models/sha256.hpp>
#include <vitro/models/tensor_file.hpp>

using Catch::Matchers::ContainsSubstring;
using vitro::ErrorCode;
using vitro::Index;
using vitro::NamedTensor;
using vitro::NamedTensorView;
using vitro::Shape;
using vitro::Tensor;

namespace {

std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

std::string element_bytes(const std::vector<float>& elements) {
  std::string text;
  for (const float element : elements) text += little(std::bit_cast<std::uint32_t>(element), 4);
  return text;
}

struct RawTensor {
  std::string name;
  std::vector<std::uint64_t> dims;
  std::string data;
  char gap = 0;  // what fills the gap before the data
};

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// Appends the checksum, after writing the right size into the header.
std::string sealed(std::string text) {
  text.replace(16, 8, little(text.size() + 32, 8));
  for (const std::byte byte : vitro::sha256(bytes(text))) text.push_back(static_cast<char>(byte));
  return text;
}

// The file that the header's format table says, with every lie that the arguments tell.
std::string table(const std::vector<RawTensor>& tensors) {
  std::string text = "VITROTF\x1A" + little(1, 4) + little(tensors.size(), 4) + little(0, 8);
  for (const RawTensor& tensor : tensors) {
    text += little(tensor.name.size(), 4) + little(tensor.dims.size(), 4);
    for (const std::uint64_t dim : tensor.dims) text += little(dim, 8);
    text += tensor.name;
  }
  return text;
}

std::string file(const std::vector<RawTensor>& tensors) {
  std::string text = table(tensors);
  for (const RawTensor& tensor : tensors) {
    text.resize((text.size() + 63) / 64 * 64, tensor.gap);
    text += tensor.data;
  }
  return sealed(text);
}

const std::vector<float> kWeights = {1.0F, -2.5F, 0.0F, -0.0F, 3.4028235e38F, 1e-45F};
const RawTensor kRaw = {"fc.weight", {2, 3}, element_bytes(kWeights)};
const RawTensor kBias = {"fc.bias", {3}, element_bytes({1, 2, 3})};

struct Complaint {
  ErrorCode code;
  std::string message;
};

Complaint complaint(const std::string& text) {
  const vitro::Result<std::vector<NamedTensor>> result = vitro::decode_tensor_file(bytes(text), "dir/weights.bin");
  REQUIRE_FALSE(result.ok());
  CHECK_THAT(result.error().message(), ContainsSubstring("\"dir/weights.bin\""));
  return {result.error().code(), result.error().message()};
}

void check_format_error(const std::string& text, const std::string& part) {
  CAPTURE(part);
  const Complaint error = complaint(text);
  CHECK(error.code == ErrorCode::format);
  CHECK_THAT(error.message, ContainsSubstring(part));
}

Tensor tensor_of(const Shape& shape, const std::vector<float>& elements) {
  Tensor tensor(shape);
  std::copy(elements.begin(), elements.end(), tensor.data());
  return tensor;
}

std::string encoded(const std::vector<NamedTensorView>& tensors) {
  const std::vector<std::byte> result = vitro::encode_tensor_file(tensors).value();
  return std::string(reinterpret_cast<const char*>(result.data()), result.size());
}

}  // namespace

TEST_CASE("tensors are encoded exactly as the format says, and decoded to the same bits") {
  const Tensor weight = tensor_of(Shape({2, 3}), kWeights);
  const Tensor bias = tensor_of(Shape({3}), {1, 2, 3});
  const Tensor scalar = tensor_of(Shape(), {std::numeric_limits<float>::quiet_NaN()});
  const Tensor empty(Shape({4, 0}));
  const std::string expected = file({kRaw, kBias, {"s", {}, element_bytes({scalar.data()[0]})}, {"\xC3\xA4", {4, 0}, ""}});
  const std::string text = encoded({{"fc.weight", weight}, {"fc.bias", bias}, {"s", scalar}, {"\xC3\xA4", empty}});
  REQUIRE(text == expected);

  const std::vector<NamedTensor> back = vitro::decode_tensor_file(bytes(text), "f").value();
  REQUIRE(back.size() == 4);
  CHECK(back[0].name == "fc.weight");
  CHECK(back[0].tensor.shape() == Shape({2, 3}));
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(std::bit_cast<std::uint32_t>(back[0].tensor.span()[i]) == std::bit_cast<std::uint32_t>(kWeights[i]));
  }
  CHECK(back[1].tensor.span()[2] == 3.0F);
  CHECK(std::bit_cast<std::uint32_t>(back[2].tensor.span()[0]) == std::bit_cast<std::uint32_t>(scalar.data()[0]));
  CHECK(back[3].name == "\xC3\xA4");
  CHECK(back[3].tensor.shape() == Shape({4, 0}));
}

TEST_CASE("data begins at multiples of 64 bytes") {
  const std::string text = file({kRaw, kBias});
  const std::size_t table_end = 24 + 8 + 16 + 9 + 8 + 8 + 7;
  CHECK(table_end == 80);
  CHECK(text.substr(128, 24) == kRaw.data);
  CHECK(text.substr(192, 12) == kBias.data);
  CHECK(text.size() == 192 + 12 + 32);
}

TEST_CASE("no tensors at all are a legal file") {
  const std::string text = encoded({});
  CHECK(text.size() == 56);
  CHECK(text == file({}));
  CHECK(vitro::decode_tensor_file(bytes(text), "f").value().empty());
}

TEST_CASE("strided views are written in row-major order") {
  Tensor tensor(Shape({3, 4}));
  std::iota(tensor.span().begin(), tensor.span().end(), 0.0F);
  const vitro::ConstTensorView view = tensor.view().permute({1, 0}).slice(0, 3, -1, -2);
  const std::vector<NamedTensor> back = vitro::decode_tensor_file(bytes(encoded({{"v", view}})), "f").value();
  CHECK(back[0].tensor.shape() == Shape({2, 3}));
  CHECK(std::vector<float>(back[0].tensor.span().begin(), back[0].tensor.span().end()) ==
        std::vector<float>{3, 7, 11, 1, 5, 9});
}

TEST_CASE("a file is written and read") {
  const std::string folder = (std::filesystem::temp_directory_path() / ("vitro-tensor-" + std::to_string(::getpid()))).string();
  REQUIRE(vitro::make_directories(folder));
  const std::string path = folder + "/weights.bin";
  const Tensor weight = tensor_of(Shape({2, 3}), kWeights);
  const std::vector<NamedTensorView> views = {{"w", weight}};
  CHECK(vitro::write_tensor_file(path, views));
  CHECK(vitro::try_read_tensor_file(path).value()[0].tensor.span()[1] == -2.5F);
  CHECK(vitro::try_read_tensor_file(folder + "/none").error().code() == ErrorCode::io);
  CHECK(vitro::write_tensor_file(folder + "/no/weights.bin", views).error().code() == ErrorCode::io);
  CHECK(vitro::write_file(path, bytes("VITROTF\x1A and so on, but not the real thing, only a text")));
  const vitro::Error error = vitro::try_read_tensor_file(path).error();
  CHECK_THAT(error.message(), ContainsSubstring("vitro-tensor-") && ContainsSubstring("weights.bin"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("names that the format excludes are not written") {
  const Tensor tensor(Shape({1}));
  for (const std::string& name : {std::string(), std::string(256, 'n'), std::string("\xFF"), std::string("twice")}) {
    const std::vector<NamedTensorView> views = {{"twice", tensor}, {name, tensor}};
    const vitro::Error error = vitro::encode_tensor_file(views).error();
    CHECK(error.code() == ErrorCode::invalid_argument);
    CHECK_THAT(error.message(), ContainsSubstring("tensor 1"));
  }
  CHECK_NOTHROW(encoded({{std::string_view("\0", 1), tensor}, {std::string(255, 'n'), tensor}}));
  const std::vector<NamedTensorView> many(65537, NamedTensorView{"n", tensor});
  CHECK_THAT(vitro::encode_tensor_file(many).error().message(), ContainsSubstring("65537"));
}

TEST_CASE("a file that ends early at any byte is an error, also where its size says so") {
  const std::string text = file({kRaw, kBias});
  REQUIRE(vitro::decode_tensor_file(bytes(text), "f").ok());
  for (std::size_t size = 0; size < text.size(); ++size) {
    CAPTURE(size);
    CHECK(complaint(text.substr(0, size)).code == ErrorCode::format);
  }
  check_format_error(text.substr(0, 100), "has 100 bytes, but its header says 236: it is cut off");
  check_format_error(text.substr(0, 30), "ends after 30 bytes; the shortest has 56");
  for (std::size_t size = 24; size < text.size() - 32; ++size) {
    CAPTURE(size);
    CHECK(complaint(sealed(text.substr(0, size))).code == ErrorCode::format);
  }
}

TEST_CASE("a flipped bit anywhere is an error") {
  const std::string text = file({kRaw, kBias});
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    CAPTURE(bit);
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const ErrorCode code = complaint(flipped).code;
    const std::size_t byte = bit / 8;
    const bool version = byte >= 8 && byte < 12;
    const bool frame = byte < 8 || (byte >= 16 && byte < 24);
    REQUIRE(code == (version ? ErrorCode::unsupported : frame ? ErrorCode::format : ErrorCode::corrupt));
  }
}

TEST_CASE("each fault has its own sentence, with what would be right") {
  const std::string good = file({kRaw, kBias});
  check_format_error("", "ends after 0 bytes");
  check_format_error("\x1F\x8B\x08 and more", "is none: it begins with \"\\x1f\\x8b\\x08 and \" instead of \"VITROTF\\x1a\"");
  check_format_error(good + "x", "has 237 bytes, but its header says 236: something was added");
  std::string version = good;
  version[8] = 2;
  CHECK(complaint(version).code == ErrorCode::unsupported);
  CHECK_THAT(complaint(version).message, ContainsSubstring("format version 2; this build reads version 1"));
  std::string damaged = good;
  damaged[130] ^= 1;
  CHECK(complaint(damaged).code == ErrorCode::corrupt);
  CHECK_THAT(complaint(damaged).message, ContainsSubstring("is damaged: the SHA-256"));

  check_format_error(file({kRaw, {"", {3}, kBias.data}}), "tensor 1 has a name of 0 bytes; 1 to 255 are allowed");
  check_format_error(file({{std::string(256, 'n'), {3}, kBias.data}}), "tensor 0 has a name of 256 bytes");
  check_format_error(file({{"a\xFF", {3}, kBias.data}}), "tensor 0, \"a\\xff\", has a name that is not UTF-8");
  check_format_error(file({kRaw, kRaw}), "tensor 1, \"fc.weight\", has the name of an earlier one");
  check_format_error(file({{"r", {1, 1, 1, 1, 1, 1, 1}, kBias.data}}), "tensor 0 has rank 7; at most 6 is allowed");
  check_format_error(file({{"d", {UINT64_MAX}, kBias.data}}), "tensor 0, \"d\", has the dimension 18446744073709551615");
  check_format_error(file({{"d", {1ULL << 62, 1ULL << 62}, kBias.data}}), "tensor 0, \"d\", is impossible");
  check_format_error(file({{"d", {1ULL << 40, 0, 1ULL << 40}, ""}}), "tensor 0, \"d\", is impossible");
  check_format_error(file({{"d", {1ULL << 59}, kBias.data}}),
                     "too short for tensor \"d\" of shape [576460752303423488], which needs 2305843009213693952 bytes");
  check_format_error(file({{"d", {4}, kBias.data}}),
                     "too short for tensor \"d\" of shape [4], which needs 16 bytes from offset 64");
  check_format_error(file({{"d", {2}, kBias.data}}),
                     "has 4 bytes between its last tensor and its checksum; there must be none");
  check_format_error(file({kRaw, {"b", {3}, kBias.data, 'x'}}),
                     "has a byte other than 0 at offset 152, in the gap before tensor \"b\"");
}

TEST_CASE("a count that the file cannot hold is an error before anything is allocated") {
  std::string text = table({kRaw});
  text.replace(12, 4, little(65536, 4));
  check_format_error(sealed(text), "ends inside the entry of tensor 1");
  text.replace(12, 4, little(65537, 4));
  check_format_error(sealed(text), "promises 65537 tensors; at most 65536 are allowed");
  text.replace(12, 4, little(0xFFFFFFFF, 4));
  check_format_error(sealed(text), "promises 4294967295 tensors");
  text.replace(12, 4, little(0, 4));
  check_format_error(sealed(text), "bytes between its last tensor and its checksum");
  text.replace(12, 4, little(1, 4));
  text.replace(24, 4, little(0xFFFFFFFF, 4));
  check_format_error(sealed(text), "tensor 0 has a name of 4294967295 bytes");
}

TEST_CASE("the weights' hash is SHA-256 over the elements' bytes in order, whatever their names, shapes and strides") {
  Tensor large(Shape({50, 60}));
  std::string expected_bytes;
  for (std::size_t i = 0; i < 3000; ++i) {
    large.span()[i] = static_cast<float>(i) * 0.25F - 100.0F;
    expected_bytes += element_bytes({large.span()[i]});
  }
  const Tensor weight = tensor_of(Shape({2, 3}), kWeights);
  const std::vector<NamedTensorView> views = {{"a", large}, {"b", weight}};
  CHECK(vitro::weights_sha256(views) == vitro::to_hex(vitro::sha256(bytes(expected_bytes + kRaw.data))));
  // python3 -c 'import hashlib, struct
  // print(hashlib.sha256(struct.pack("<3000f", *(i * 0.25 - 100 for i in range(3000)))).hexdigest())'
  CHECK(vitro::weights_sha256(std::span(views).first(1)) == "e7203d387e8e35e34c7ef59a37ee08e683c1e33fd497d1c6d7a850641adc9b50");
  const std::vector<NamedTensorView> reshaped = {{"other", large.view().reshape(Shape({3000}))}};
  CHECK(vitro::weights_sha256(reshaped) == vitro::weights_sha256(std::span(views).first(1)));
  const Tensor transposed = vitro::contiguous(large.view().permute({1, 0}));
  const std::vector<NamedTensorView> strided = {{"t", transposed.view().permute({1, 0})}};
  CHECK(vitro::weights_sha256(strided) == vitro::weights_sha256(std::span(views).first(1)));
  CHECK(vitro::weights_sha256({}) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
