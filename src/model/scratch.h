// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "kernels/backend.h"

namespace kvs::inline model {

/// Backend memory that grows on demand and is reused otherwise.
class Scratch {
 public:
  explicit Scratch(Backend& backend) : backend_(&backend) {}

  BackendView<float, 2> matrix(std::size_t rows, std::size_t columns) {
    auto* data = static_cast<float*>(reserve(rows * columns * sizeof(float)));
    return {std::span<float>(data, rows * columns), {rows, columns}};
  }
  BackendView<float, 4> states(std::array<std::size_t, 4> shape) {
    const std::size_t size = shape[0] * shape[1] * shape[2] * shape[3];
    auto* data = static_cast<float*>(reserve(size * sizeof(float)));
    return {std::span<float>(data, size), shape};
  }
  Operand operand(std::size_t rows, std::size_t columns) {
    return {reserve(operand_bytes(*backend_, rows, columns)), rows, columns};
  }

 private:
  void* reserve(std::size_t bytes) {
    if (memory_.bytes() < bytes) {
      memory_ = {};  // released first: the old and the new buffer need not fit at the same time
      memory_ = BackendTensor<std::byte, 1>(*backend_, {bytes});
    }
    return memory_.view().data();
  }
  Backend* backend_;
  BackendTensor<std::byte, 1> memory_;
};

}  // namespace kvs::inline model
