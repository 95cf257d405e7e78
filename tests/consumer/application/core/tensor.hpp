// SPDX-License-Identifier: Apache-2.0
// The application's own core/tensor.hpp: another type, in another namespace, under the name that Vitro uses.
#pragma once

namespace application {

struct Tensor {
  int answer = 42;
};

}  // namespace application

#define APPLICATION_TENSOR_INCLUDED 1
