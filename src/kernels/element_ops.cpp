// SPDX-License-Identifier: Apache-2.0
#include "kernels/element_ops.h"

#include "core/error.h"

namespace kvs::inline kernels {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::kUnsupported, "device", "found none of these operations, expected --device cpu");
}

}  // namespace

void ElementOps::scale(BackendView<float, 2> /*x*/, float /*factor*/) { refuse(); }
void ElementOps::multiply(BackendView<const float, 2> /*factors*/, Operand /*x*/) { refuse(); }
void ElementOps::clear(BackendView<float, 2> /*x*/) { refuse(); }

}  // namespace kvs::inline kernels
