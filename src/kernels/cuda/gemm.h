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
/// type, bias [columns] or null and y [rows, columns] in f32.
struct GemmArguments {
  const void* x = nullptr;
  const void* w = nullptr;
  const float* bias = nullptr;
  float* y = nullptr;
  std::size_t rows = 0, columns = 0, inner = 0;
  bool accumulate = false;  // y += instead of y =
};

/// cuBLASLt with f32 sums; f32 operands are not rounded to tf32. The algorithm of each shape is chosen once, by
/// cuBLASLt's heuristics; a shape for which it has none (bf16 rows that are not aligned) goes to cuBLAS. Not
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
  // rows, columns, inner, alignments of x, w and y in bytes (at most 256), with bias
  using Key = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, std::size_t, std::size_t, bool>;
  const Plan& plan(const GemmArguments& arguments);
  void run_unplanned(const GemmArguments& arguments) const;

  const Context& context_;
  DType type_;
  DeviceArray<std::byte> workspace_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace kvs::cuda
