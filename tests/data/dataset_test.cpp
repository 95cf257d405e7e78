// SPDX-License-Identifier: Apache-2.0
// Data sets: which files of a folder are taken, what pairs of files are refused, and what real data hold.
#include "data_files.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <sys/stat.h>
#include <vitro/data/dataset.hpp>
#include <vitro/data/gzip.hpp>

namespace {

using namespace vitro_test;
using Catch::Matchers::ContainsSubstring;
using vitro::ErrorCode;
using vitro::Shape;

const Bytes kImages = idx_header({3, 2, 2}) + pattern(12);
const Bytes kLabels = idx_header({3}) + bytes({7, 0, 9});

vitro::Result<vitro::Dataset> decode(const Bytes& images, const Bytes& labels) {
  return vitro::try_decode_dataset(images, "the images", labels, "the labels");
}

vitro::Error error_of(const Bytes& images, const Bytes& labels) {
  const vitro::Result<vitro::Dataset> result = decode(images, labels);
  REQUIRE_FALSE(result.ok());
  return result.error();
}

// A folder with a small complete data set under the plain names.
void write_mnist(DataFolder& folder) {
  folder.write("train-images-idx3-ubyte", kImages);
  folder.write("train-labels-idx1-ubyte", kLabels);
  folder.write("t10k-images-idx3-ubyte", idx_header({1, 2, 2}) + pattern(4));
  folder.write("t10k-labels-idx1-ubyte", idx_header({1}) + bytes({5}));
}

vitro::Error error_of(const DataFolder& folder) {
  const vitro::Result<vitro::MnistData> result = vitro::try_load_mnist(folder.path());
  REQUIRE_FALSE(result.ok());
  CHECK_THAT(result.error().message(), ContainsSubstring(folder.path()));
  return result.error();
}

// Sum of all pixels, and images of each class.
struct Statistics {
  std::int64_t pixels = 0;
  std::array<int, 10> classes{};
};
Statistics statistics(const vitro::Dataset& data) {
  Statistics result;
  for (const std::uint8_t pixel : data.images.span()) result.pixels += pixel;
  for (const std::int32_t label : data.labels.span()) ++result.classes.at(static_cast<std::size_t>(label));
  return result;
}

}  // namespace

TEST_CASE("images get a channel axis and labels become numbers") {
  const vitro::Dataset data = decode(kImages, kLabels).value();
  CHECK(data.size() == 3);
  CHECK(data.images.shape() == Shape({3, 2, 2, 1}));
  const Bytes pixels = pattern(12);
  for (std::size_t i = 0; i < 12; ++i) CHECK(data.images.span()[i] == std::to_integer<int>(pixels[i]));
  CHECK(data.labels.shape() == Shape({3}));
  CHECK(data.labels.span()[0] == 7);
  CHECK(data.labels.span()[1] == 0);
  CHECK(data.labels.span()[2] == 9);
}

TEST_CASE("exchanged images and labels are recognised") {
  const vitro::Error exchanged = error_of(kLabels, kImages);
  CHECK(exchanged.code() == ErrorCode::format);
  CHECK_THAT(exchanged.message(), ContainsSubstring("exchanged?") && ContainsSubstring("the images"));
  CHECK_THAT(error_of(kImages, kImages).message(), ContainsSubstring("exchanged?") && ContainsSubstring("the labels"));
  const vitro::Error flat = error_of(idx_header({3, 4}) + pattern(12), kLabels);
  CHECK_THAT(flat.message(), ContainsSubstring("[3, 4]") && ContainsSubstring("rank 3") && !ContainsSubstring("exchanged"));
}

TEST_CASE("as many labels as images are required") {
  const vitro::Error differing = error_of(kImages, idx_header({4}) + bytes({1, 2, 3, 4}));
  CHECK(differing.code() == ErrorCode::shape_mismatch);
  CHECK_THAT(differing.message(), ContainsSubstring("3 images") && ContainsSubstring("4 labels"));
}

