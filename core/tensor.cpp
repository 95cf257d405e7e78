// SPDX-License-Identifier: Apache-2.0
// Dense copies and the two image layouts.
#include "tensor.hpp"

namespace vitro {
namespace {

Tensor permuted(const char* name, ConstTensorView view, std::initializer_list<int> order) {
  if (view.rank() != 4) {
    fail(ErrorCode::shape_mismatch, std::string(name) + ": needs a tensor of rank 4, got shape " + to_string(view.shape()));
  }
  return contiguous(view.permute(order));
}

}  // namespace

Tensor contiguous(ConstTensorView view) {
  Tensor result(view.shape());
  copy(view, result);
  return result;
}

Tensor nchw_to_nhwc(ConstTensorView nchw) { return permuted("nchw_to_nhwc", nchw, {0, 2, 3, 1}); }
Tensor nhwc_to_nchw(ConstTensorView nhwc) { return permuted("nhwc_to_nchw", nhwc, {0, 3, 1, 2}); }

}  // namespace vitro
