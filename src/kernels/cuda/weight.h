// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "core/dtype.h"
#include "kernels/cuda/device_array.h"
#include "kernels/forward_ops.h"

namespace kvs::cuda {

/// A weight as stored in the model, [rows, columns] row-major, in the compute type. cuBLASLt reads it transposed.
class CudaWeight final : public Weight {
 public:
  CudaWeight(DType type, std::size_t rows, std::size_t columns, DeviceArray<std::byte> values, DeviceArray<float> bias)
      : Weight(type, rows, columns, values.size() + bias.size() * sizeof(float)),
        values_(std::move(values)),
        bias_(std::move(bias)) {}

  const void* rows_from(std::size_t row) const noexcept { return values_.data() + row * columns() * item_size(type()); }
  const float* bias_from(std::size_t row) const noexcept { return bias_.size() == 0 ? nullptr : bias_.data() + row; }

 private:
  DeviceArray<std::byte> values_;
  DeviceArray<float> bias_;
};

/// @throws Error kInternal unless a CUDA backend made `weight` in `type` for rows with `columns` values.
const CudaWeight& checked_weight(const Weight& weight, std::size_t columns, DType type);

}  // namespace kvs::cuda
