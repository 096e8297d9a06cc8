// SPDX-License-Identifier: Apache-2.0
#include "model/checkpoints/scale_grid.h"

#include <algorithm>

#include "core/error.h"
#include "core/nearest.h"
#include "model/checkpoints/checkpoints.h"
#include "model/tensor_shape.h"

namespace kvs::inline model {

namespace {

std::size_t blocks(std::size_t values, std::size_t block) { return (values + block - 1) / block; }

bool is_one(const std::vector<std::uint64_t>& shape) {
  return std::ranges::all_of(shape, [](std::uint64_t extent) { return extent == 1; });
}

}  // namespace

const std::vector<std::string>& float_types() {
  static const std::vector<std::string> types{"F32", "F16", "BF16", "F64"};
  return types;
}

ScaleGrid::ScaleGrid(const TensorArchive& archive, const StoredTensor& scales, const StoredTensor& weight,
                     std::span<const std::uint64_t> shape, BlockSize block, const std::vector<std::string>& types)
    : scales_(scales),
      matrix_rows_(std::max<std::uint64_t>(1, shape[shape.size() - 2])),
      experts_(shape.size() == 3 ? shape[0] : 1) {
  const std::size_t matrix_columns = std::max<std::uint64_t>(1, shape.back());
  block_ = {block.rows == 0 ? matrix_rows_ : block.rows, block.columns == 0 ? matrix_columns : block.columns};
  rows_ = blocks(matrix_rows_, block_.rows);
  columns_ = blocks(matrix_columns, block_.columns);
  // A single scale has any number of axes; a column of scales may lack its second axis.
  std::vector<std::uint64_t> expected{rows_, columns_}, found = scales.shape;
  if (shape.size() == 3) expected.insert(expected.begin(), experts_);
  while (found.size() < expected.size() && !found.empty() && expected[found.size()] == 1) found.push_back(1);
  shared_ = block.rows == 0 && block.columns == 0 && is_one(scales.shape);
  if (!shared_ && found != expected) {
    throw Error(ErrorCode::kInput, place_of(archive, scales),
                "found shape " + shape_text(scales.shape) + ", expected " + shape_text(expected) +
                    ", a scale for each block of " + printable(weight.name, 120));
  }
  if (scales.type_name == "U8") scales_.type = element_type_of_safetensors("F8_E8M0");
  if (std::ranges::find(types, scales.type_name) == types.end()) {
    throw Error(ErrorCode::kUnsupported, place_of(archive, scales),
                "found type " + scales.type_name + ", supported are: " + listed(types));
  }
}

void ScaleGrid::set_factor(const TensorArchive& archive, const StoredTensor& factor, bool divides) {
  expect_type(archive, factor, {"F32"});
  const std::size_t count = is_one(factor.shape) ? 1 : experts_;
  if (count != 1) expect_shape(archive, factor, {experts_}, "one for each expert");
  factors_.resize(count);
  factor.type->decode(factor.bytes.data(), count, factors_.data());
  divides_ = divides;
}

void ScaleGrid::read(std::size_t grid_row, std::span<float> out) const {
  const std::size_t bytes = columns_ * scales_.type->block_bytes;
  scales_.type->decode(scales_.bytes.subspan(grid_row * bytes, bytes).data(), columns_, out.data());
  if (factors_.empty()) return;
  const float factor = factors_.size() == 1 ? factors_.front() : factors_[grid_row / rows_];
  for (float& scale : out) scale = divides_ ? scale / factor : scale * factor;
}

}  // namespace kvs::inline model
