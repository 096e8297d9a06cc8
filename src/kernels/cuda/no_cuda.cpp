#include "core/error.h"
#include "kernels/cuda/make_cuda_backend.h"

namespace kvs {

bool cuda_available() noexcept { return false; }

std::unique_ptr<Backend> make_cuda_backend(DType) {
  throw Error(ErrorCode::kEnvironment, "--device cuda",
              "this program was built without CUDA; use --device cpu or build the preset \"cuda\"");
}

}  // namespace kvs
