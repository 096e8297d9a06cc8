#include "kernels/spectral_ops.h"

#include <string>

#include "core/error.h"
#include "kernels/cpu/spectral_ops.h"

namespace kvs {

std::unique_ptr<SpectralOps> make_spectral_ops(Backend& backend) {
  if (backend.device() == "cpu") return make_cpu_spectral_ops();
  throw Error(ErrorCode::kUnsupported, "spectral operations",
              "found device " + std::string(backend.device()) + ", expected cpu");
}

}  // namespace kvs
