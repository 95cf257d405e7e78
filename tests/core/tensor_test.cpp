// SPDX-License-Identifier: Apache-2.0
// Storage and tensors: alignment, zeros, deep copies, moves, and the two image layouts.
#include "../support/build.hpp"
#include "../support/errors.hpp"

#include <algorithm>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <utility>
#include <vector>
#include <vitro/core/tensor.hpp>

using vitro::Index;
using vitro::Shape;
using vitro::Tensor;
using vitro_test::error_of;

namespace {

constexpr bool kSanitized = vitro_test::kSanitizesAddresses || vitro_test::kSanitizesThreads;

bool is_aligned(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory) % 64 == 0; }

Tensor counting(const Shape& shape) {
  Tensor tensor(shape);
  for (std::size_t i = 0; i < tensor.span().size(); ++i) tensor.span()[i] = static_cast<float>(i);
  return tensor;
}

}  // namespace

TEST_CASE("memory is aligned to 64 bytes, zero to the end of its last 64, and there even for nothing") {
  for (const std::size_t bytes : {0U, 1U, 63U, 64U, 65U, 1000U, 4096U}) {
    auto* memory = static_cast<unsigned char*>(vitro::allocate_bytes(bytes));
    REQUIRE(memory != nullptr);
    CHECK(is_aligned(memory));
    const std::size_t rounded = std::max<std::size_t>((bytes + 63) / 64 * 64, 64);
    CHECK(std::all_of(memory, memory + rounded, [](unsigned char byte) { return byte == 0; }));
    std::fill_n(memory, rounded, static_cast<unsigned char>(0xAB));  // the sanitizer says if it is not all ours
    vitro::free_bytes(memory);
  }
  vitro::free_bytes(nullptr);
}

TEST_CASE("memory that cannot be had is an error that names its size") {
  // Under a sanitizer only the size that overflows when it is rounded: the rest reaches the sanitizer's allocator, which
  // aborts.
  const std::vector<std::size_t> sizes =
      kSanitized ? std::vector{SIZE_MAX} : std::vector{SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2};
  for (const std::size_t bytes : sizes) {
    const vitro::Error error = error_of([&] { vitro::allocate_bytes(bytes); });
    CHECK(error.code() == vitro::ErrorCode::out_of_memory);
    CHECK_THAT(error.message(), Catch::Matchers::ContainsSubstring(std::to_string(bytes)));
  }
}

TEST_CASE("a new tensor is aligned, contiguous and +0") {
  for (const Shape& shape : {Shape({3, 5}), Shape({17}), Shape(), Shape({0, 4})}) {
    const Tensor tensor(shape);
    CHECK(tensor.shape() == shape);
    CHECK(is_aligned(tensor.data()));
    CHECK(tensor.elements() == shape.elements());
    CHECK(tensor.view().is_contiguous());
    for (const float element : tensor.span()) CHECK(std::bit_cast<std::uint32_t>(element) == 0U);
  }
}

TEST_CASE("an empty tensor has no elements, and so has a copy of it") {
  Tensor tensor;
  CHECK(tensor.elements() == 0);
  CHECK(tensor.data() == nullptr);
  CHECK(tensor.span().empty());
  const Tensor copied = tensor;
  CHECK(copied.elements() == 0);
  CHECK(copied.data() == nullptr);
}

TEST_CASE("a copy is deep") {
  const Tensor original = counting(Shape({2, 3}));
  Tensor copied = original;
  REQUIRE(copied.data() != original.data());
  copied.data()[4] = 100.0F;
  CHECK(original.data()[4] == 4.0F);
  CHECK(copied.data()[5] == 5.0F);
  Tensor assigned(Shape({9}));
  assigned = original;
  CHECK(assigned.shape() == Shape({2, 3}));
  CHECK(assigned.data() != original.data());
  CHECK(assigned.data()[5] == 5.0F);
}

