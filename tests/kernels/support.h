// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "kernels/backend.h"

namespace kvs::test {

/// Uniform in (−1, 1), the same on every machine.
inline std::vector<float> random_values(std::size_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(generator() >> 8) * 0x1p-23F - 1.0F;
  return values;
}

/// Returns values after passing through an operand of this type.
inline std::vector<float> rounded(std::vector<float> values, DType type) {
  if (type == DType::kBF16)
    for (float& value : values) value = bf16_to_f32(f32_to_bf16(value));
  return values;
}

/// Largest relative error of one rounding to `type`.
inline double half_step(DType type) { return type == DType::kBF16 ? 0x1p-8 : 0x1p-24; }

template <std::size_t Rank>
BackendTensor<float, Rank> uploaded(Backend& backend, const std::vector<float>& values,
                                    std::array<std::size_t, Rank> shape) {
  BackendTensor<float, Rank> tensor(backend, shape);
  if (!values.empty()) backend.upload(tensor.view().data(), values.data(), values.size() * sizeof(float));
  return tensor;
}

/// [group, rows, channels] with `spare` rows of NaN after each group's rows, which nobody may read.
inline std::vector<float> with_spare_rows(const std::vector<float>& values, std::size_t rows, std::size_t channels,
                                          std::size_t spare) {
  std::vector<float> padded;
  for (std::size_t at = 0; at < values.size(); at += rows * channels) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(at);
    padded.insert(padded.end(), first, first + static_cast<std::ptrdiff_t>(rows * channels));
    padded.insert(padded.end(), spare * channels, std::nanf(""));
  }
  return padded;
}

/// An operand with an owner.
class OwnedOperand {
 public:
  OwnedOperand(Backend& backend, std::size_t rows, std::size_t columns)
      : backend_(&backend), operand_{backend.allocate(operand_bytes(backend, rows, columns)), rows, columns} {}
  OwnedOperand(Backend& backend, const std::vector<float>& values, std::size_t rows, std::size_t columns)
      : OwnedOperand(backend, rows, columns) {
    if (backend.compute_type() == DType::kF32) {
      backend.upload(operand_.data, values.data(), values.size() * sizeof(float));
    } else {
      std::vector<std::uint16_t> narrow(values.size());
      std::ranges::transform(values, narrow.begin(), f32_to_bf16);
      backend.upload(operand_.data, narrow.data(), narrow.size() * sizeof(std::uint16_t));
    }
  }
  ~OwnedOperand() { backend_->release(operand_.data); }
  OwnedOperand(const OwnedOperand&) = delete;
  OwnedOperand& operator=(const OwnedOperand&) = delete;

  // NOLINTNEXTLINE(google-explicit-constructor): stands for it in calls
  operator Operand() const noexcept { return operand_; }
  std::vector<float> values() const {
    const BackendTensor<float, 2> wide(*backend_, {operand_.rows, operand_.columns});
    std::vector<std::int32_t> all(operand_.rows);
    std::iota(all.begin(), all.end(), 0);
    backend_->gather(operand_, all, 1, wide.view());
    return download(*backend_, wide.view());
  }

 private:
  Backend* backend_;
  Operand operand_;
};

inline std::unique_ptr<Weight> make_weight(Backend& backend, const std::vector<float>& rows, std::size_t count,
                                           std::size_t columns, std::span<const float> bias = {}, bool f32 = false) {
  const auto read = [&](std::size_t first, std::size_t some, std::span<float> out) {
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(first * columns), some * columns, out.begin());
  };
  return backend.make_weight({.rows = count, .columns = columns, .read = read, .bias = bias, .f32 = f32});
}

/// up_projection() whose product is `values` [row, width], exactly if they are of the compute type: row r of x picks
/// column r of the weight. A row of NaN spoils the other rows.
inline std::vector<float> projected(Backend& backend, const std::vector<float>& values, std::size_t rows,
                                    Activation activation, std::size_t columns, std::span<const float> bias = {}) {
  const std::size_t width = values.size() / rows;
  std::vector<float> identity(rows * rows), weight(values.size());
  for (std::size_t row = 0; row < rows; ++row) {
    identity[row * rows + row] = 1;
    for (std::size_t i = 0; i < width; ++i) weight[i * rows + row] = values[row * width + i];
  }
  const OwnedOperand x(backend, identity, rows, rows), out(backend, rows, columns);
  backend.up_projection(x, *make_weight(backend, weight, width, rows, bias), activation, out);
  return out.values();
}

inline std::string type_name(DType type) { return std::string(name_of(type)); }

}  // namespace kvs::test
