// SPDX-License-Identifier: Apache-2.0
// cuBLAS over CBLAS.
#include "tests/emulation/blas.h"

#include <cblas.h>
#include <cublas_v2.h>

#include <cstring>
#include <string>

#include "core/dtype.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
};

namespace kvs::emulation {
namespace {

std::vector<float> widened(const DeviceMatrix& matrix) {
  std::vector<float> values(matrix.rows * matrix.columns);
  for (std::size_t column = 0; column < matrix.columns; ++column) {
    for (std::size_t row = 0; row < matrix.rows; ++row) {
      const std::size_t from = column * matrix.stride + row, to = column * matrix.rows + row;
      values[to] = matrix.type == CUDA_R_32F ? static_cast<const float*>(matrix.data)[from]
                                             : bf16_to_f32(static_cast<const std::uint16_t*>(matrix.data)[from]);
    }
  }
  return values;
}

void store(const std::vector<float>& values, const DeviceMatrix& matrix) {
  for (std::size_t column = 0; column < matrix.columns; ++column) {
    for (std::size_t row = 0; row < matrix.rows; ++row) {
      const std::size_t from = column * matrix.rows + row, to = column * matrix.stride + row;
      if (matrix.type == CUDA_R_32F)
        static_cast<float*>(const_cast<void*>(matrix.data))[to] = values[from];
      else
        static_cast<std::uint16_t*>(const_cast<void*>(matrix.data))[to] = f32_to_bf16(values[from]);
    }
  }
}

CBLAS_TRANSPOSE transposition(cublasOperation_t operation) {
  if (operation != CUBLAS_OP_N && operation != CUBLAS_OP_T) fail("a conjugate of a real matrix");
  return operation == CUBLAS_OP_N ? CblasNoTrans : CblasTrans;
}
CBLAS_UPLO triangle(cublasFillMode_t mode) { return mode == CUBLAS_FILL_MODE_LOWER ? CblasLower : CblasUpper; }

void check_left_upper(cublasSideMode_t side, cublasFillMode_t mode, cublasDiagType_t diagonal) {
  if (side != CUBLAS_SIDE_LEFT || mode != CUBLAS_FILL_MODE_UPPER || diagonal != CUBLAS_DIAG_NON_UNIT)
    fail("a triangular product other than of an upper matrix on the left");
}

}  // namespace

std::size_t size_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_32F:
      return 4;
    case CUDA_R_64F:
      return 8;
    default:
      fail("a matrix of another type than bf16, f32 and f64");
  }
}

void check_matrix(const DeviceMatrix& matrix, const char* what) {
  if (matrix.stride < matrix.rows || matrix.stride == 0)
    fail(std::string(what) + ": a leading dimension below the rows");
  if (matrix.rows == 0 || matrix.columns == 0) return;
  const std::size_t values = (matrix.columns - 1) * matrix.stride + matrix.rows;
  check_device_memory(matrix.data, values * size_of(matrix.type), what);
}

void check_product(const Product& p) {
  const std::size_t inner = p.transpose_a ? p.a.rows : p.a.columns;
  const bool shapes = (p.transpose_a ? p.a.columns : p.a.rows) == p.d.rows &&
                      (p.transpose_b ? p.b.rows : p.b.columns) == p.d.columns &&
                      (p.transpose_b ? p.b.columns : p.b.rows) == inner;
  if (!shapes) fail("a product of matrices that do not fit together");
  const bool types = (p.a.type == CUDA_R_32F || p.a.type == CUDA_R_16BF) && p.b.type == p.a.type &&
                     (p.d.type == CUDA_R_32F || p.d.type == p.a.type);
  if (!types) fail("a product of types that cuBLAS does not multiply");
  check_matrix(p.a, "A of a product");
  check_matrix(p.b, "B of a product");
  check_matrix(p.d, "D of a product");
  if (p.bias.data != nullptr) check_matrix(p.bias, "the bias of a product");
}

void multiply(const Product& p) {
  const std::size_t inner = p.transpose_a ? p.a.rows : p.a.columns;
  const std::vector<float> a = widened(p.a), b = widened(p.b);
  std::vector<float> d = p.beta != 0 ? widened(p.d) : std::vector<float>(p.d.rows * p.d.columns);
  cblas_sgemm(CblasColMajor, p.transpose_a ? CblasTrans : CblasNoTrans, p.transpose_b ? CblasTrans : CblasNoTrans,
              static_cast<int>(p.d.rows), static_cast<int>(p.d.columns), static_cast<int>(inner), p.alpha, a.data(),
              static_cast<int>(p.a.rows), b.data(), static_cast<int>(p.b.rows), p.beta, d.data(),
              static_cast<int>(p.d.rows));
  if (p.bias.data != nullptr) {
    const std::vector<float> bias = widened(p.bias);
    for (std::size_t i = 0; i < d.size(); ++i) d[i] += bias[i % bias.size()];
  }
  store(d, p.d);
}

}  // namespace kvs::emulation

using namespace kvs::emulation;

