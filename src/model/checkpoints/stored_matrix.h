// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io/tensor_archive.h"

namespace kvs::inline model {

/// A matrix of weights, or one for each expert, in the form of a checkpoint format. Its values are decoded by rows.
class StoredMatrix {
 public:
  /// @param shape    of the decoded values: [row, column] or [expert, row, column]
  /// @param tensors  that hold the matrix, in an archive that outlives it; the first one holds the values
  StoredMatrix(std::vector<std::uint64_t> shape, std::vector<const StoredTensor*> tensors);
  virtual ~StoredMatrix() = default;

  const std::vector<std::uint64_t>& shape() const noexcept { return shape_; }
  std::span<const StoredTensor* const> tensors() const noexcept { return tensors_; }
  /// Number of rows of all experts.
  std::size_t rows() const noexcept { return rows_; }
  std::size_t columns() const noexcept { return static_cast<std::size_t>(shape_.back()); }

  /// Returns true if each row of the matrix is one range of bytes of the first tensor, in order of rows.
  virtual bool is_by_rows() const noexcept { return true; }
  /// Returns true if rows are output channels even if a plain tensor of this name is transposed.
  virtual bool is_by_output() const noexcept { return false; }
  /// Decodes rows [first, first + count) to f32, count · columns() values. Thread-safe.
  virtual void read(std::size_t first, std::size_t count, std::span<float> out) const = 0;
  /// Decodes the values of a row from `column` on. Thread-safe. Cost of the default: that of the whole row.
  virtual void read_columns(std::size_t row, std::size_t column, std::span<float> out) const;

 private:
  std::vector<std::uint64_t> shape_;
  std::vector<const StoredTensor*> tensors_;
  std::size_t rows_;
};

}  // namespace kvs::inline model
