// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/linear_algebra.h"
#include "kernels/cuda/stream_clock.h"

namespace kvs::cuda {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // the size that cuBLAS uses on Hopper
constexpr std::size_t kMaxPlans = 4096;
constexpr std::size_t kMaxAlignment = 256;  // alignment of allocated device memory
constexpr int kCandidates = 8;              // algorithms to request: this device may not run the first
constexpr int kTrials = 32;
constexpr std::size_t kSampleBytes = std::size_t{64} << 10;  // compared at the beginning and at the end of y

cudaDataType_t cuda_type(DType type) { return type == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F; }

/// Returns the largest power of two, up to kMaxAlignment, that divides an address.
std::size_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address) | kMaxAlignment;
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

/// Makes the layout of a column-major matrix without padding between columns.
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
  // If the inner extent is split, partial sums stay in f32 even if y does not.
  if (arguments.y_type != DType::kF32)
    put(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  put(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(alignment_of(arguments.w)));
  put(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(alignment_of(arguments.x)));
  put(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(alignment_of(arguments.y)));
  put(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(alignment_of(arguments.y)));
  return preference;
}

GemmPlace place_of(const Context& context) {
  return {
      cublasLtGetVersion(),
      10 * context.attribute(cudaDevAttrComputeCapabilityMajor) + context.attribute(cudaDevAttrComputeCapabilityMinor),
      context.attribute(cudaDevAttrMultiProcessorCount)};
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw Error(ErrorCode::kInput, path, "cannot be read, expected a table of products (KVS_GEMM_TABLE)");
  return text;
}

}  // namespace

/// cuBLASLt's matrices are column-major, so row-major y = x Wᵀ is requested as yᵀ = (Wᵀ)ᵀ xᵀ: A = Wᵀ [inner, columns]
/// transposed, B = xᵀ [inner, rows], D = yᵀ [columns, rows]. The bias runs along the rows of D, as cuBLASLt requires.
struct GemmEngine::Plan {
  Operation operation;
  Layout a, b, d;
  std::optional<cublasLtMatmulAlgo_t> algorithm = {};
  bool from_table = false;

  /// Returns cuBLASLt's proposals, best first by its heuristics.
  std::vector<cublasLtMatmulAlgo_t> proposals(cublasLtHandle_t handle, const GemmArguments& in, int most) const {
    const Preference preference = make_preference(in);
    std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(most));
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, operation.get(), a.get(), b.get(), d.get(),
                                                                 d.get(), preference.get(), most, found.data(), &count);
    found.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(count) : 0);
    std::vector<cublasLtMatmulAlgo_t> algorithms;
    for (const cublasLtMatmulHeuristicResult_t& proposal : found)
      if (proposal.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(proposal.algo);
    return algorithms;
  }
};

GemmEngine::GemmEngine(const Context& context, DType type, const std::string& table)
    : context_(context),
      type_(type),
      place_(place_of(context)),
      table_(table.empty() ? std::string(kMeasuredGemms) : text_of(table), table.empty() ? "gemm_table.h" : table,
             place_),
      workspace_(context, kWorkspaceBytes) {}
GemmEngine::~GemmEngine() = default;

GemmShape GemmEngine::shape_of(const GemmArguments& in) const {
  return {in.rows, in.columns, in.inner, type_, in.y_type, in.bias != nullptr};
}

std::unique_ptr<GemmEngine::Plan> GemmEngine::make_plan(const GemmArguments& in) const {
  const cudaDataType_t type = cuda_type(type_);
  auto plan = std::make_unique<Plan>(Plan{make_operation(in.bias != nullptr), make_layout(type, in.inner, in.columns),
                                          make_layout(type, in.inner, in.rows),
                                          make_layout(cuda_type(in.y_type), in.columns, in.rows)});
  if (in.bias != nullptr) set(plan->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, in.bias);
  return plan;
}

/// Tables are measured with operands that have the alignment of allocated device memory.
bool GemmEngine::take_from_table(const GemmArguments& in, Plan& plan) {
  const GemmAlgorithm* const entry = table_.find(shape_of(in));
  if (entry == nullptr || std::min({alignment_of(in.x), alignment_of(in.w), alignment_of(in.y)}) < kMaxAlignment)
    return false;
  const auto algorithm = std::bit_cast<cublasLtMatmulAlgo_t>(*entry);
  cublasLtMatmulHeuristicResult_t checked = {};
  const cublasStatus_t status = cublasLtMatmulAlgoCheck(context_.blas_lt(), plan.operation.get(), plan.a.get(),
                                                        plan.b.get(), plan.d.get(), plan.d.get(), &algorithm, &checked);
  plan.from_table = status == CUBLAS_STATUS_SUCCESS && checked.workspaceSize <= kWorkspaceBytes;
  if (plan.from_table)
    plan.algorithm = algorithm;
  else
    ++products_.refused;
  return plan.from_table;
}

