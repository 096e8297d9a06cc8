// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "core/dtype.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/device_array.h"
#include "kernels/cuda/gemm_table.h"
#include "kernels/cuda/make_cuda_backend.h"

namespace kvs::cuda {

/// One product y = x Wᵀ (+ bias), all row-major and packed. Shapes: x [rows, inner] and w [columns, inner] in the
/// engine's type, bias [columns] or null in f32, y [rows, columns] in f32, or in the engine's type (then without bias).
struct GemmArguments {
  const void* x = nullptr;
  const void* w = nullptr;
  const float* bias = nullptr;
  void* y = nullptr;
  std::size_t rows = 0, columns = 0, inner = 0;
  bool accumulate = false;  // y += instead of y =
  DType y_type = DType::kF32;
};

/// Products by cuBLASLt with f32 sums. f32 operands are not rounded to tf32. A shape uses the algorithm from a table of
/// measurements, else the first that cuBLASLt's heuristics propose. Choosing the fastest by timing could differ between
/// runs, and then the last bits of results would too. A shape without an algorithm (bf16 rows that are not aligned)
/// goes to cuBLAS. Not thread-safe.
class GemmEngine {
 public:
  /// @param type     kF32 or kBF16
  /// @param context  must outlive this object
  /// @param table    a file with a table (gemm_table.h), or empty for the built-in table
  /// @throws Error kInput if the file is not a valid table.
  GemmEngine(const Context& context, DType type, const std::string& table);
  ~GemmEngine();

  /// Queues the product on the context's stream.
  void run(const GemmArguments& arguments);
  const CudaProducts& products() const noexcept { return products_; }
  /// Runs every algorithm that cuBLASLt proposes, one after the other.
  std::vector<CudaGemmTrial> trials(const GemmArguments& arguments);

 private:
  struct Plan;
  // shape, and alignments of x, w and y in bytes (at most 256)
  using Key = std::tuple<GemmShape, std::size_t, std::size_t, std::size_t>;
  GemmShape shape_of(const GemmArguments& arguments) const;
  std::unique_ptr<Plan> make_plan(const GemmArguments& arguments) const;
  bool take_from_table(const GemmArguments& arguments, Plan& plan);
  void take_proposal(const GemmArguments& arguments, Plan& plan) const;
  Plan& plan(const GemmArguments& arguments);
  cublasStatus_t launch(const GemmArguments& arguments, const Plan& plan) const;
  void run_unplanned(const GemmArguments& arguments) const;

  const Context& context_;
  DType type_;
  GemmPlace place_;
  GemmTable table_;
  DeviceArray<std::byte> workspace_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
  CudaProducts products_;
};

}  // namespace kvs::cuda
