#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/calibration_ops.h"

namespace kvs {

/// Whether this program was built with CUDA and a device is present.
bool cuda_available() noexcept;

/// @throws Error kEnvironment if the device cannot be used or this program was built without CUDA.
std::unique_ptr<Backend> make_cuda_backend(DType compute_type);

/// Which attention a backend by make_cuda_backend() ran so far, its own or cuDNN's, and why, in a line.
std::string cuda_attention_note(const Backend& backend);

/// How the products of a backend by make_cuda_backend() found their algorithm so far.
struct CudaProducts {
  std::size_t all = 0;
  std::size_t by_table = 0;     // by an entry of the table of measurements; the others by cuBLASLt's first proposal
  std::size_t unplanned = 0;    // by cuBLAS, because cuBLASLt proposed nothing
  std::string first_unplanned;  // its shape
  std::size_t refused = 0;      // entries of the table that cuBLASLt did not take
};
CudaProducts cuda_products(const Backend& backend);

/// One of the algorithms that cuBLASLt proposes for a product.
struct CudaGemmTrial {
  std::string entry;   // a line of the table of measurements
  double seconds = 0;  // of a product, the median of several runs
  bool agrees = true;  // with the first proposal, to the last bit
};
/// Times all of them for y = x Wᵀ, the first proposal first. Exact operands give every one of them the same bits.
/// @param y_type  kF32, or the compute type where the weight has no bias
std::vector<CudaGemmTrial> cuda_gemm_trials(Backend& backend, Operand x, const Weight& weight, DType y_type);

/// Marks in the queue of a device's operations.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  virtual void mark() = 0;
  /// Waits for the last mark. The seconds from each mark to the next; forgets the marks.
  virtual std::vector<double> seconds() = 0;
};
std::unique_ptr<DeviceClock> make_cuda_clock(const Backend& backend);

/// Works on the stream of `backend`, which make_cuda_backend() made and which must outlive it.
std::unique_ptr<CalibrationOps> make_cuda_calibration_ops(Backend& backend);

}  // namespace kvs
