#pragma once

#include <cblas.h>
#include <lapacke.h>

#include <string>

namespace kvs::cpu {

/// The routines of OpenBLAS and LAPACKE that are called here.
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
  /// Its version, how it was built, and the processor that its kernels are for.
  std::string config() const { return std::string(openblas_config()) + ", " + openblas_corename(); }
};

/// Loads the libraries when the first routine is wanted, not when a program starts: OpenBLAS reserves 128 MiB of
/// address space for each thread, and where a limit leaves no room for them it tries again for ever (0.3.21). So room
/// for as many threads as parallel regions have is made sure of before.
/// @throws Error kEnvironment if there is no room, or a library is missing.
const LapackLibrary& lapack();

}  // namespace kvs::cpu
