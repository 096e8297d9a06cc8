// SPDX-License-Identifier: Apache-2.0
#include "model/checkpoints/scaled_matrix.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "model/checkpoints/checkpoints.h"

namespace kvs::inline model {

ZeroPoints::ZeroPoints(const TensorArchive& archive, const StoredTensor& tensor, const ScaleGrid& scales,
                       std::size_t bits)
    : tensor_(&tensor), bits_(bits) {
  expect_type(archive, tensor, {bits == 0 ? "I8" : "I32"});
  const std::size_t rows = bits == 0 ? scales.rows() : (scales.rows() * bits + 31) / 32;
  const bool column = scales.columns() == 1 && tensor.shape == std::vector<std::uint64_t>{rows};
  if (!column) expect_shape(archive, tensor, {rows, scales.columns()}, "a zero point for each scale");
}

void ZeroPoints::read(std::size_t grid_row, std::span<float> out) const {
  if (bits_ == 0) return decode_i8_codes(tensor_->bytes.data(), grid_row * out.size(), out);
  // Code `row` of a column: the column's words are one stream of bits.
  const std::size_t bit = grid_row * bits_, word = bit / 32, shift = bit % 32;
  const std::size_t stride = 4 * out.size();
  for (std::size_t column = 0; column < out.size(); ++column) {
    std::uint64_t both = 0;
    const std::byte* const at = tensor_->bytes.data() + word * stride + 4 * column;
    std::memcpy(&both, at, 4);
    std::uint32_t next = 0;
    if (shift + bits_ > 32) std::memcpy(&next, at + stride, 4);
    both |= std::uint64_t{next} << 32;
    const auto code = static_cast<int>(both >> shift & ((1U << bits_) - 1));
    out[column] = static_cast<float>(code - (1 << (bits_ - 1)));
  }
}

ScaledMatrix::ScaledMatrix(std::vector<std::uint64_t> shape, std::vector<const StoredTensor*> tensors, Parts parts)
    : StoredMatrix(std::move(shape), std::move(tensors)),
      parts_(std::move(parts)),
      row_bytes_(rows() == 0 ? 0 : parts_.values->bytes.size() / rows()) {}

void ScaledMatrix::load(std::size_t grid_row, RowScales& row) const {
  row.scales.resize(parts_.scales.columns());
  parts_.scales.read(grid_row, row.scales);
  if (!parts_.zeros) return;
  row.zeros.resize(row.scales.size());
  parts_.zeros->read(grid_row, row.zeros);
}

void ScaledMatrix::decode(std::size_t row, std::size_t column, const RowScales& scales, std::span<float> out) const {
  parts_.decode(parts_.values->bytes.data() + row * row_bytes_, column, out);
  const std::size_t block = parts_.scales.block_columns();
  for (std::size_t begin = 0; begin < out.size();) {
    // Up to the next column with another scale.
    const std::size_t at = column + begin, left = out.size() - begin;
    const std::size_t group = parts_.groups.empty() ? at / block : parts_.groups[at];
    const std::size_t count = parts_.groups.empty() ? std::min(left, block - at % block) : 1;
    const float scale = scales.scales[group], zero = scales.zeros.empty() ? 0.0F : scales.zeros[group];
    const std::span<float> values = out.subspan(begin, count);
    if (!scales.zeros.empty())
      for (float& value : values) value -= zero;
    for (float& value : values) value *= scale;
    begin += count;
  }
}

void ScaledMatrix::read(std::size_t first, std::size_t count, std::span<float> out) const {
  RowScales scales;
  for (std::size_t row = first; row < first + count; ++row) {
    const std::size_t grid_row = parts_.scales.row_of(row);
    if (row == first || grid_row != parts_.scales.row_of(row - 1)) load(grid_row, scales);
    decode(row, 0, scales, out.subspan((row - first) * columns(), columns()));
  }
}

void ScaledMatrix::read_columns(std::size_t row, std::size_t column, std::span<float> out) const {
  RowScales scales;
  load(parts_.scales.row_of(row), scales);
  decode(row, column, scales, out);
}

std::vector<std::uint32_t> read_groups(const TensorArchive& archive, const StoredTensor& tensor, std::size_t columns,
                                       std::size_t groups) {
  expect_type(archive, tensor, {"I32"});
  expect_shape(archive, tensor, {columns}, "a group for each column");
  std::vector<std::int32_t> stored(columns);
  if (columns > 0) std::memcpy(stored.data(), tensor.bytes.data(), columns * sizeof(std::int32_t));
  if (std::ranges::any_of(stored, [](std::int32_t group) { return group < 0; })) return {};
  const auto beyond =
      std::ranges::find_if(stored, [&](std::int32_t group) { return std::cmp_greater_equal(group, groups); });
  if (beyond != stored.end())
    throw Error(ErrorCode::kInput, place_of(archive, tensor),
                "found group " + std::to_string(*beyond) + ", expected 0 to " + std::to_string(groups - 1));
  return {stored.begin(), stored.end()};
}

}  // namespace kvs::inline model