TEST_CASE("a label above 9 is reported with its row") {
  const vitro::Error bad = error_of(kImages, idx_header({3}) + bytes({9, 10, 255}));
  CHECK(bad.code() == ErrorCode::format);
  CHECK_THAT(bad.message(), ContainsSubstring("label 10 in row 1"));
}

TEST_CASE("a set without an image or a pixel is refused") {
  CHECK(error_of(idx_header({0, 28, 28}), idx_header({0})).code() == ErrorCode::format);
  CHECK_THAT(error_of(idx_header({3, 0, 28}), kLabels).message(), ContainsSubstring("[3, 0, 28]"));
}

TEST_CASE("the files of a folder are found under each of their names, plain ones first") {
  DataFolder folder;
  write_mnist(folder);
  const vitro::MnistData plain = vitro::try_load_mnist(folder.path()).value();
  CHECK(plain.train.size() == 3);
  CHECK(plain.test.size() == 1);
  CHECK_THAT(plain.train.name, ContainsSubstring("train") && ContainsSubstring(folder.path()));

  // Whatever else is there is not looked at.
  folder.write("train-images-idx3-ubyte.gz", bytes({1}));
  folder.write("train-labels.idx1-ubyte", bytes({1}));
  CHECK(vitro::try_load_mnist(folder.path()).ok());

  DataFolder other;
  other.write("train-images.idx3-ubyte", kImages);
  other.write("train-labels.idx1-ubyte", kLabels);
  other.write("t10k-images.idx3-ubyte", kImages);
  if (!vitro::gzip_available()) {
    other.write("t10k-labels.idx1-ubyte.gz", gzip_member(kLabels));
    CHECK(error_of(other).code() == ErrorCode::unsupported);
    return;
  }
  other.write("t10k-labels-idx1-ubyte.gz", gzip_member(kLabels));
  CHECK(vitro::try_load_mnist(other.path()).value().test.size() == 3);
  std::remove((other.path() + "/t10k-labels-idx1-ubyte.gz").c_str());
  other.write("t10k-labels.idx1-ubyte.gz", gzip_member(kLabels));
  CHECK(vitro::try_load_mnist(other.path()).value().test.size() == 3);
}

TEST_CASE("a missing file is named with the folder and all its names") {
  for (const char* name :
       {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    DataFolder folder;
    write_mnist(folder);
    std::remove((folder.path() + "/" + name).c_str());
    const vitro::Error missing = error_of(folder);
    CHECK(missing.code() == ErrorCode::io);
    std::string dotted = name;
    dotted.replace(dotted.find("-idx"), 4, ".idx");
    CHECK_THAT(missing.message(), ContainsSubstring(std::string(name) + ", ") && ContainsSubstring(std::string(name) + ".gz") &&
                                      ContainsSubstring(dotted + ", ") && ContainsSubstring(dotted + ".gz"));
  }
}

TEST_CASE("a folder that is none is named") {
  for (const char* path : {"/nowhere/at/all", "/dev/null", ""}) {
    const auto result = vitro::try_load_mnist(path);
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().code() == ErrorCode::io);
    CHECK_THAT(result.error().message(), ContainsSubstring(std::string("\"") + path + "\" is not a folder"));
  }
}

TEST_CASE("a folder in a file's place and a link that leads nowhere are errors that name them") {
  DataFolder folder;
  write_mnist(folder);
  const std::string path = folder.path() + "/t10k-images-idx3-ubyte";
  std::remove(path.c_str());
  REQUIRE(::symlink("/tmp", path.c_str()) == 0);
  CHECK(error_of(folder).code() == ErrorCode::io);
  CHECK_THAT(error_of(folder).message(), ContainsSubstring("t10k-images-idx3-ubyte"));

  std::remove(path.c_str());
  REQUIRE(::symlink("t10k-images-idx3-ubyte", path.c_str()) == 0);  // to itself
  CHECK(error_of(folder).code() == ErrorCode::io);
  CHECK_THAT(error_of(folder).message(), ContainsSubstring("cannot open"));
}

