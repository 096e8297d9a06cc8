// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/tensor_archive.h"

namespace kvs::inline model {

/// The block of a matrix that shares one scale. 0: all rows or columns of the matrix. Blocks at the edges may be cut
/// short.
struct BlockSize {
  std::size_t rows = 0, columns = 0;
};

/// The scales of a matrix, or of the matrix of each expert: one for each block.
class ScaleGrid {
 public:
  /// @param shape  of the matrix: [row, column] or [expert, row, column]
  /// @param types  names of the supported types of `scales`. U8 means F8_E8M0
  /// @throws Error kInput if the shape of `scales` does not fit, kUnsupported for another type.
  ScaleGrid(const TensorArchive& archive, const StoredTensor& scales, const StoredTensor& weight,
            std::span<const std::uint64_t> shape, BlockSize block, const std::vector<std::string>& types);

  /// Multiplies or divides all scales by one factor, or those of each expert by its own.
  /// @param factor  F32
  void set_factor(const TensorArchive& archive, const StoredTensor& factor, bool divides);

  std::size_t columns() const noexcept { return columns_; }
  std::size_t rows() const noexcept { return experts_ * rows_; }
  std::size_t block_columns() const noexcept { return block_.columns; }
  /// Returns the row of the grid for a row of the matrices.
  std::size_t row_of(std::size_t row) const noexcept {
    return shared_ ? 0 : row / matrix_rows_ * rows_ + row % matrix_rows_ / block_.rows;
  }
  /// Reads a row of the grid, columns() values.
  void read(std::size_t grid_row, std::span<float> out) const;

 private:
  StoredTensor scales_;
  BlockSize block_;
  std::size_t matrix_rows_, experts_, rows_, columns_;  // rows_, columns_: of one matrix's grid
  bool shared_ = false;                                 // one scale for all experts
  std::vector<float> factors_;
  bool divides_ = false;
};

/// The types of scales in most formats.
const std::vector<std::string>& float_types();

}  // namespace kvs::inline model
