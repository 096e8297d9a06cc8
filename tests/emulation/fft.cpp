// SPDX-License-Identifier: Apache-2.0
// cuFFT over PocketFFT: complex transforms of double precision along the first axis of [sample, signal].
#include <cufft.h>
#include <pocketfft_hdronly.h>

#include <complex>
#include <map>

#include "tests/emulation/grid.h"
#include "tests/emulation/streams.h"

namespace {

struct Plan {
  long long samples = 0, signals = 0;
  cudaStream_t stream = nullptr;
};

std::map<cufftHandle, Plan>& plans() {
  static std::map<cufftHandle, Plan> all;
  return all;
}

Plan& plan_of(cufftHandle handle) {
  const auto found = plans().find(handle);
  if (found == plans().end()) kvs::emulation::fail("an FFT plan that does not exist");
  return found->second;
}

}  // namespace

using namespace kvs::emulation;

extern "C" {

cufftResult cufftCreate(cufftHandle* handle) {
  const std::lock_guard lock(device_mutex());
  static cufftHandle next = 0;
  *handle = ++next;
  plans()[*handle] = {};
  return CUFFT_SUCCESS;
}
cufftResult cufftDestroy(cufftHandle handle) {
  const std::lock_guard lock(device_mutex());
  (void)plan_of(handle);
  plans().erase(handle);
  return CUFFT_SUCCESS;
}
cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  const std::lock_guard lock(device_mutex());
  plan_of(handle).stream = stream;
  return CUFFT_SUCCESS;
}

cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long* n, long long* in_sizes, long long in_stride,
                                long long in_distance, long long* out_sizes, long long out_stride,
                                long long out_distance, cufftType type, long long signals, std::size_t* work_bytes) {
  const bool known = rank == 1 && type == CUFFT_Z2Z && *in_sizes == *n && *out_sizes == *n && in_stride == signals &&
                     out_stride == signals && in_distance == 1 && out_distance == 1;
  if (!known) fail("an FFT along another axis than the first of [sample, signal]");
  const std::lock_guard lock(device_mutex());
  plan_of(handle).samples = *n;
  plan_of(handle).signals = signals;
  *work_bytes = 0;
  return CUFFT_SUCCESS;
}

cufftResult cufftExecZ2Z(cufftHandle handle, cufftDoubleComplex* in, cufftDoubleComplex* out, int direction) {
  const std::lock_guard lock(device_mutex());
  const Plan plan = plan_of(handle);
  const auto bytes = static_cast<std::size_t>(plan.samples * plan.signals) * sizeof(cufftDoubleComplex);
  check_device_memory(in, bytes, "the input of an FFT");
  check_device_memory(out, bytes, "the output of an FFT");
  enqueue(plan.stream, [=] {
    const auto samples = static_cast<std::size_t>(plan.samples), signals = static_cast<std::size_t>(plan.signals);
    const pocketfft::stride_t strides{static_cast<std::ptrdiff_t>(signals * sizeof(*in)), sizeof(*in)};
    pocketfft::c2c({samples, signals}, strides, strides, {0}, direction == CUFFT_FORWARD,
                   reinterpret_cast<const std::complex<double>*>(in), reinterpret_cast<std::complex<double>*>(out),
                   1.0);
  });
  return CUFFT_SUCCESS;
}

}  // extern "C"
