// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>
#include <library_types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/emulation/grid.h"
#include "tests/emulation/streams.h"

namespace kvs::emulation {

/// A column-major matrix on the device.
struct DeviceMatrix {
  const void* data;
  cudaDataType type;
  std::size_t rows, columns, stride;
};

std::size_t size_of(cudaDataType type);
/// Faults unless the whole matrix is device memory and each column fits into the stride.
void check_matrix(const DeviceMatrix& matrix, const char* what);
inline void check_matrix(const double* data, std::size_t rows, std::size_t columns, int stride, const char* what) {
  check_matrix({data, CUDA_R_64F, rows, columns, static_cast<std::size_t>(stride)}, what);
}

/// f32 sums of f32 or bf16 operands.
struct Product {
  bool transpose_a, transpose_b;
  DeviceMatrix a, b, d;  // d: f32, or bf16 of bf16 operands
  float alpha, beta;
  DeviceMatrix bias;  // [rows of d, 1], or null data
};
/// Faults unless the shapes and types fit together.
void check_product(const Product& product);
void multiply(const Product& product);

}  // namespace kvs::emulation
