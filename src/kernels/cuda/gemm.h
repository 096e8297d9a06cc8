#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <tuple>

#include "core/dtype.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/device_array.h"

namespace kvs::cuda {

/// One product y = x Wᵀ (+ bias), all row-major and packed: x [rows, inner] and w [columns, inner] in the engine's
/// type, bias [columns] or null in f32, y [rows, columns] in f32, or in the engine's type (then without bias).
struct GemmArguments {
  const void* x = nullptr;
  const void* w = nullptr;
  const float* bias = nullptr;
  void* y = nullptr;
  std::size_t rows = 0, columns = 0, inner = 0;
  bool accumulate = false;  // y += instead of y =
  DType y_type = DType::kF32;
};

/// cuBLASLt with f32 sums; f32 operands are not rounded to tf32. The algorithm of each shape is the first that
/// cuBLASLt's heuristics propose: the fastest of several by the clock might differ from run to run, and with it the
/// last bits of results. A shape for which it has none (bf16 rows that are not aligned) goes to cuBLAS. Not
/// thread-safe.
class GemmEngine {
 public:
  /// @param type  kF32 or kBF16;  @param context  must outlive this
  GemmEngine(const Context& context, DType type);
  ~GemmEngine();

  /// Queued on the context's stream.
  void run(const GemmArguments& arguments);

 private:
  struct Plan;
  // rows, columns, inner, alignments of x, w and y in bytes (at most 256), with bias, type of y
  using Key = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, std::size_t, std::size_t, bool, DType>;
  const Plan& plan(const GemmArguments& arguments);
  void run_unplanned(const GemmArguments& arguments) const;

  const Context& context_;
  DType type_;
  DeviceArray<std::byte> workspace_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace kvs::cuda
