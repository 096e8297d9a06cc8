// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "kernels/cuda/cudnn_planner.h"

namespace kvs::cuda {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::kEnvironment, "cuDNN", "this program was built without cuDNN (KVS_CUDNN)");
}

}  // namespace

std::unique_ptr<FusedPlanner> make_cudnn_planner(void*, const char*) { refuse(); }
std::size_t count_cudnn_engines(const FusedShape&, const DescribedGpu&, const char*) { refuse(); }

}  // namespace kvs::cuda
