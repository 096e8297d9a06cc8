#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/weight.h"

namespace kvs {
namespace cuda {

const CudaWeight& checked_weight(const Weight& weight, std::size_t columns) {
  const auto* own = dynamic_cast<const CudaWeight*>(&weight);
  require(own != nullptr, "weight", "one that this backend made");
  require(own->columns() == columns, "weight", std::to_string(own->columns()) + " columns of x");
  return *own;
}

namespace {

__global__ void narrow_values(const float* from, std::size_t count, __nv_bfloat16* to) {
  const std::size_t i = global_index();
  if (i < count) to[i] = __float2bfloat16_rn(from[i]);
}

__global__ void widen_values(const __nv_bfloat16* from, std::size_t count, float* to) {
  const std::size_t i = global_index();
  if (i < count) to[i] = __bfloat162float(from[i]);
}

}  // namespace
}  // namespace cuda

std::unique_ptr<Weight> CudaBackend::make_weight(const WeightSource& source) {
  constexpr std::size_t kSlabValues = std::size_t{1} << 24;  // 64 MiB of f32 on either side at a time
  cuda::require(source.rows > 0 && source.columns > 0, "make_weight", "rows and columns");
  cuda::require(source.bias.empty() || source.bias.size() == source.rows, "make_weight", "one bias per row");
  const std::size_t item = item_size(type_), columns = source.columns;
  cuda::DeviceArray<std::byte> values(context_, source.rows * columns * item);
  const std::size_t slab_rows = std::clamp<std::size_t>(kSlabValues / columns, 1, source.rows);
  std::vector<float> slab(slab_rows * columns);
  cuda::DeviceArray<float> wide(context_, type_ == DType::kBF16 ? slab.size() : 0);
  for (std::size_t first = 0; first < source.rows; first += slab_rows) {
    const std::size_t rows = std::min(slab_rows, source.rows - first), count = rows * columns;
    source.read(first, rows, std::span(slab).first(count));
    std::byte* const to = values.data() + first * columns * item;
    if (type_ == DType::kF32) {
      context_.upload(to, slab.data(), count * sizeof(float));
      continue;
    }
    context_.upload(wide.data(), slab.data(), count * sizeof(float));
    cuda::launch_kernel("narrow_values", cuda::narrow_values, {cuda::blocks_for(count)}, context_.stream(), wide.data(),
                        count, reinterpret_cast<__nv_bfloat16*>(to));
  }
  cuda::DeviceArray<float> bias;
  if (!source.bias.empty()) bias = cuda::DeviceArray<float>(context_, source.bias);
  return std::make_unique<cuda::CudaWeight>(source.rows, columns, item, std::move(values), std::move(bias));
}

void CudaBackend::linear(Operand x, const Weight& weight, BackendView<float, 2> out, bool accumulate) {
  const cuda::CudaWeight& own = cuda::checked_weight(weight, x.columns);
  cuda::require(out.extent(0) == x.rows && out.extent(1) == own.rows(), "linear", "out of [x.rows, weight rows]");
  gemm_.run({.x = x.data,
             .w = own.rows_from(0),
             .bias = own.bias_from(0),
             .y = out.data(),
             .rows = x.rows,
             .columns = own.rows(),
             .inner = x.columns,
             .accumulate = accumulate});
}

void CudaBackend::widen(Operand x, BackendView<float, 2> out) {
  cuda::require(out.extent(0) == x.rows && out.extent(1) == x.columns, "widen", "out of x's shape");
  const std::size_t count = out.size();
  if (type_ == DType::kF32) return context_.copy(out.data(), x.data, count * sizeof(float));
  if (count == 0) return;
  cuda::launch_kernel("widen_values", cuda::widen_values, {cuda::blocks_for(count)}, context_.stream(),
                      static_cast<const __nv_bfloat16*>(x.data), count, out.data());
}

void CudaBackend::narrow(BackendView<const float, 2> x, Operand out) {
  cuda::require(x.extent(0) == out.rows && x.extent(1) == out.columns, "narrow", "out of x's shape");
  const std::size_t count = x.size();
  if (type_ == DType::kF32) return context_.copy(out.data, x.data(), count * sizeof(float));
  if (count == 0) return;
  cuda::launch_kernel("narrow_values", cuda::narrow_values, {cuda::blocks_for(count)}, context_.stream(), x.data(),
                      count, static_cast<__nv_bfloat16*>(out.data));
}

}  // namespace kvs
