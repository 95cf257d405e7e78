// SPDX-License-Identifier: Apache-2.0
// An application's main: Vitro's headers first, then the application's own core/tensor.hpp, both used.
#include <vitro/core/tensor.hpp>
#include <vitro/core/thread_pool.hpp>

// Between the two, so that a formatter does not sort them.
static_assert(sizeof(vitro::Tensor) > 0);

#include "core/tensor.hpp"

#include <cstdio>

int own_answer();  // own_first.cpp

int main() {
  static_assert(APPLICATION_TENSOR_INCLUDED == 1);
  vitro::Tensor tensor(vitro::Shape{2, 3});
  vitro::ThreadPool pool(1);
  pool.parallel_for(tensor.elements(), [&](vitro::Index begin, vitro::Index end, int) {
    for (vitro::Index i = begin; i < end; ++i) tensor.data()[i] = 1.0f;
  });
  const bool right = tensor.view()(1, 2) == 1.0f && application::Tensor{}.answer == 42 && own_answer() == 48;
  std::printf("consumer: %s\n", right ? "both tensors are there" : "wrong");
  return right ? 0 : 1;
}
