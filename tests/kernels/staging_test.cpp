// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "tests/kernels/cuda_support.h"

namespace kvs::test {
namespace {

/// Returns the staged `values`; staging starts from memory that is overwritten before it waits.
template <class T>
std::vector<T> staged(Backend& backend, const std::vector<float>& values, DType type) {
  const auto memory = uploaded<1>(backend, values, {values.size()});
  const auto staging = backend.make_staging(values.size() + 1, type);
  staging->start(memory.view().span());
  const std::vector<float> other(values.size(), 9.0F);
  backend.upload(memory.view().data(), other.data(), memory.bytes());
  const std::span<const std::byte> bytes = staging->wait();
  EXPECT_EQ(bytes.size(), values.size() * sizeof(T));
  std::vector<T> result(values.size());
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

void expect_conversions(Backend& backend) {
  std::vector<float> values = random_values(4097, 1);
  // Ties between neighbours of either type, subnormals of f16, its largest number and numbers that round to infinity.
  for (const float special : {1.0F + 0x1p-11F, 1.0F + 3 * 0x1p-11F, 1.0F + 0x1p-8F, 1.0F + 3 * 0x1p-8F, 0x1p-24F,
                              0x1p-25F, 3 * 0x1p-26F, 65504.0F, 65520.0F, -0.0F, 3e38F})
    values.push_back(special);
  std::vector<std::uint16_t> half, bfloat;
  for (const float value : values) {
    half.push_back(f32_to_f16(value));
    bfloat.push_back(f32_to_bf16(value));
  }
  EXPECT_EQ(staged<float>(backend, values, DType::kF32), values);
  EXPECT_EQ(staged<std::uint16_t>(backend, values, DType::kF16), half);
  EXPECT_EQ(staged<std::uint16_t>(backend, values, DType::kBF16), bfloat);
}

TEST(Staging, RoundsToNearestEvenWhatWasThereAtTheStart) { expect_conversions(*make_backend("cpu", DType::kF32)); }

TEST_F(BothDevices, StagingOnTheDeviceRoundsLikewise) { expect_conversions(*cuda_); }

TEST_F(BothDevices, StagingIsUsedAgainWhileTheNextCopyWaits) {
  const std::size_t count = 1 << 20;
  const auto first = cuda_->make_staging(count, DType::kF32), second = cuda_->make_staging(count, DType::kF32);
  for (std::uint32_t round = 0; round < 8; ++round) {
    const auto a = random_values(count, 2 * round), b = random_values(count, 2 * round + 1);
    const auto memory = uploaded<1>(*cuda_, a, {count});
    first->start(memory.view().span());
    cuda_->upload(memory.view().data(), b.data(), memory.bytes());
    second->start(memory.view().span());
    EXPECT_EQ(std::memcmp(first->wait().data(), a.data(), memory.bytes()), 0) << round;
    EXPECT_EQ(std::memcmp(second->wait().data(), b.data(), memory.bytes()), 0) << round;
  }
}

}  // namespace
}  // namespace kvs::test