extern "C" {

const char* cublasGetStatusString(cublasStatus_t) { return "an emulated status"; }
cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t mode) {
  if (mode != CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) fail("a math mode that may round operands or sums");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                            const void* alpha, const void* a, cudaDataType a_type, int lda, const void* b,
                            cudaDataType b_type, int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t) {
  if (compute != CUBLAS_COMPUTE_32F) fail("a product with other sums than f32");
  const auto shaped = [](const void* data, cudaDataType type, int rows, int columns, int stride) {
    return DeviceMatrix{data, type, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns),
                        static_cast<std::size_t>(stride)};
  };
  const bool at = transposition(ta) == CblasTrans, bt = transposition(tb) == CblasTrans;
  const Product product{at,
                        bt,
                        shaped(a, a_type, at ? k : m, at ? m : k, lda),
                        shaped(b, b_type, bt ? n : k, bt ? k : n, ldb),
                        shaped(c, c_type, m, n, ldc),
                        *static_cast<const float*>(alpha),
                        *static_cast<const float*>(beta),
                        {}};
  check_product(product);
  enqueue(handle->stream, [=] { multiply(product); });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSger(cublasHandle_t handle, int m, int n, const float* alpha, const float* x, int x_step,
                          const float* y, int y_step, float* a, int lda) {
  if (x_step != 1 || y_step != 1) fail("a vector with gaps");
  check_matrix({a, CUDA_R_32F, static_cast<std::size_t>(m), static_cast<std::size_t>(n), static_cast<std::size_t>(lda)},
               "cublasSger");
  check_device_memory(x, static_cast<std::size_t>(m) * sizeof(float), "x of cublasSger");
  check_device_memory(y, static_cast<std::size_t>(n) * sizeof(float), "y of cublasSger");
  enqueue(handle->stream, [=, factor = *alpha] { cblas_sger(CblasColMajor, m, n, factor, x, 1, y, 1, a, lda); });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                           const double* alpha, const double* a, int lda, const double* b, int ldb, const double* beta,
                           double* c, int ldc) {
  return cublasDgemmStridedBatched(handle, ta, tb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);
}

cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m,
                                         int n, int k, const double* alpha, const double* a, int lda, long long a_step,
                                         const double* b, int ldb, long long b_step, const double* beta, double* c,
                                         int ldc, long long c_step, int count) {
  const CBLAS_TRANSPOSE at = transposition(ta), bt = transposition(tb);
  for (const int i : {0, count - 1}) {
    check_matrix(a + i * a_step, at == CblasTrans ? k : m, at == CblasTrans ? m : k, lda, "A of cublasDgemm");
    check_matrix(b + i * b_step, bt == CblasTrans ? n : k, bt == CblasTrans ? k : n, ldb, "B of cublasDgemm");
    check_matrix(c + i * c_step, m, n, ldc, "C of cublasDgemm");
  }
  enqueue(handle->stream, [=, one = *alpha, two = *beta] {
    for (int i = 0; i < count; ++i)
      cblas_dgemm(CblasColMajor, at, bt, m, n, k, one, a + i * a_step, lda, b + i * b_step, ldb, two, c + i * c_step,
                  ldc);
  });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDsyrk(cublasHandle_t handle, cublasFillMode_t mode, cublasOperation_t t, int n, int k,
                           const double* alpha, const double* a, int lda, const double* beta, double* c, int ldc) {
  const bool turned = transposition(t) == CblasTrans;
  check_matrix(a, turned ? k : n, turned ? n : k, lda, "A of cublasDsyrk");
  check_matrix(c, n, n, ldc, "C of cublasDsyrk");
  enqueue(handle->stream, [=, one = *alpha, two = *beta] {
    cblas_dsyrk(CblasColMajor, triangle(mode), transposition(t), n, k, one, a, lda, two, c, ldc);
  });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDgeam(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t, int m, int n,
                           const double* alpha, const double* a, int lda, const double* beta, const double*, int,
                           double* c, int ldc) {
  if (ta != CUBLAS_OP_T || *alpha != 1 || *beta != 0) fail("a sum of matrices other than a transposition");
  check_matrix(a, n, m, lda, "A of cublasDgeam");
  check_matrix(c, m, n, ldc, "C of cublasDgeam");
  enqueue(handle->stream, [=] { cblas_domatcopy(CblasColMajor, CblasTrans, n, m, 1.0, a, lda, c, ldc); });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDtrmm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t mode, cublasOperation_t t,
                           cublasDiagType_t diagonal, int m, int n, const double* alpha, const double* a, int lda,
                           const double* b, int ldb, double* c, int ldc) {
  check_left_upper(side, mode, diagonal);
  if (b != c || ldb != ldc) fail("a triangular product that is not in place");
  check_matrix(a, m, m, lda, "A of cublasDtrmm");
  check_matrix(c, m, n, ldc, "C of cublasDtrmm");
  enqueue(handle->stream, [=, factor = *alpha] {
    cblas_dtrmm(CblasColMajor, CblasLeft, CblasUpper, transposition(t), CblasNonUnit, m, n, factor, a, lda, c, ldc);
  });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDtrsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t mode, cublasOperation_t t,
                           cublasDiagType_t diagonal, int m, int n, const double* alpha, const double* a, int lda,
                           double* b, int ldb) {
  check_left_upper(side, mode, diagonal);
  check_matrix(a, m, m, lda, "A of cublasDtrsm");
  check_matrix(b, m, n, ldb, "B of cublasDtrsm");
  enqueue(handle->stream, [=, factor = *alpha] {
    cblas_dtrsm(CblasColMajor, CblasLeft, CblasUpper, transposition(t), CblasNonUnit, m, n, factor, a, lda, b, ldb);
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
