// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/values.cuh"
#include "kernels/cuda/weight.h"

namespace kvs::cuda {

const CudaWeight& checked_weight(const Weight& weight, std::size_t columns, DType type) {
  const auto* own = dynamic_cast<const CudaWeight*>(&weight);
  require(own != nullptr, "weight", "one that this backend made");
  require(own->type() == type, "weight", std::string(name_of(type)));
  require(own->columns() == columns, "weight", std::to_string(own->columns()) + " columns of x");
  return *own;
}

namespace {

/// One block per row of out.
template <int N, class T>
__global__ void gather_rows(const T* table, const std::int32_t* rows, std::size_t columns, float scale, float* out) {
  const T* const from = table + static_cast<std::size_t>(rows[blockIdx.x]) * columns;
  float* const to = out + std::size_t{blockIdx.x} * columns;
  for (std::size_t column = threadIdx.x * N; column < columns; column += kThreads * N) {
    Values<N> values = load<N>(from + column);
#pragma unroll
    for (int n = 0; n < N; ++n) values.at[n] *= scale;
    store(to + column, values);
  }
}

}  // namespace

}  // namespace kvs::cuda

namespace kvs::inline kernels {

std::unique_ptr<Weight> CudaBackend::make_weight(const WeightSource& source) {
  constexpr std::size_t kSlabValues = std::size_t{1} << 24;  // 64 MiB of f32 at a time on host and device
  cuda::require(source.rows > 0 && source.columns > 0, "make_weight", "rows and columns");
  cuda::require(source.bias.empty() || source.bias.size() == source.rows, "make_weight", "one bias per row");
  const DType type = source.f32 ? DType::kF32 : type_;
  const std::size_t item = item_size(type), columns = source.columns;
  cuda::DeviceArray<std::byte> values(context_, source.rows * columns * item);
  const std::size_t slab_rows = std::clamp<std::size_t>(kSlabValues / columns, 1, source.rows);
  std::vector<float> slab(slab_rows * columns);
  cuda::DeviceArray<float> wide(context_, type == DType::kBF16 ? slab.size() : 0);
  for (std::size_t first = 0; first < source.rows; first += slab_rows) {
    const std::size_t rows = std::min(slab_rows, source.rows - first), count = rows * columns;
    source.read(first, rows, std::span(slab).first(count));
    std::byte* const to = values.data() + first * columns * item;
    if (type == DType::kF32) {
      context_.upload(to, slab.data(), count * sizeof(float));
      continue;
    }
    context_.upload(wide.data(), slab.data(), count * sizeof(float));
    cuda::convert(context_.stream(), wide.data(), count, reinterpret_cast<__nv_bfloat16*>(to));
  }
  cuda::DeviceArray<float> bias;
  if (!source.bias.empty()) bias = cuda::DeviceArray<float>(context_, source.bias);
  return std::make_unique<cuda::CudaWeight>(type, source.rows, columns, std::move(values), std::move(bias));
}

void CudaBackend::linear(Operand x, const Weight& weight, BackendView<float, 2> out, bool accumulate) {
  const cuda::CudaWeight& own = cuda::checked_weight(weight, x.columns, type_);
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

void CudaBackend::linear_f32(BackendView<const float, 2> x, const Weight& weight, BackendView<float, 2> out,
                             bool accumulate) {
  const cuda::CudaWeight& own = cuda::checked_weight(weight, x.extent(1), DType::kF32);
  cuda::require(out.extent(0) == x.extent(0) && out.extent(1) == own.rows(), "linear_f32",
                "out of [x.rows, weight rows]");
  if (type_ != DType::kF32 && f32_gemm_ == nullptr)
    f32_gemm_ = std::make_unique<cuda::GemmEngine>(context_, DType::kF32, "");
  cuda::GemmEngine& gemm = type_ == DType::kF32 ? gemm_ : *f32_gemm_;
  gemm.run({.x = x.data(),
            .w = own.rows_from(0),
            .bias = own.bias_from(0),
            .y = out.data(),
            .rows = x.extent(0),
            .columns = own.rows(),
            .inner = x.extent(1),
            .accumulate = accumulate});
}

std::vector<CudaGemmTrial> CudaBackend::gemm_trials(Operand x, const Weight& weight, DType y_type) {
  const cuda::CudaWeight& own = cuda::checked_weight(weight, x.columns, type_);
  const cuda::DeviceArray<std::byte> y(context_, x.rows * own.rows() * item_size(y_type));
  return gemm_.trials({.x = x.data,
                       .w = own.rows_from(0),
                       .bias = own.bias_from(0),
                       .y = y.data(),
                       .rows = x.rows,
                       .columns = own.rows(),
                       .inner = x.columns,
                       .y_type = y_type});
}

void CudaBackend::gather(Operand table, std::span<const std::int32_t> rows, float scale, BackendView<float, 2> out) {
  cuda::require(out.extent(0) == rows.size() && out.extent(1) == table.columns, "gather",
                "out of [row, table.columns]");
  const auto in_table = [&](std::int32_t row) { return row >= 0 && static_cast<std::size_t>(row) < table.rows; };
  cuda::require(std::ranges::all_of(rows, in_table), "gather", "rows of the table");
  cuda::require(rows.size() < 0x80000000, "gather", "fewer than 2^31 rows");
  if (out.empty()) return;
  const cuda::DeviceArray<std::int32_t> device_rows(context_, rows);
  cuda::with_type(type_, [&]<class T>(T) {
    const auto* from = static_cast<const T*>(table.data);
    cuda::with_values<4>(
        table.columns,
        [&](auto n) {
          cuda::launch_kernel("gather_rows", cuda::gather_rows<n(), T>, {static_cast<unsigned>(rows.size())},
                              context_.stream(), from, device_rows.data(), table.columns, scale, out.data());
        },
        from, out.data());
  });
}

void CudaBackend::narrow(BackendView<const float, 2> x, Operand out) {
  cuda::require(x.extent(0) == out.rows && x.extent(1) == out.columns, "narrow", "out of x's shape");
  if (type_ == DType::kF32) return context_.copy(out.data, x.data(), x.size() * sizeof(float));
  cuda::convert(context_.stream(), x.data(), x.size(), static_cast<__nv_bfloat16*>(out.data));
}

}  // namespace kvs::inline kernels
