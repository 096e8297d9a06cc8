// SPDX-License-Identifier: Apache-2.0
#include "io/output_tensor.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "core/checked.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "io/file.h"

namespace kvs::inline io {
namespace {

static_assert(std::endian::native == std::endian::little, "the formats are little-endian and values go as they are");

constexpr std::size_t kPieceValues = std::size_t{1} << 21;

std::string place(const OutputTensor& tensor) { return "tensor \"" + printable(tensor.name, 80) + '"'; }

std::uint64_t product(const OutputTensor& tensor, std::span<const std::uint64_t> axes) {
  std::optional<std::uint64_t> size = 1;
  for (const std::uint64_t length : axes)
    if (size) size = checked_multiply(*size, length);
  if (!size || *size > std::numeric_limits<std::int64_t>::max() / sizeof(float))
    throw Error(ErrorCode::kInternal, place(tensor), "the product of its shape does not fit in 63 bits");
  return *size;
}

[[noreturn]] void refuse_value(const OutputTensor& tensor, std::uint64_t index, float value) {
  const std::string found = std::isnan(value) ? "NaN"
                            : std::isinf(value)
                                ? "infinity"
                                : std::to_string(value) + ", beyond " + std::string(name_of(tensor.type));
  throw Error(ErrorCode::kData, place(tensor) + ": value " + std::to_string(index),
              "found " + found + ", expected a finite number");
}

/// Converts values of the tensor, from flat index `first` on, to the bytes of its type.
std::span<const std::byte> rounded(const OutputTensor& tensor, std::uint64_t first, std::span<const float> values,
                                   std::vector<std::uint16_t>& narrow) {
  const auto refuse = [&](std::size_t n) { refuse_value(tensor, first + n, values[n]); };
  if (tensor.type == DType::kF32) {
    const auto bad = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
    if (bad != values.end()) refuse(static_cast<std::size_t>(bad - values.begin()));
    return std::as_bytes(values);
  }
  narrow.resize(values.size());
  const bool bf16 = tensor.type == DType::kBF16;
  std::ranges::transform(values, narrow.begin(), bf16 ? f32_to_bf16 : f32_to_f16);
  const std::uint16_t exponent = bf16 ? 0x7f80U : 0x7c00U;
  const auto bad = std::ranges::find_if(narrow, [&](std::uint16_t bits) { return (bits & exponent) == exponent; });
  if (bad != narrow.end()) refuse(static_cast<std::size_t>(bad - narrow.begin()));
  return std::as_bytes(std::span(narrow));
}

}  // namespace

std::uint64_t OutputTensor::rows() const {
  (void)product(*this, shape);
  return shape.empty() ? 1 : product(*this, std::span(shape).first(shape.size() - 1));
}
std::uint64_t OutputTensor::columns() const { return shape.empty() ? 1 : shape.back(); }
std::uint64_t OutputTensor::bytes() const { return product(*this, shape) * item_size(type); }

OutputTensor held_tensor(std::string name, std::vector<std::uint64_t> shape, std::vector<float> values, DType type) {
  OutputTensor tensor{std::move(name), type, std::move(shape), {}};
  if (product(tensor, tensor.shape) != values.size())
    throw Error(ErrorCode::kInternal, place(tensor), std::to_string(values.size()) + " values do not fill its shape");
  tensor.read = [held = std::make_shared<const std::vector<float>>(std::move(values)), width = tensor.columns()](
                    std::size_t first, std::size_t count, std::span<float> out) {
    std::copy_n(held->data() + first * width, count * width, out.data());
  };
  return tensor;
}

OutputFile::OutputFile(const std::filesystem::path& path, std::function<void(std::uint64_t)> progress)
    : path_(path), progress_(std::move(progress)), file_(open_descriptor(path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0666)) {
  if (!file_.is_open()) throw_errno(ErrorCode::kEnvironment, path, "cannot open", errno);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  write_at(file_.get(), path_, bytes, size_);
  size_ += bytes.size();
}

void OutputFile::pad(std::size_t alignment) {
  const std::vector<std::byte> zeros((alignment - size_ % alignment) % alignment);
  write(zeros);
}

void OutputFile::write(const OutputTensor& tensor) {
  const std::uint64_t rows = tensor.rows(), width = tensor.columns();
  if (width == 0) return;
  const std::uint64_t piece = std::max<std::uint64_t>(1, kPieceValues / width);
  std::vector<float> values;
  std::vector<std::uint16_t> narrow;
  for (std::uint64_t first = 0; first < rows; first += piece) {
    check_interrupt();
    const std::uint64_t count = std::min(piece, rows - first);
    values.resize(count * width);
    tensor.read(first, count, values);
    const auto bytes = rounded(tensor, first * width, values, narrow);
    write(bytes);
    if (progress_) progress_(bytes.size());
  }
}

}  // namespace kvs::inline io