void GemmEngine::take_proposal(const GemmArguments& in, Plan& plan) const {
  const auto proposals = plan.proposals(context_.blas_lt(), in, kCandidates);
  plan.from_table = false;
  plan.algorithm.reset();
  if (!proposals.empty()) plan.algorithm = proposals.front();
}

GemmEngine::Plan& GemmEngine::plan(const GemmArguments& in) {
  if (plans_.size() > kMaxPlans) plans_.clear();
  const Key key{shape_of(in), alignment_of(in.x), alignment_of(in.w), alignment_of(in.y)};
  const auto found = plans_.find(key);
  if (found != plans_.end()) return *found->second;
  std::unique_ptr<Plan> fresh = make_plan(in);
  if (!take_from_table(in, *fresh)) take_proposal(in, *fresh);
  return *plans_.emplace(key, std::move(fresh)).first->second;
}

cublasStatus_t GemmEngine::launch(const GemmArguments& in, const Plan& plan) const {
  if (in.bias != nullptr) set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, in.bias);
  const float one = 1, beta = in.accumulate ? 1 : 0;
  return cublasLtMatmul(context_.blas_lt(), plan.operation.get(), &one, in.w, plan.a.get(), in.x, plan.b.get(), &beta,
                        in.y, plan.d.get(), in.y, plan.d.get(), &*plan.algorithm, workspace_.data(), kWorkspaceBytes,
                        context_.stream());
}

void GemmEngine::run(const GemmArguments& in) {
  if (in.rows == 0 || in.columns == 0) return;
  require(in.inner > 0, "a product", "inner channels");
  require(in.y_type == DType::kF32 || (in.y_type == type_ && in.bias == nullptr), "a product",
          "y in f32, or in the operands' type without a bias");
  Plan& chosen = plan(in);
  ++products_.all;
  cublasStatus_t status = chosen.algorithm ? launch(in, chosen) : CUBLAS_STATUS_SUCCESS;
  if (status != CUBLAS_STATUS_SUCCESS && chosen.from_table) {
    ++products_.refused;
    take_proposal(in, chosen);
    if (chosen.algorithm) status = launch(in, chosen);
  }
  if (!chosen.algorithm) {
    if (products_.unplanned++ == 0) products_.first_unplanned = to_string(shape_of(in));
    return run_unplanned(in);
  }
  check_cublas(status, "cublasLtMatmul");
  if (chosen.from_table) ++products_.by_table;
}

/// cuBLAS accepts any alignment. The bias is a separate product: ones [rows, 1] times the bias.
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

std::vector<CudaGemmTrial> GemmEngine::trials(const GemmArguments& in) {
  constexpr int kInFlight = 8, kRepeats = 5;
  const std::size_t bytes = in.rows * in.columns * item_size(in.y_type), sample = std::min(bytes, kSampleBytes);
  std::vector<std::byte> expected;
  std::vector<CudaGemmTrial> trials;
  const std::unique_ptr<Plan> plan = make_plan(in);
  StreamClock clock(context_);
  for (const cublasLtMatmulAlgo_t& algorithm : plan->proposals(context_.blas_lt(), in, kTrials)) {
    plan->algorithm = algorithm;
    context_.clear(in.y, bytes);
    if (launch(in, *plan) != CUBLAS_STATUS_SUCCESS) continue;
    std::vector<std::byte> found(2 * sample);
    context_.download(found.data(), in.y, sample);
    context_.download(found.data() + sample, static_cast<const std::byte*>(in.y) + bytes - sample, sample);
    if (expected.empty()) expected = found;
    clock.mark();
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      for (int n = 0; n < kInFlight; ++n) check_cublas(launch(in, *plan), "cublasLtMatmul");
      clock.mark();
    }
    std::vector<double> times = clock.seconds();
    std::ranges::sort(times);
    trials.push_back({gemm_line(place_, shape_of(in), std::bit_cast<GemmAlgorithm>(algorithm)),
                      times[kRepeats / 2] / kInFlight, found == expected});
  }
  return trials;
}

}  // namespace kvs::cuda
