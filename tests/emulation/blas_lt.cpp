// SPDX-License-Identifier: Apache-2.0
// cuBLASLt over CBLAS. Its heuristic finds nothing for bf16 columns that are not aligned to 16 bytes, so that the path
// through cuBLAS also runs.
#include <cublasLt.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/emulation/blas.h"

namespace kvs::emulation {
namespace {

struct Layout {
  cudaDataType type;
  std::size_t rows, columns, stride;

  bool operator==(const Layout&) const = default;
};

struct Operation {
  bool transpose_a = false, transpose_b = false, has_bias = false;
  const void* bias = nullptr;
  int bias_type = -1;  // as D
};

struct Preference {
  std::uint32_t a = 256, b = 256, c = 256, d = 256;  // alignments
};

/// The shape and types that a plan was made for.
struct Algorithm {
  Layout a, b, d;
  Preference alignment;
};

template <class To, class From>
const To& as(const From* handle) {
  return *reinterpret_cast<const To*>(handle);
}

bool aligned(const void* address, std::uint32_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

template <class T>
T read(const void* from, std::size_t bytes) {
  if (bytes != sizeof(T)) fail("an attribute of a product with a wrong size");
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// All proposals of the heuristic.
std::vector<std::unique_ptr<Algorithm>>& proposed() {
  static std::vector<std::unique_ptr<Algorithm>> algorithms;
  return algorithms;
}

DeviceMatrix matrix(const void* data, const Layout& layout) {
  return {data, layout.type, layout.rows, layout.columns, layout.stride};
}

}  // namespace
}  // namespace kvs::emulation

using namespace kvs::emulation;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new char);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<char*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t stride) {
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, static_cast<std::size_t>(stride)});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete reinterpret_cast<const Layout*>(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation, cublasComputeType_t compute,
                                        cudaDataType scale) {
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) fail("a product with other sums than f32");
  *operation = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  delete reinterpret_cast<Operation*>(operation);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t name,
                                              const void* value, std::size_t bytes) {
  auto& operation = *reinterpret_cast<Operation*>(handle);
  if (name == CUBLASLT_MATMUL_DESC_TRANSA) {
    operation.transpose_a = read<cublasOperation_t>(value, bytes) == CUBLAS_OP_T;
  } else if (name == CUBLASLT_MATMUL_DESC_TRANSB) {
    operation.transpose_b = read<cublasOperation_t>(value, bytes) == CUBLAS_OP_T;
  } else if (name == CUBLASLT_MATMUL_DESC_BIAS_POINTER) {
    operation.bias = read<const void*>(value, bytes);
  } else if (name == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE) {
    operation.bias_type = read<std::int32_t>(value, bytes);
  } else if (name == CUBLASLT_MATMUL_DESC_EPILOGUE) {
    const auto epilogue = read<cublasLtEpilogue_t>(value, bytes);
    if (epilogue != CUBLASLT_EPILOGUE_DEFAULT && epilogue != CUBLASLT_EPILOGUE_BIAS) fail("an epilogue but the bias");
    operation.has_bias = epilogue == CUBLASLT_EPILOGUE_BIAS;
  } else {
    fail("an attribute of a product that is not emulated");
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<Preference*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t name, const void* value,
                                                    std::size_t bytes) {
  auto& preference = *reinterpret_cast<Preference*>(handle);
  switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      (void)read<std::uint64_t>(value, bytes);
      break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      preference.a = read<std::uint32_t>(value, bytes);
      break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      preference.b = read<std::uint32_t>(value, bytes);
      break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      preference.c = read<std::uint32_t>(value, bytes);
      break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      preference.d = read<std::uint32_t>(value, bytes);
      break;
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      (void)read<std::uint32_t>(value, bytes);
      break;
    default:
      fail("a preference that is not emulated");
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                              cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t* results, int* count) {
  const Layout &left = as<Layout>(a), &right = as<Layout>(b), &out = as<Layout>(d);
  if (as<Layout>(c) != out) fail("a product whose C and D differ");
  *count = 0;
  const auto fits = [](const Layout& layout) { return layout.type != CUDA_R_16BF || layout.stride % 8 == 0; };
  if (!fits(left) || !fits(right) || !fits(out)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const std::lock_guard lock(device_mutex());
  proposed().push_back(std::make_unique<Algorithm>(Algorithm{left, right, out, as<Preference>(preference)}));
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].algo = {};
  results[0].algo.data[0] = reinterpret_cast<std::uintptr_t>(proposed().back().get());
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result) {
  const std::lock_guard lock(device_mutex());
  const auto known = std::ranges::find(proposed(), algorithm->data[0], [](const std::unique_ptr<Algorithm>& one) {
    return reinterpret_cast<std::uintptr_t>(one.get());
  });
  result->workspaceSize = 0;
  const bool fits = known != proposed().end() && (*known)->a == as<Layout>(a) && (*known)->b == as<Layout>(b) &&
                    (*known)->d == as<Layout>(d);
  return fits ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  const auto& operation = as<Operation>(desc);
  const Layout &left = as<Layout>(a_layout), &right = as<Layout>(b_layout), &out = as<Layout>(d_layout);
  const auto& plan = *reinterpret_cast<const Algorithm*>(algorithm->data[0]);
  if (plan.a != left || plan.b != right || plan.d != out) fail("an algorithm that was chosen for other shapes");
  if (c != d) fail("a product that is not added in place");
  if (!aligned(a, plan.alignment.a) || !aligned(b, plan.alignment.b) || !aligned(d, plan.alignment.d))
    fail("a product of addresses that are aligned less than was promised");
  check_device_memory(workspace, workspace_bytes, "the workspace of a product");
  if (operation.has_bias && operation.bias == nullptr) fail("no bias for an epilogue that adds one");
  const cudaDataType bias_type = operation.bias_type < 0 ? out.type : static_cast<cudaDataType>(operation.bias_type);
  const Product product{operation.transpose_a,
                        operation.transpose_b,
                        matrix(a, left),
                        matrix(b, right),
                        matrix(d, out),
                        *static_cast<const float*>(alpha),
                        *static_cast<const float*>(beta),
                        {operation.has_bias ? operation.bias : nullptr, bias_type, out.rows, 1, out.rows}};
  check_product(product);
  enqueue(stream, [=] { multiply(product); });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
