// SPDX-License-Identifier: Apache-2.0
// The emulation finds each kind of fault that it is made for: one kernel with one fault each.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "kernels/cuda/device_array.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"

namespace kvs::cuda {
namespace {

constexpr unsigned kValues = 64;

/// out[i] = in[63 − i] through shared memory.
__global__ void reverse(const float* in, float* out, bool barrier) {
  float* const shared = dynamic_shared<float>();
  shared[threadIdx.x] = in[threadIdx.x];
  if (barrier) __syncthreads();
  out[threadIdx.x] = shared[kValues - 1 - threadIdx.x];
}
/// Does the same by asynchronous copies of four values.
__global__ void reverse_copied(const float* in, float* out, bool wait) {
  float* const shared = dynamic_shared<float>();
  if (threadIdx.x % 4 == 0) ptx::copy_async(ptx::shared_address(shared + threadIdx.x), in + threadIdx.x, true);
  ptx::commit_copies();
  if (wait) ptx::wait_for_copies<0>();
  __syncthreads();
  out[threadIdx.x] = shared[kValues - 1 - threadIdx.x];
}
/// Does the same, and copies zeros over the data that were read.
__global__ void reverse_and_clear(const float* in, float* out, bool barrier) {
  float* const shared = dynamic_shared<float>();
  shared[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = shared[kValues - 1 - threadIdx.x];
  if (barrier) __syncthreads();
  if (threadIdx.x % 4 == 0) ptx::copy_async(ptx::shared_address(shared + threadIdx.x), nullptr, false);
  ptx::commit_copies();
  ptx::wait_for_copies<0>();
}
__global__ void wait_for_each_other() {
  if (threadIdx.x < 32) __syncthreads();
  if (threadIdx.x > 32) __syncwarp();
}
__global__ void exchange_in_half(float* out) {
  if (threadIdx.x % 2 == 0) out[threadIdx.x] = __shfl_xor_sync(0xffffffffU, 1.0F, 2);
}
__global__ void write_at(float* out, std::size_t place) { out[place] = 1; }
__global__ void write_shared_at(std::size_t place) { dynamic_shared<float>()[place] = 1; }

class Emulation : public testing::Test {
 protected:
  Emulation() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  template <class... Parameters>
  void run(void (*kernel)(Parameters...), std::size_t shared_bytes, std::type_identity_t<Parameters>... arguments) {
    launch_kernel("kernel", kernel, {1, kValues, shared_bytes}, context_.stream(), arguments...);
    check_cuda(cudaStreamSynchronize(context_.stream()), "kernel");
  }
  std::size_t wrong(void (*kernel)(const float*, float*, bool), bool right) {
    std::vector<float> values(kValues);
    for (unsigned i = 0; i < kValues; ++i) values[i] = static_cast<float>(i);
    const DeviceArray<float> in(context_, std::span<const float>(values)), out(context_, kValues);
    run(kernel, kValues * sizeof(float), in.data(), out.data(), right);
    const std::vector<float> found = out.to_host();
    return static_cast<std::size_t>(
        std::inner_product(found.begin(), found.end(), values.rbegin(), 0, std::plus(), std::not_equal_to()));
  }

  Context context_;
};

TEST_F(Emulation, ShowsAMissingBarrier) {
  EXPECT_EQ(wrong(reverse, true), 0U);
  EXPECT_GT(wrong(reverse, false), 0U);
}

TEST_F(Emulation, ShowsAMissingWaitForACopy) {
  EXPECT_EQ(wrong(reverse_copied, true), 0U);
  EXPECT_GT(wrong(reverse_copied, false), 0U);
}

TEST_F(Emulation, ShowsACopyThatBeginsTooEarly) {
  EXPECT_EQ(wrong(reverse_and_clear, true), 0U);
  EXPECT_GT(wrong(reverse_and_clear, false), 0U);
}

TEST_F(Emulation, ShowsAMissingWaitForAStream) {
  const DeviceArray<float> array(context_, 1);
  context_.clear(array.data(), sizeof(float));
  float found = 5;
  check_cuda(cudaMemcpyAsync(&found, array.data(), sizeof found, cudaMemcpyDeviceToHost, context_.stream()), "copy");
  EXPECT_EQ(found, 5);
  check_cuda(cudaStreamSynchronize(context_.stream()), "wait");
  EXPECT_EQ(found, 0);
}

TEST_F(Emulation, ShowsWhatWasNeverWritten) { EXPECT_TRUE(std::isnan(DeviceArray<float>(context_, 1).to_host()[0])); }

TEST_F(Emulation, EndsWhereThreadsWaitForEachOther) {
  const DeviceArray<float> out(context_, kValues);
  EXPECT_DEATH(run(wait_for_each_other, 0),
               "found a block whose threads wait for each other: 32 at a barrier, 31 in a warp operation, 1 ended");
  EXPECT_DEATH(run(exchange_in_half, 0, out.data()), "32 in a warp operation, 32 ended");
}

TEST_F(Emulation, EndsAtAWriteBesideAnArray) {
  const auto write = [this](std::size_t place) {
    const DeviceArray<float> out(context_, kValues);
    run(write_at, 0, out.data(), place);
  };
  write(kValues - 1);
  EXPECT_DEATH(
      {
        write(kValues);
        context_.memory_left();  // the release is only queued
      },
      "found a write outside of an array of 256 bytes");
  EXPECT_DEATH(run(write_shared_at, 4 * kValues, kValues), "found a write behind the end of dynamic shared memory");
}

TEST_F(Emulation, EndsAtACopyBesideAnArray) {
  const DeviceArray<float> array(context_, kValues);
  float value = 0;
  EXPECT_DEATH(context_.upload(array.data() + kValues, &value, sizeof value),
               "4 bytes that are not all in one device array");
}

TEST_F(Emulation, RefusesALaunchThatNoGpuTakes) {
  const DeviceArray<float> out(context_, 1);
  EXPECT_THROW(launch_kernel("kernel", write_at, {0, kValues}, context_.stream(), out.data(), 0), Error);
  EXPECT_THROW(launch_kernel("kernel", write_at, {1, 2048}, context_.stream(), out.data(), 0), Error);
}

}  // namespace
}  // namespace kvs::cuda
