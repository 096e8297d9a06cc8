// SPDX-License-Identifier: Apache-2.0
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

/// The key of a choice of algorithm: y = x Wᵀ (+ bias) with x [rows, inner] and W [columns, inner] in `type`.
struct GemmShape {
  std::size_t rows = 0, columns = 0, inner = 0;
  DType type = DType::kF32, y_type = DType::kF32;
  bool bias = false;
  auto operator<=>(const GemmShape&) const = default;
};
/// Returns e.g. "4096 x 12288 from 4096, bf16 to f32, bias".
std::string to_string(const GemmShape& shape);

/// The library and device for which a measurement is valid.
struct GemmPlace {
  std::size_t version = 0;  // version of cuBLASLt
  int architecture = 0;     // 90 for compute capability 9.0
  int multiprocessors = 0;
  auto operator<=>(const GemmPlace&) const = default;
};

/// The words of cublasLtMatmulAlgo_t. The same version of cuBLASLt accepts them unchanged.
using GemmAlgorithm = std::array<std::uint64_t, 8>;

/// Algorithms that were measured once and are fixed from then on, so that a shape gives the same bits in every run.
class GemmTable {
 public:
  /// @param text  one entry per line: version, architecture, multiprocessors, rows, columns, inner, type, type of y,
  ///         "bias" or "-", and the algorithm's eight words in hexadecimal. # starts a comment. The last line of a
  ///         shape counts. Lines for other places are skipped.
  /// @param name  name of the text, for errors
  /// @throws Error kInput with the number of an invalid line.
  GemmTable(std::string_view text, const std::string& name, const GemmPlace& place);

  /// Returns null if the table has no line for the shape.
  const GemmAlgorithm* find(const GemmShape& shape) const;

 private:
  std::map<GemmShape, GemmAlgorithm> algorithms_;
};

/// Returns one line of a table.
std::string gemm_line(const GemmPlace& place, const GemmShape& shape, const GemmAlgorithm& algorithm);

/// The built-in table. `gpu_report.py` writes one from a run of `gpu_speed gemm`. Empty: nothing has been measured.
inline constexpr std::string_view kMeasuredGemms = "";

}  // namespace kvs::cuda
