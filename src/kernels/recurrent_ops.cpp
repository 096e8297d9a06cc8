// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent_ops.h"

#include "core/error.h"

namespace kvs::inline kernels {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::kUnsupported, "device", "found one without recurrent layers and gates, expected cpu");
}

}  // namespace

void RecurrentOps::convolve(const ConvolutionInput& /*input*/, BackendView<float, 2> /*out*/) { refuse(); }
void RecurrentOps::recur(const RecurrenceInput& /*input*/, BackendView<float, 2> /*out*/) { refuse(); }
void RecurrentOps::gate(const GateInput& /*input*/, Operand /*out*/) { refuse(); }
void RecurrentOps::gate_by_sigmoid(BackendView<const float, 2> /*gate*/, Operand /*x*/) { refuse(); }

}  // namespace kvs::inline kernels