TEST_CASE("a file that opens and cannot be read is an error that names it") {
  if (::access("/proc/self/mem", R_OK) != 0) SKIP("needs Linux' /proc");
  DataFolder folder;
  write_mnist(folder);
  const std::string path = folder.path() + "/t10k-images-idx3-ubyte";
  std::remove(path.c_str());
  REQUIRE(::symlink("/proc/self/mem", path.c_str()) == 0);  // address 0 of this process: an input/output error
  CHECK(error_of(folder).code() == ErrorCode::io);
  CHECK_THAT(error_of(folder).message(), ContainsSubstring("cannot read") && ContainsSubstring(path));
}

TEST_CASE("a file that the system refuses to read is an error that names it") {
  DataFolder folder;
  write_mnist(folder);
  const std::string path = folder.path() + "/t10k-images-idx3-ubyte";
  REQUIRE(::chmod(path.c_str(), 0) == 0);
  if (::access(path.c_str(), R_OK) == 0) SKIP("this user may read every file");
  CHECK(error_of(folder).code() == ErrorCode::io);
  CHECK_THAT(error_of(folder).message(), ContainsSubstring(path));
}

TEST_CASE("training and test images must be of one size") {
  DataFolder folder;
  write_mnist(folder);
  folder.write("t10k-images-idx3-ubyte", idx_header({1, 2, 3}) + pattern(6));
  const vitro::Error differing = error_of(folder);
  CHECK(differing.code() == ErrorCode::shape_mismatch);
  CHECK_THAT(differing.message(), ContainsSubstring("[3, 2, 2, 1]") && ContainsSubstring("[1, 2, 3, 1]"));
}

TEST_CASE("the first images are a copy of their own") {
  vitro::Dataset data = decode(kImages, kLabels).value();
  const vitro::Dataset two = vitro::first_images(data, 2);
  data.images.data()[0] ^= 0xff;
  data.labels.data()[0] = 1;
  CHECK(two.images.shape() == Shape({2, 2, 2, 1}));
  CHECK(two.labels.shape() == Shape({2}));
  CHECK(two.images.span()[0] == std::to_integer<int>(pattern(1)[0]));
  CHECK(two.images.span()[7] == data.images.span()[7]);
  CHECK(two.labels.span()[0] == 7);
  CHECK(vitro::first_images(data, 100).size() == 3);
#if defined(__cpp_exceptions)
  CHECK_THROWS_AS(vitro::first_images(data, 0), vitro::Error);
#endif
}

// The expected sums are Python's, over the files that data/sample/make_sample.sh cuts from.
TEST_CASE("the sample in the repository is read") {
  if (!vitro::gzip_available()) SKIP("this build is without zlib");
  const vitro::MnistData data = vitro::try_load_mnist(VITRO_SAMPLE_DIR).value();
  CHECK(data.train.images.shape() == Shape({6000, 28, 28, 1}));
  CHECK(data.test.images.shape() == Shape({1000, 28, 28, 1}));
  CHECK(statistics(data.train).pixels == 342670278);
  CHECK(statistics(data.test).pixels == 58034149);
  CHECK(statistics(data.train).classes == std::array{560, 643, 608, 612, 584, 594, 590, 617, 590, 602});
  CHECK(statistics(data.test).classes == std::array{107, 105, 111, 93, 115, 87, 97, 95, 95, 95});
}

TEST_CASE("MNIST is read") {
  const char* folder = std::getenv("VITRO_MNIST_DIR");
  if (folder == nullptr || *folder == '\0') SKIP("VITRO_MNIST_DIR is not set");
  if (!vitro::gzip_available()) SKIP("this build is without zlib");
  const vitro::MnistData data = vitro::try_load_mnist(folder).value();
  CHECK(data.train.images.shape() == Shape({60000, 28, 28, 1}));
  CHECK(data.test.images.shape() == Shape({10000, 28, 28, 1}));
  CHECK(statistics(data.train).pixels == 1567298545);
  CHECK(statistics(data.test).pixels == 264923200);
  CHECK(statistics(data.train).classes == std::array{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949});
  CHECK(statistics(data.test).classes == std::array{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009});
}
