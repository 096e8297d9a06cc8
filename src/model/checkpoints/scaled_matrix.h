// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/checkpoints/row_codes.h"
#include "model/checkpoints/scale_grid.h"
#include "model/checkpoints/stored_matrix.h"

namespace kvs::inline model {

/// Zero points of a matrix: one for each of its scales.
class ZeroPoints {
 public:
  /// @param bits  0: I8 in the shape of `scales`; otherwise codes of so many bits, packed down the columns of an I32
  /// tensor of ⌈rows · bits / 32⌉ rows
  /// @throws Error kInput if type or shape do not fit.
  ZeroPoints(const TensorArchive& archive, const StoredTensor& tensor, const ScaleGrid& scales, std::size_t bits);
  /// Reads the zero points of a row of the grid.
  void read(std::size_t grid_row, std::span<float> out) const;

 private:
  const StoredTensor* tensor_;
  std::size_t bits_;
};

/// A matrix of codes in rows: a value is (code − zero point) · scale in f32. Without zero points it is code · scale.
class ScaledMatrix final : public StoredMatrix {
 public:
  struct Parts {
    const StoredTensor* values;
    DecodeCodes decode;
    ScaleGrid scales;
    std::optional<ZeroPoints> zeros = {};
    std::vector<std::uint32_t> groups = {};  // [column]: its column of the grid; empty: they are in order
    bool by_output = false;                  // StoredMatrix::is_by_output()
  };
  ScaledMatrix(std::vector<std::uint64_t> shape, std::vector<const StoredTensor*> tensors, Parts parts);

  bool is_by_output() const noexcept override { return parts_.by_output; }
  void read(std::size_t first, std::size_t count, std::span<float> out) const override;
  void read_columns(std::size_t row, std::size_t column, std::span<float> out) const override;

 private:
  /// The scales and zero points of a row of the grid.
  struct RowScales {
    std::vector<float> scales, zeros;
  };
  void load(std::size_t grid_row, RowScales& row) const;
  void decode(std::size_t row, std::size_t column, const RowScales& scales, std::span<float> out) const;

  Parts parts_;
  std::size_t row_bytes_;
};

/// Reads the group of each column of a matrix. @return nothing if the groups are not set (a negative number)
/// @throws Error kInput if type or shape do not fit, or a group is not below `groups`.
std::vector<std::uint32_t> read_groups(const TensorArchive& archive, const StoredTensor& tensor, std::size_t columns,
                                       std::size_t groups);

}  // namespace kvs::inline model
