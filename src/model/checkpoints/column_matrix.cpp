// SPDX-License-Identifier: Apache-2.0
#include "model/checkpoints/column_matrix.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "model/checkpoints/checkpoints.h"
#include "model/checkpoints/row_codes.h"
#include "model/checkpoints/scale_grid.h"
#include "model/checkpoints/scaled_matrix.h"

namespace kvs::inline model {

namespace {

constexpr std::size_t kWordBits = 32, kTileColumns = 16;

/// Returns the code of row `row` in a stored row of Layout::kAcross.
int code_across(const std::byte* stored, std::size_t row) noexcept {
  constexpr std::array<unsigned, 8> kShifts{0, 16, 4, 20, 8, 24, 12, 28};
  std::uint32_t word = 0;
  std::memcpy(&word, stored + row / kShifts.size() * sizeof word, sizeof word);
  return static_cast<int>(word >> kShifts[row % kShifts.size()] & 15U);
}

/// Returns the number of codes of `bits` bits in `words` words. @throws Error kInput unless it is whole
std::size_t whole_codes(const TensorArchive& archive, const StoredTensor& codes, std::size_t words, std::size_t bits) {
  if (words * kWordBits % bits != 0)
    throw Error(ErrorCode::kInput, place_of(archive, codes),
                "found " + std::to_string(words) + " words, expected a whole number of codes of " +
                    std::to_string(bits) + " bits");
  return words * kWordBits / bits;
}

}  // namespace

ColumnMatrix::ColumnMatrix(std::vector<std::uint64_t> shape, std::vector<const StoredTensor*> tensors, Parts parts)
    : StoredMatrix(std::move(shape), std::move(tensors)), parts_(std::move(parts)) {}

int ColumnMatrix::zero_point(std::size_t group, std::size_t row) const noexcept {
  const std::byte* const stored = parts_.zeros->bytes.data() + group * (rows() * parts_.bits / 8);
  const bool across = parts_.layout == Layout::kAcross;
  return (across ? code_across(stored, row) : static_cast<int>(packed_code(stored, row, parts_.bits))) +
         parts_.zero_offset;
}

/// Reads the codes of rows [first, first + out.size()) of a column.
void ColumnMatrix::read_codes(std::size_t column, std::size_t first, std::span<int> out) const {
  const std::byte* const codes = parts_.codes->bytes.data();
  if (parts_.layout == Layout::kAcross) {
    const std::byte* const row = codes + column * (rows() / 2);
    for (std::size_t n = 0; n < out.size(); ++n) out[n] = code_across(row, first + n);
    return;
  }
  const std::size_t bit = column * parts_.bits, shift = bit % kWordBits, stride = 4 * rows();
  const std::byte* const at = codes + bit / kWordBits * stride + 4 * first;
  const bool straddles = shift + parts_.bits > kWordBits;
  const std::uint32_t mask = (1U << parts_.bits) - 1;
  for (std::size_t n = 0; n < out.size(); ++n) {
    std::uint32_t word = 0;
    std::memcpy(&word, at + 4 * n, sizeof word);
    word >>= shift;
    if (straddles) {
      std::uint32_t next = 0;
      std::memcpy(&next, at + stride + 4 * n, sizeof next);
      word |= next << (kWordBits - shift);
    }
    out[n] = static_cast<int>(word & mask);
  }
}

void ColumnMatrix::read(std::size_t first, std::size_t count, std::span<float> out) const {
  const std::size_t groups = parts_.scales->rows(), item = parts_.scales->type->block_bytes;
  std::vector<float> scales(groups * count);  // [group, row]
  std::vector<int> zeros(groups * count), codes(count);
  for (std::size_t group = 0; group < groups; ++group) {
    const std::byte* const stored = parts_.scales->bytes.data() + (group * rows() + first) * item;
    parts_.scales->type->decode(stored, count, scales.data() + group * count);
    for (std::size_t row = 0; row < count; ++row) zeros[group * count + row] = zero_point(group, first + row);
  }
  // In tiles: columns of distant rows would evict each other from the cache.
  std::vector<float> tile(count * kTileColumns);  // [row, column]
  for (std::size_t begin = 0; begin < columns(); begin += kTileColumns) {
    const std::size_t width = std::min(kTileColumns, columns() - begin);
    for (std::size_t column = 0; column < width; ++column) {
      read_codes(begin + column, first, codes);
      const float* const scale = scales.data() + parts_.groups[begin + column] * count;
      const int* const zero = zeros.data() + parts_.groups[begin + column] * count;
      for (std::size_t row = 0; row < count; ++row)
        tile[row * kTileColumns + column] = static_cast<float>(codes[row] - zero[row]) * scale[row];
    }
    for (std::size_t row = 0; row < count; ++row)
      std::copy_n(tile.begin() + static_cast<std::ptrdiff_t>(row * kTileColumns), width,
                  out.begin() + static_cast<std::ptrdiff_t>(row * columns() + begin));
  }
}

namespace {

/// Returns the group of each column: X.g_idx, or consecutive columns.
std::vector<std::uint32_t> groups_of(const TensorArchive& archive, const StoredTensor& codes, const StoredTensor* order,
                                     std::size_t columns, std::size_t group_size, std::size_t groups) {
  if (order != nullptr) {
    std::vector<std::uint32_t> read = read_groups(archive, *order, columns, groups);
    if (read.size() == columns) return read;
    throw Error(ErrorCode::kInput, place_of(archive, *order), "found negative groups, expected 0 or more");
  }
  if (columns % group_size != 0)
    throw Error(ErrorCode::kInput, place_of(archive, codes),
                "found " + std::to_string(columns) + " columns, expected a multiple of the group_size " +
                    std::to_string(group_size));
  std::vector<std::uint32_t> in_order(columns);
  for (std::size_t column = 0; column < columns; ++column)
    in_order[column] = static_cast<std::uint32_t>(column / group_size);
  return in_order;
}

}  // namespace

std::unique_ptr<StoredMatrix> find_columns(const TensorArchive& archive, const std::string& name,
                                           const ColumnScheme& scheme) {
  const std::string module = module_of(name);
  const StoredTensor* codes = module.empty() ? nullptr : archive.find(module + ".qweight");
  if (codes == nullptr) return nullptr;
  expect_type(archive, *codes, {"I32"});
  expect_matrix(archive, *codes);
  if (codes->bytes.empty())
    throw Error(ErrorCode::kInput, place_of(archive, *codes), "found no codes, expected those of a matrix");
  const bool across = scheme.layout == ColumnMatrix::Layout::kAcross;
  const std::size_t packed = whole_codes(archive, *codes, codes->shape[across ? 1 : 0], scheme.bits);
  const std::size_t rows = across ? packed : codes->shape[1], columns = across ? codes->shape[0] : packed;
  const std::size_t group_size = scheme.group_size == 0 ? columns : scheme.group_size;
  const std::size_t groups = (columns + group_size - 1) / group_size;
  const StoredTensor& scales = part_of(archive, *codes, module + ".scales");
  expect_type(archive, scales, float_types());
  expect_shape(archive, scales, {groups, rows}, "a scale for each group and output");
  const StoredTensor& zeros = part_of(archive, *codes, module + ".qzeros");
  expect_type(archive, zeros, {"I32"});
  if (rows * scheme.bits % kWordBits != 0)
    throw Error(ErrorCode::kInput, place_of(archive, *codes),
                "found " + std::to_string(rows) + " outputs, expected whole words of zero points");
  expect_shape(archive, zeros, {groups, rows * scheme.bits / kWordBits}, "a zero point for each scale");
  std::vector<const StoredTensor*> tensors{codes, &scales, &zeros};
  const StoredTensor* order = across ? nullptr : archive.find(module + ".g_idx");
  if (order == nullptr && scheme.reordered) order = &part_of(archive, *codes, module + ".g_idx");
  if (order != nullptr) tensors.push_back(order);
  return std::make_unique<ColumnMatrix>(
      std::vector<std::uint64_t>{rows, columns}, std::move(tensors),
      ColumnMatrix::Parts{.codes = codes,
                          .zeros = &zeros,
                          .scales = &scales,
                          .layout = scheme.layout,
                          .bits = scheme.bits,
                          .zero_offset = scheme.zero_offset,
                          .groups = groups_of(archive, *codes, order, columns, group_size, groups)});
}

}  // namespace kvs::inline model
