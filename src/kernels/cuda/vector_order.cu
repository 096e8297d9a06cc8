// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/linear_algebra.h"

namespace kvs::cuda {
namespace {

/// One thread per value of `out`.
template <bool kColumns>
__global__ void reverse_vectors(const double* ascending, const double* factor, std::size_t length, std::size_t rank,
                                double* out) {
  const std::size_t i = global_index();
  if (i >= length * rank) return;
  const std::size_t vector = kColumns ? i % rank : i / length, at = kColumns ? i / rank : i % length;
  const double value = ascending[(rank - 1 - vector) * length + at];
  out[i] = factor == nullptr ? value : value * factor[vector];
}

}  // namespace

std::vector<double> descending(const Context& context, const double* ascending, const double* factor,
                               std::size_t length, std::size_t rank, VectorsAs layout) {
  const DeviceArray<double> out(context, length * rank);
  const auto kernel = layout == VectorsAs::kColumns ? reverse_vectors<true> : reverse_vectors<false>;
  launch_kernel("reverse_vectors", kernel, {blocks_for(out.size())}, context.stream(), ascending, factor, length, rank,
                out.data());
  return out.to_host();
}

}  // namespace kvs::cuda
