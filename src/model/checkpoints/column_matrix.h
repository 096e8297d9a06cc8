// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/checkpoints/stored_matrix.h"

namespace kvs::inline model {

/// A matrix of integer codes that is stored by columns, as inference kernels read it (AWQ, GPTQ). A value is
/// (code − zero point) · scale in f32. Groups of columns have scales and zero points: [group, row].
class ColumnMatrix final : public StoredMatrix {
 public:
  enum class Layout {
    kAcross,  // I32 [column, rows / 8]: 4 bits, the rows of a word in the order 0, 4, 1, 5, 2, 6, 3, 7 (AWQ)
    kDown     // I32 [columns · bits / 32, row]: the words of a row are one stream of bits (GPTQ)
  };
  struct Parts {
    const StoredTensor *codes, *zeros, *scales;  // zeros: I32 [group, rows · bits / 32], in the layout's order
    Layout layout;
    std::size_t bits;
    int zero_offset;                    // added to stored zero points
    std::vector<std::uint32_t> groups;  // [column]
  };
  ColumnMatrix(std::vector<std::uint64_t> shape, std::vector<const StoredTensor*> tensors, Parts parts);

  bool is_by_rows() const noexcept override { return false; }
  /// Cost: a cache line for each column and 16 rows.
  void read(std::size_t first, std::size_t count, std::span<float> out) const override;

 private:
  int zero_point(std::size_t group, std::size_t row) const noexcept;
  void read_codes(std::size_t column, std::size_t first, std::span<int> out) const;

  Parts parts_;
};

/// The tensors of one matrix, X.qweight and its parts, and what their config says.
struct ColumnScheme {
  ColumnMatrix::Layout layout;
  std::size_t bits, group_size;  // group_size 0: all columns
  int zero_offset;
  bool reordered;  // X.g_idx must be there
};

/// Reads X.qweight, X.qzeros, X.scales and, in Layout::kDown, X.g_idx; nullptr: there is no X.qweight.
/// @param name  X.weight
/// @throws Error kInput if parts are missing, or types, shapes or groups do not fit.
std::unique_ptr<StoredMatrix> find_columns(const TensorArchive& archive, const std::string& name,
                                           const ColumnScheme& scheme);

}  // namespace kvs::inline model
