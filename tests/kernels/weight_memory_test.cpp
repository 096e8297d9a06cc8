// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/weight_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"

namespace kvs::cpu {
namespace {

std::size_t resident_bytes() {
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(::getpagesize());
}

TEST(WeightMemory, OfDroppedWeightsGoesBackToTheSystem) {
  constexpr std::size_t kPieces = 64, kBytes = WeightMemory::kMappedBytes;
  std::vector<std::optional<WeightMemory>> held(kPieces);
  for (auto& piece : held) std::memset(piece.emplace(kBytes).data(), 1, kBytes);
  const std::size_t before = resident_bytes();
  for (std::size_t n = 0; n < kPieces; n += 2) held[n].reset();  // between others
  EXPECT_LT(resident_bytes() + kPieces / 4 * kBytes, before);
}

TEST(WeightMemory, IsAlignedAndAsLargeAsAskedFor) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, WeightMemory::kMappedBytes - 1,
                                  WeightMemory::kMappedBytes + 1, 5 * WeightMemory::kMappedBytes + 17}) {
    WeightMemory memory(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 64, 0U) << bytes;
    std::memset(memory.data(), 7, bytes);
    const void* const place = memory.data();
    const WeightMemory moved(std::move(memory));
    EXPECT_EQ(moved.data(), place);
    EXPECT_EQ(static_cast<const char*>(moved.data())[bytes - 1], 7) << bytes;
  }
}

TEST(WeightMemory, RefusesMoreThanTheSystemHas) {
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX / 2 - 4096}) EXPECT_THROW(WeightMemory{bytes}, Error) << bytes;
}

}  // namespace
}  // namespace kvs::cpu
