// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <exception>

#include "core/error.h"
#include "model/model_tensors.h"

namespace kvs::inline model {

namespace {

constexpr std::size_t kRowsPerTask = 16;
constexpr std::uint32_t kExponent = 0x7f800000U;  // all ones: NaN or infinity

bool all_finite(std::span<const float> values) noexcept {
  std::uint32_t bad = 0;
  for (const float value : values) bad |= (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent ? 1U : 0U;
  return bad == 0;
}

}  // namespace

TensorRows::TensorRows(const TensorArchive& archive, const StoredTensor& tensor, Interleaving order, RowPart part,
                       const StoredMatrix* matrix, float factor)
    : archive_(&archive), tensor_(&tensor), order_(order), part_(part), matrix_(matrix), factor_(factor) {}

std::size_t TensorRows::rows() const noexcept { return part_.rows; }
std::size_t TensorRows::columns() const noexcept { return part_.depth != 0 ? part_.depth : stored_columns(); }

std::size_t TensorRows::stored_rows() const noexcept {
  return matrix_ != nullptr ? matrix_->rows() : static_cast<std::size_t>(tensor_->rows());
}
std::size_t TensorRows::stored_columns() const noexcept {
  return matrix_ != nullptr ? matrix_->columns() : static_cast<std::size_t>(tensor_->columns());
}

void TensorRows::read(std::size_t first, std::size_t count, std::span<float> out) const {
  if (out.size() != count * columns() || first > rows() || count > rows() - first) {
    throw Error(ErrorCode::kInternal, "TensorRows", "rows outside tensor " + tensor_->name);
  }
  const std::size_t width = columns(), tasks = (count + kRowsPerTask - 1) / kRowsPerTask;
  std::exception_ptr failure;  // exceptions must not leave a parallel region
  bool finite = true;
#pragma omp parallel for schedule(dynamic) reduction(&& : finite)
  for (std::size_t task = 0; task < tasks; ++task) {
    const std::size_t begin = task * kRowsPerTask, rows_here = std::min(kRowsPerTask, count - begin);
    const std::span<float> target = out.subspan(begin * width, rows_here * width);
    try {
      read_run(first + begin, rows_here, target);
      for (float& value : target) value *= factor_;
    } catch (...) {
#pragma omp critical(kvs_tensor_rows)
      failure = std::current_exception();
    }
    finite = finite && all_finite(target);
  }
  if (failure) std::rethrow_exception(failure);
  if (!finite) fail_not_finite();
  if (count > 0) release(first, count);
}

/// The caller has a copy now, so the mapped pages are released. Interleaved rows are read from the whole head; pages of
/// rows of other parts in between are read again when needed.
void TensorRows::release(std::size_t first, std::size_t count) const {
  const std::size_t row_bytes = tensor_->bytes.size() / stored_rows();
  const bool transposed = part_.depth != 0, scattered = matrix_ != nullptr && !matrix_->is_by_rows();
  const bool last = first + count == rows();
  if (matrix_ != nullptr && last)
    for (const StoredTensor* part : matrix_->tensors().subspan(1)) archive_->release(part->bytes);
  if ((transposed || scattered) && !last) return;  // every stored row is read again
  if (scattered) return archive_->release(tensor_->bytes);
  const std::size_t begin = transposed ? part_.base : part_.stored(first);
  const std::size_t end = transposed ? part_.base + part_.depth : part_.stored(first + count - 1) + 1;
  archive_->release(tensor_->bytes.subspan(begin * row_bytes, (end - begin) * row_bytes));
}

/// Reads consecutive rows of the file in one piece, others one by one.
void TensorRows::read_run(std::size_t first, std::size_t count, std::span<float> out) const {
  const std::size_t width = columns();
  if (part_.depth != 0) return read_transposed(first, count, out);
  for (std::size_t done = 0; done < count;) {
    const std::size_t row = first + done;
    const bool apart = order_.head_dim != 0;
    const std::size_t some = apart ? 1 : std::min(count - done, part_.run - row % part_.run);
    read_stored(part_.stored(apart ? interleaved_row(row, order_) : row), some,
                out.subspan(done * width, some * width));
    done += some;
  }
}

/// Reads the values of `count` rows from each stored row.
void TensorRows::read_transposed(std::size_t first, std::size_t count, std::span<float> out) const {
  const std::size_t begin = part_.stored(first), span = part_.stored(first + count - 1) + 1 - begin;
  std::vector<float> values(span);
  for (std::size_t column = 0; column < part_.depth; ++column) {
    read_stored_columns(part_.base + column, begin, values);
    for (std::size_t row = 0; row < count; ++row)
      out[row * part_.depth + column] = values[part_.stored(first + row) - begin];
  }
}

/// Reads rows in the tensor's own order.
void TensorRows::read_stored(std::size_t first, std::size_t count, std::span<float> out) const {
  if (matrix_ != nullptr) return matrix_->read(first, count, out);
  read_rows(*tensor_, first, count, out);
}

/// The types of plain tensors in Hugging Face files have no blocks.
void TensorRows::read_stored_columns(std::size_t row, std::size_t column, std::span<float> out) const {
  if (matrix_ != nullptr) return matrix_->read_columns(row, column, out);
  const std::size_t at = row * stored_columns() + column, bytes = tensor_->type->block_bytes;
  tensor_->type->decode(tensor_->bytes.subspan(at * bytes, out.size() * bytes).data(), out.size(), out.data());
}

void TensorRows::fail_not_finite() const {
  std::vector<float> row(stored_columns());
  std::size_t total = 0, first_index = 0;
  for (std::size_t r = 0; r < stored_rows(); ++r) {
    read_stored(r, 1, row);
    for (std::size_t column = 0; column < row.size(); ++column) {
      if (all_finite({&row[column], 1})) continue;
      if (total++ == 0) first_index = r * row.size() + column;
    }
  }
  throw Error(ErrorCode::kData, place_of(*archive_, *tensor_),
              "found " + std::to_string(total) +
                  " values that are NaN, infinite or beyond f32, the first at flat index " +
                  std::to_string(first_index) + ", expected finite numbers");
}

}  // namespace kvs::inline model
