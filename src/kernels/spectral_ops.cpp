#include "kernels/spectral_ops.h"

#include <string>

#include "core/error.h"
#include "kernels/cpu/spectral_ops.h"
#include "kernels/cuda/make_cuda_backend.h"

namespace kvs {

void check_grid(const std::array<std::size_t, 3>& x, const std::array<std::size_t, 4>& spectrum, const BinGrid& grid) {
  if (x[1] > grid.samples || spectrum != std::array<std::size_t, 4>{x[0], grid.bins.size(), 2, x[2]})
    throw Error(ErrorCode::kInternal, "spectrum", "tokens, grid and bins do not fit together");
}

std::unique_ptr<SpectralOps> make_spectral_ops(Backend& backend) {
  if (backend.device() == "cpu") return make_cpu_spectral_ops();
  if (backend.device() == "cuda") return make_cuda_spectral_ops(backend);
  throw Error(ErrorCode::kUnsupported, "spectral operations",
              "found device " + std::string(backend.device()) + ", expected cpu or cuda");
}

}  // namespace kvs
