#include <bit>
#include <exception>

#include "core/error.h"
#include "model/model_tensors.h"

namespace kvs {

namespace {

constexpr std::size_t kRowsPerTask = 16;
constexpr std::uint32_t kExponent = 0x7f800000U;  // all ones: NaN or infinity

bool all_finite(std::span<const float> values) noexcept {
  std::uint32_t bad = 0;
  for (const float value : values) bad |= (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent ? 1U : 0U;
  return bad == 0;
}

}  // namespace

TensorRows::TensorRows(const TensorArchive& archive, const StoredTensor& tensor, Interleaving order)
    : archive_(&archive), tensor_(&tensor), order_(order) {}

std::size_t TensorRows::rows() const noexcept { return static_cast<std::size_t>(tensor_->rows()); }
std::size_t TensorRows::columns() const noexcept { return static_cast<std::size_t>(tensor_->columns()); }

void TensorRows::read(std::size_t first, std::size_t count, std::span<float> out) const {
  if (out.size() != count * columns() || first > rows() || count > rows() - first) {
    throw Error(ErrorCode::kInternal, "TensorRows", "rows outside tensor " + tensor_->name);
  }
  const std::size_t width = columns(), tasks = (count + kRowsPerTask - 1) / kRowsPerTask;
  std::exception_ptr failure;  // an exception must not leave a parallel region
  bool finite = true;
#pragma omp parallel for schedule(dynamic) reduction(&& : finite)
  for (std::size_t task = 0; task < tasks; ++task) {
    const std::size_t begin = task * kRowsPerTask, rows_here = std::min(kRowsPerTask, count - begin);
    const std::span<float> target = out.subspan(begin * width, rows_here * width);
    try {
      if (order_.head_dim == 0) {
        read_rows(*tensor_, first + begin, rows_here, target);
      } else {
        for (std::size_t row = 0; row < rows_here; ++row) {
          read_rows(*tensor_, interleaved_row(first + begin + row, order_), 1, target.subspan(row * width, width));
        }
      }
    } catch (...) {
#pragma omp critical(kvs_tensor_rows)
      failure = std::current_exception();
    }
    finite = finite && all_finite(target);
  }
  if (failure) std::rethrow_exception(failure);
  if (!finite) fail_not_finite();
  // The caller holds a copy now. Interleaved rows come from the whole head around them: the rest goes with its own
  // rows.
  const std::size_t row_bytes = tensor_->bytes.size() / rows();
  archive_->release(tensor_->bytes.subspan(first * row_bytes, count * row_bytes));
}

void TensorRows::fail_not_finite() const {
  std::vector<float> row(columns());
  std::size_t total = 0, first_index = 0;
  for (std::size_t r = 0; r < rows(); ++r) {
    read_rows(*tensor_, r, 1, row);
    for (std::size_t column = 0; column < row.size(); ++column) {
      if (all_finite({&row[column], 1})) continue;
      if (total++ == 0) first_index = r * row.size() + column;
    }
  }
  throw Error(ErrorCode::kData, archive_->file_of(*tensor_).string() + ": tensor " + tensor_->name,
              "found " + std::to_string(total) + " values that are NaN or infinite, the first at flat index " +
                  std::to_string(first_index) + ", expected finite numbers");
}

}  // namespace kvs
