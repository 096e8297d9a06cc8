// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cblas.h>
#include <lapacke.h>

#include <string>

namespace kvs::cpu {

/// The OpenBLAS and LAPACKE routines in use.
struct LapackLibrary {
  decltype(&cblas_dgemm) dgemm;
  decltype(&cblas_dsyrk) dsyrk;
  decltype(&cblas_dtrmm) dtrmm;
  decltype(&cblas_dtrsm) dtrsm;
  decltype(&LAPACKE_dgesdd) dgesdd;
  decltype(&LAPACKE_dormtr) dormtr;
  decltype(&LAPACKE_dpotrf) dpotrf;
  decltype(&LAPACKE_dstedc) dstedc;
  decltype(&LAPACKE_dsterf) dsterf;
  decltype(&LAPACKE_dsytrd) dsytrd;

  char* (*openblas_config)();
  char* (*openblas_corename)();
  /// Returns the version, the build configuration and the target processor of the kernels.
  std::string config() const { return std::string(openblas_config()) + ", " + openblas_corename(); }
};

/// Loads the libraries at the first call, not at program start. OpenBLAS reserves 128 MiB of address space per thread,
/// and if a limit leaves less, it retries forever (0.3.21). So lapack() first checks that there is room for as many
/// threads as parallel regions have.
/// @throws Error kEnvironment if there is no room or a library is missing.
const LapackLibrary& lapack();

}  // namespace kvs::cpu
