// SPDX-License-Identifier: Apache-2.0
#include "model/checkpoints/stored_matrix.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace kvs::inline model {

StoredMatrix::StoredMatrix(std::vector<std::uint64_t> shape, std::vector<const StoredTensor*> tensors)
    : shape_(std::move(shape)),
      tensors_(std::move(tensors)),
      rows_(std::accumulate(shape_.begin(), shape_.end() - 1, std::size_t{1}, std::multiplies<>())) {}

void StoredMatrix::read_columns(std::size_t row, std::size_t column, std::span<float> out) const {
  std::vector<float> values(columns());
  read(row, 1, values);
  std::ranges::copy(std::span(values).subspan(column, out.size()), out.begin());
}

}  // namespace kvs::inline model
