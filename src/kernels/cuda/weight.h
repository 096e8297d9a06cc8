#pragma once

#include <cstddef>

#include "kernels/backend.h"
#include "kernels/cuda/device_array.h"

namespace kvs::cuda {

/// A weight as it is in the model, [rows, columns] row-major, in the compute type: cuBLASLt reads it transposed.
class CudaWeight final : public Weight {
 public:
  CudaWeight(std::size_t rows, std::size_t columns, std::size_t item, DeviceArray<std::byte> values,
             DeviceArray<float> bias)
      : Weight(rows, columns, values.size() + bias.size() * sizeof(float)),
        item_(item),
        values_(std::move(values)),
        bias_(std::move(bias)) {}

  const void* rows_from(std::size_t row) const noexcept { return values_.data() + row * columns() * item_; }
  const float* bias_from(std::size_t row) const noexcept { return bias_.size() == 0 ? nullptr : bias_.data() + row; }

 private:
  std::size_t item_;
  DeviceArray<std::byte> values_;
  DeviceArray<float> bias_;
};

/// @throws Error kInternal unless `weight` was made by a CUDA backend and reads rows of `columns`.
const CudaWeight& checked_weight(const Weight& weight, std::size_t columns);

}  // namespace kvs::cuda