TEST_CASE("a tensor can be assigned to itself") {
  Tensor tensor = counting(Shape({4}));
  const Tensor& same = tensor;
  tensor = same;
  CHECK(tensor.elements() == 4);
  CHECK(tensor.data()[3] == 3.0F);
}

TEST_CASE("a move takes the memory over and leaves a tensor that can be assigned to") {
  Tensor source = counting(Shape({2, 3}));
  const float* memory = source.data();
  Tensor taken = std::move(source);
  CHECK(taken.data() == memory);
  CHECK(taken.shape() == Shape({2, 3}));
  CHECK(source.elements() == 0);
  CHECK(source.span().empty());
  CHECK(source.shape() == Shape());
  source = counting(Shape({5}));
  CHECK(source.data()[4] == 4.0F);
  taken = std::move(source);
  CHECK(taken.elements() == 5);
  CHECK(source.elements() == 0);
}

TEST_CASE("a tensor becomes a view of its own memory, writable only if it is") {
  Tensor tensor = counting(Shape({2, 3}));
  const vitro::TensorView view = tensor;
  view(1, 2) = 42.0F;
  CHECK(tensor.data()[5] == 42.0F);
  const vitro::ConstTensorView reading = view;
  CHECK(reading(1, 2) == 42.0F);
  CHECK(std::as_const(tensor).view()(0, 1) == 1.0F);
  static_assert(std::is_same_v<decltype(std::as_const(tensor).view()(0, 1)), const float&>);
  static_assert(!std::is_convertible_v<const Tensor&, vitro::TensorView>);
}

TEST_CASE("labels are tensors too") {
  vitro::LabelTensor labels(Shape({3}));
  labels.data()[2] = 9;
  const vitro::LabelTensor copied = labels;
  CHECK(copied.span()[2] == 9);
}

TEST_CASE("a dense copy of a view has the view's elements in row-major order") {
  const Tensor tensor = counting(Shape({3, 4}));
  const Tensor dense = vitro::contiguous(tensor.view().permute({1, 0}).slice(0, 3, -1, -2));
  CHECK(dense.shape() == Shape({2, 3}));
  CHECK(std::vector<float>(dense.span().begin(), dense.span().end()) == std::vector<float>{3, 7, 11, 1, 5, 9});
  CHECK(vitro::contiguous(tensor.view().slice(0, 1, 1)).shape() == Shape({0, 4}));
}

TEST_CASE("images change between NCHW and NHWC by the index formula, there and back") {
  const Index n_size = 2;
  const Index c_size = 3;
  const Index h_size = 4;
  const Index w_size = 5;
  const Tensor nchw = counting(Shape({n_size, c_size, h_size, w_size}));
  const Tensor nhwc = vitro::nchw_to_nhwc(nchw);
  REQUIRE(nhwc.shape() == Shape({n_size, h_size, w_size, c_size}));
  for (Index n = 0; n < n_size; ++n) {
    for (Index c = 0; c < c_size; ++c) {
      for (Index h = 0; h < h_size; ++h) {
        for (Index w = 0; w < w_size; ++w) {
          const float expected = static_cast<float>(((n * c_size + c) * h_size + h) * w_size + w);
          REQUIRE(nhwc.data()[((n * h_size + h) * w_size + w) * c_size + c] == expected);
        }
      }
    }
  }
  const Tensor back = vitro::nhwc_to_nchw(nhwc);
  CHECK(back.shape() == nchw.shape());
  CHECK(std::ranges::equal(back.span(), nchw.span()));
}

TEST_CASE("only images of rank 4 change their layout") {
  const Tensor tensor(Shape({2, 3, 4}));
  const vitro::Error error = error_of([&] { vitro::nchw_to_nhwc(tensor); });
  CHECK(error.code() == vitro::ErrorCode::shape_mismatch);
  CHECK_THAT(error.message(),
             Catch::Matchers::ContainsSubstring("nchw_to_nhwc") && Catch::Matchers::ContainsSubstring("[2, 3, 4]"));
  CHECK_THROWS_AS(vitro::nhwc_to_nchw(tensor), vitro::Error);
}
