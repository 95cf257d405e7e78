// SPDX-License-Identifier: Apache-2.0
// What the types in core promise not to compile; each fault is one test.
#include "../../core/tensor.hpp"
#include "../../core/thread_pool.hpp"

#include <utility>

namespace {

[[maybe_unused]] void probe(const vitro::Tensor& tensor, vitro::ConstTensorView view) {
#if defined(WRITE_THROUGH_CONST_TENSOR)
  *tensor.data() = 1.0f;
#elif defined(WRITE_THROUGH_CONST_VIEW)
  view(0) = 1.0f;
#elif defined(CONST_VIEW_TO_WRITABLE)
  vitro::TensorView writable = view;
#elif defined(IGNORE_RESULT)
  vitro::Shape::make({});
#elif defined(COPY_THREAD_POOL)
  vitro::ThreadPool pool(1);
  vitro::ThreadPool copy = pool;
#endif
  static_cast<void>(tensor);
  static_cast<void>(view);
}

}  // namespace
