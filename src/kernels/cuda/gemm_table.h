#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/dtype.h"

namespace kvs::cuda {

/// What an algorithm is chosen for: y = x Wᵀ (+ bias) of x [rows, inner] and W [columns, inner] in `type`.
struct GemmShape {
  std::size_t rows = 0, columns = 0, inner = 0;
  DType type = DType::kF32, y_type = DType::kF32;
  bool bias = false;
  auto operator<=>(const GemmShape&) const = default;
};
/// "4096 x 12288 from 4096, bf16 to f32, bias"
std::string to_string(const GemmShape& shape);

/// Where a measurement holds.
struct GemmPlace {
  std::size_t version = 0;  // of cuBLASLt
  int architecture = 0;     // 90 for compute capability 9.0
  int multiprocessors = 0;
  auto operator<=>(const GemmPlace&) const = default;
};

/// cublasLtMatmulAlgo_t's words, which the same version of cuBLASLt takes back as they are.
using GemmAlgorithm = std::array<std::uint64_t, 8>;

/// Algorithms that were measured once and are fixed from then on, so that a shape's bits are the same in every run.
class GemmTable {
 public:
  /// @param text  a line each: version, architecture, multiprocessors, rows, columns, inner, type, type of y, "bias" or
  ///              "-", and the algorithm's eight words in hexadecimal; # begins a comment. The last line of a shape
  ///              counts; lines of other places are skipped.
  /// @param name  of the text, for errors
  /// @throws Error kInput with the number of a line that is none of these.
  GemmTable(std::string_view text, const std::string& name, const GemmPlace& place);

  /// Null if there is no line for it.
  const GemmAlgorithm* find(const GemmShape& shape) const;

 private:
  std::map<GemmShape, GemmAlgorithm> algorithms_;
};

/// A line of a table.
std::string gemm_line(const GemmPlace& place, const GemmShape& shape, const GemmAlgorithm& algorithm);

/// The table that every run starts from; `gpu_report.py` writes one from a run of `gpu_speed gemm`. Empty: nothing has
/// been measured.
inline constexpr std::string_view kMeasuredGemms = "";

}  // namespace kvs::cuda
