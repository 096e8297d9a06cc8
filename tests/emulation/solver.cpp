// SPDX-License-Identifier: Apache-2.0
// cuSOLVER over LAPACK.
#include <cusolverDn.h>
#include <lapacke.h>

#include <algorithm>
#include <vector>

#include "tests/emulation/blas.h"

struct cusolverDnContext {
  cudaStream_t stream = nullptr;
};

using namespace kvs::emulation;

namespace {

// LAPACKE has its own work areas; the caller only has to pass these sizes back.
int svd_work(int m, int n) { return 64 * (m + n); }
int eigen_work(int n) { return 1 + 6 * n + 2 * n * n; }
constexpr int kCholeskyWork = 1;

void check_work(const double* work, int given, int needed, const int* info) {
  if (given < needed) fail("less work space than was asked for");
  check_device_memory(work, static_cast<std::size_t>(given) * sizeof(double), "the work space of cuSOLVER");
  check_device_memory(info, sizeof(int), "info of cuSOLVER");
}

char triangle(cublasFillMode_t mode) { return mode == CUBLAS_FILL_MODE_LOWER ? 'L' : 'U'; }

}  // namespace

extern "C" {

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
  *handle = new cusolverDnContext;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
  delete handle;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnDgesvd_bufferSize(cusolverDnHandle_t, int m, int n, int* work) {
  *work = svd_work(m, n);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDgesvd(cusolverDnHandle_t handle, signed char job_u, signed char job_vt, int m, int n,
                                  double* a, int lda, double* s, double* u, int ldu, double* vt, int ldvt, double* work,
                                  int work_size, double*, int* info) {
  if (m < n) fail("gesvd of fewer rows than columns");
  if ((job_u != 'S' && job_u != 'N') || job_u != job_vt) fail("gesvd with other jobs than S and N");
  check_matrix(a, m, n, lda, "A of gesvd");
  check_matrix(s, std::min(m, n), 1, n, "S of gesvd");
  if (job_u == 'S') check_matrix(u, m, n, ldu, "U of gesvd");
  if (job_vt == 'S') check_matrix(vt, n, n, ldvt, "VT of gesvd");
  check_work(work, work_size, svd_work(m, n), info);
  enqueue(handle->stream, [=] {
    std::vector<double> unconverged(static_cast<std::size_t>(n));
    *info = LAPACKE_dgesvd(LAPACK_COL_MAJOR, static_cast<char>(job_u), static_cast<char>(job_vt), m, n, a, lda, s, u,
                           ldu, vt, ldvt, unconverged.data());
  });
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnDpotrf_bufferSize(cusolverDnHandle_t, cublasFillMode_t, int, double*, int, int* work) {
  *work = kCholeskyWork;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDpotrf(cusolverDnHandle_t handle, cublasFillMode_t mode, int n, double* a, int lda,
                                  double* work, int work_size, int* info) {
  check_matrix(a, n, n, lda, "A of potrf");
  check_work(work, work_size, kCholeskyWork, info);
  enqueue(handle->stream, [=] { *info = LAPACKE_dpotrf(LAPACK_COL_MAJOR, triangle(mode), n, a, lda); });
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnDsyevd_bufferSize(cusolverDnHandle_t, cusolverEigMode_t, cublasFillMode_t, int n,
                                             const double*, int, const double*, int* work) {
  *work = eigen_work(n);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDsyevd(cusolverDnHandle_t handle, cusolverEigMode_t job, cublasFillMode_t mode, int n,
                                  double* a, int lda, double* values, double* work, int work_size, int* info) {
  check_matrix(a, n, n, lda, "A of syevd");
  check_matrix(values, n, 1, n, "W of syevd");
  check_work(work, work_size, eigen_work(n), info);
  enqueue(handle->stream, [=] {
    *info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, job == CUSOLVER_EIG_MODE_VECTOR ? 'V' : 'N', triangle(mode), n, a, lda,
                           values);
  });
  return CUSOLVER_STATUS_SUCCESS;
}

}  // extern "C"
