// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <vector>

#include "core/error.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/device_array.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/linear_algebra.h"

namespace kvs::cuda {
namespace {

__device__ double as_double(float value) { return value; }
__device__ double as_double(__nv_bfloat16 value) { return __bfloat162float(value); }

template <class T>
__global__ void widen_to_double(const T* from, std::size_t count, double* to) {
  const std::size_t i = global_index();
  if (i < count) to[i] = as_double(from[i]);
}

}  // namespace

void accumulate_second_moment(const Context& context, Operand x, DType type, TensorView<double, 2> sum) {
  constexpr std::size_t kSlab = 2048;  // number of rows widened at once
  const std::size_t n = x.columns;
  if (sum.shape() != std::array{n, n}) throw Error(ErrorCode::kInternal, "second moment", "shapes do not fit");
  if (x.rows == 0 || n == 0) return;
  const DeviceArray<double> slab(context, std::min(kSlab, x.rows) * n), device_sum(context, n * n);
  context.clear(device_sum.data(), n * n * sizeof(double));
  for (std::size_t first = 0; first < x.rows; first += kSlab) {
    const std::size_t rows = std::min(kSlab, x.rows - first), count = rows * n;
    const auto widen = [&]<class T>(const T* from) {
      launch_kernel("widen_to_double", widen_to_double<T>, {blocks_for(count)}, context.stream(), from + first * n,
                    count, slab.data());
    };
    if (type == DType::kBF16)
      widen(static_cast<const __nv_bfloat16*>(x.data));
    else
      widen(static_cast<const float*>(x.data));
    const double one = 1;
    check_cublas(cublasDsyrk(context.blas(), CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, to_int(n), to_int(rows), &one,
                             slab.data(), to_int(n), &one, device_sum.data(), to_int(n)),
                 "cublasDsyrk");
  }
  const std::vector<double> added =
      device_sum.to_host();  // column-major lower triangle: element (row, column) at column · n + row
  for (std::size_t row = 0; row < n; ++row)
    for (std::size_t column = 0; column < n; ++column)
      sum(row, column) += added[std::min(row, column) * n + std::max(row, column)];
}

}  // namespace kvs::cuda
