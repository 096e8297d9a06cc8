#include "kernels/cuda/gemm.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/linear_algebra.h"

namespace kvs::cuda {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // what cuBLAS itself takes on Hopper
constexpr std::size_t kMostPlans = 4096;
constexpr int kCandidates = 8;  // algorithms asked for: the first need not be one that this device can run

cudaDataType_t cuda_type(DType type) { return type == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F; }

/// The largest power of two, up to 256, that divides an address.
std::size_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address) | 256;
  return bits & (~bits + 1);
}

template <auto Destroy>
struct Destroyer {
  template <class T>
  void operator()(T* handle) const noexcept {
    (void)Destroy(handle);
  }
};
template <class T, auto Destroy>
using Handle = std::unique_ptr<std::remove_pointer_t<T>, Destroyer<Destroy>>;
using Layout = Handle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Operation = Handle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Preference = Handle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

/// A column-major matrix without padding between its columns.
Layout make_layout(cudaDataType_t type, std::size_t rows, std::size_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  check_cublas(cublasLtMatrixLayoutCreate(&layout, type, rows, columns, static_cast<std::int64_t>(rows)),
               "cublasLtMatrixLayoutCreate");
  return Layout(layout);
}

template <class T>
void set(const Operation& operation, cublasLtMatmulDescAttributes_t name, const T& value) {
  check_cublas(cublasLtMatmulDescSetAttribute(operation.get(), name, &value, sizeof value),
               "cublasLtMatmulDescSetAttribute");
}

Operation make_operation(bool bias) {
  cublasLtMatmulDesc_t handle = nullptr;
  check_cublas(cublasLtMatmulDescCreate(&handle, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  Operation operation(handle);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  if (bias) set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  return operation;
}

Preference make_preference(const GemmArguments& arguments) {
  cublasLtMatmulPreference_t handle = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&handle), "cublasLtMatmulPreferenceCreate");
  Preference preference(handle);
  const auto put = [&](cublasLtMatmulPreferenceAttributes_t name, auto value) {
    check_cublas(cublasLtMatmulPreferenceSetAttribute(preference.get(), name, &value, sizeof value),
                 "cublasLtMatmulPreferenceSetAttribute");
  };
  put(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
  // Where the inner extent is split, the parts' sums stay in f32 even if y does not.
  if (arguments.y_type != DType::kF32)
    put(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  put(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(alignment_of(arguments.w)));
  put(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(alignment_of(arguments.x)));
  put(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(alignment_of(arguments.y)));
  put(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(alignment_of(arguments.y)));
  return preference;
}

}  // namespace

/// cuBLASLt's matrices are column-major, so row-major y = x Wᵀ is asked for as yᵀ = (Wᵀ)ᵀ xᵀ: A = Wᵀ [inner, columns]
/// transposed, B = xᵀ [inner, rows], D = yᵀ [columns, rows]. The bias runs along D's rows, as cuBLASLt wants it.
struct GemmEngine::Plan {
  Operation operation;
  Layout a, b, d;
  bool found = false;  // an algorithm
  cublasLtMatmulAlgo_t algorithm;
};

GemmEngine::GemmEngine(const Context& context, DType type)
    : context_(context), type_(type), workspace_(context, kWorkspaceBytes) {}
GemmEngine::~GemmEngine() = default;

const GemmEngine::Plan& GemmEngine::plan(const GemmArguments& in) {
  if (plans_.size() > kMostPlans) plans_.clear();
  const Key key{
      in.rows,  in.columns, in.inner, alignment_of(in.x), alignment_of(in.w), alignment_of(in.y), in.bias != nullptr,
      in.y_type};
  const auto found = plans_.find(key);
  if (found != plans_.end()) return *found->second;
  const cudaDataType_t type = cuda_type(type_);
  auto fresh = std::make_unique<Plan>(Plan{make_operation(in.bias != nullptr),
                                           make_layout(type, in.inner, in.columns),
                                           make_layout(type, in.inner, in.rows),
                                           make_layout(cuda_type(in.y_type), in.columns, in.rows),
                                           false,
                                           {}});
  if (in.bias != nullptr) set(fresh->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, in.bias);
  const Preference preference = make_preference(in);
  cublasLtMatmulHeuristicResult_t candidates[kCandidates] = {};
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(context_.blas_lt(), fresh->operation.get(), fresh->a.get(), fresh->b.get(),
                                     fresh->d.get(), fresh->d.get(), preference.get(), kCandidates, candidates, &count);
  const std::span proposed(candidates, status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(count) : 0);
  const auto first = std::ranges::find(proposed, CUBLAS_STATUS_SUCCESS, &cublasLtMatmulHeuristicResult_t::state);
  fresh->found = first != proposed.end();
  if (fresh->found) fresh->algorithm = first->algo;
  return *plans_.emplace(key, std::move(fresh)).first->second;
}

void GemmEngine::run(const GemmArguments& in) {
  if (in.rows == 0 || in.columns == 0) return;
  require(in.inner > 0, "a product", "inner channels");
  require(in.y_type == DType::kF32 || (in.y_type == type_ && in.bias == nullptr), "a product",
          "y in f32, or in the operands' type without a bias");
  const Plan& chosen = plan(in);
  if (!chosen.found) return run_unplanned(in);
  if (in.bias != nullptr) set(chosen.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, in.bias);
  const float one = 1, beta = in.accumulate ? 1 : 0;
  check_cublas(cublasLtMatmul(context_.blas_lt(), chosen.operation.get(), &one, in.w, chosen.a.get(), in.x,
                              chosen.b.get(), &beta, in.y, chosen.d.get(), in.y, chosen.d.get(), &chosen.algorithm,
                              workspace_.data(), kWorkspaceBytes, context_.stream()),
               "cublasLtMatmul");
}

/// cuBLAS takes any alignment. The bias is a product of its own: ones [rows, 1] times the bias.
void GemmEngine::run_unplanned(const GemmArguments& in) const {
  const cudaDataType_t type = cuda_type(type_);
  const int rows = to_int(in.rows), columns = to_int(in.columns), inner = to_int(in.inner);
  const float one = 1, beta = in.accumulate ? 1 : 0;
  check_cublas(
      cublasGemmEx(context_.blas(), CUBLAS_OP_T, CUBLAS_OP_N, columns, rows, inner, &one, in.w, type, inner, in.x, type,
                   inner, &beta, in.y, cuda_type(in.y_type), columns, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
      "cublasGemmEx");
  if (in.bias == nullptr) return;
  const std::vector<float> host(in.rows, 1.0F);
  const DeviceArray<float> ones(context_, std::span<const float>(host));
  check_cublas(
      cublasSger(context_.blas(), columns, rows, &one, in.bias, 1, ones.data(), 1, static_cast<float*>(in.y), columns),
      "cublasSger");
}

}  // namespace kvs::cuda
