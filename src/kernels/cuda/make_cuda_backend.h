#pragma once

#include <memory>
#include <string>

#include "kernels/backend.h"
#include "kernels/calibration_ops.h"
#include "kernels/spectral_ops.h"

namespace kvs {

/// Whether this program was built with CUDA and a device is present.
bool cuda_available() noexcept;

/// @throws Error kEnvironment if the device cannot be used or this program was built without CUDA.
std::unique_ptr<Backend> make_cuda_backend(DType compute_type);

/// Which attention a backend by make_cuda_backend() ran so far, its own or cuDNN's, and why, in a line.
std::string cuda_attention_note(const Backend& backend);

/// Both work on the stream of `backend`, which make_cuda_backend() made and which must outlive them.
std::unique_ptr<SpectralOps> make_cuda_spectral_ops(Backend& backend);
std::unique_ptr<CalibrationOps> make_cuda_calibration_ops(Backend& backend);

}  // namespace kvs
