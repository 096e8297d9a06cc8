// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/calibration_ops.h"

namespace kvs::inline kernels {

/// Returns true if this program was built with CUDA and a device is present.
bool cuda_available() noexcept;

/// @throws Error kEnvironment if the device cannot be used or this program was built without CUDA.
std::unique_ptr<Backend> make_cuda_backend(DType compute_type);

/// Returns in one line which attention, our own or cuDNN's, a backend of make_cuda_backend() has run so far, and why.
std::string cuda_attention_note(const Backend& backend);

/// Statistics of how products of a backend of make_cuda_backend() found their algorithms.
struct CudaProducts {
  std::size_t all = 0;
  std::size_t by_table = 0;     // from the table of measurements; the others used cuBLASLt's first proposal
  std::size_t unplanned = 0;    // run by cuBLAS, because cuBLASLt proposed nothing
  std::string first_unplanned;  // its shape
  std::size_t refused = 0;      // table entries that cuBLASLt refused
};
CudaProducts cuda_products(const Backend& backend);

/// One algorithm that cuBLASLt proposes for a product.
struct CudaGemmTrial {
  std::string entry;   // a line of the table of measurements
  double seconds = 0;  // median time of a product over several runs
  bool agrees = true;  // result equals the first proposal's, bit for bit
};
/// Times all proposed algorithms for y = x Wᵀ, the first proposal first. With exact operands all give the same bits.
/// @param y_type  kF32, or the compute type if the weight has no bias
std::vector<CudaGemmTrial> cuda_gemm_trials(Backend& backend, Operand x, const Weight& weight, DType y_type);

/// Records time marks in the queue of a device's operations.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  virtual void mark() = 0;
  /// Waits for the last mark. Returns the seconds between adjacent marks and clears the marks.
  virtual std::vector<double> seconds() = 0;
};
std::unique_ptr<DeviceClock> make_cuda_clock(const Backend& backend);

/// Makes operations on the stream of `backend`, which make_cuda_backend() made and which must outlive them.
std::unique_ptr<CalibrationOps> make_cuda_calibration_ops(Backend& backend);

}  // namespace kvs::inline kernels
