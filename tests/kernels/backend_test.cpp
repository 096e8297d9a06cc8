// SPDX-License-Identifier: Apache-2.0
#include "kernels/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "core/error.h"

namespace kvs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ErrorCode code_of(const std::function<void()>& action, std::string_view text) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(std::string(text)));
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::kInternal;
}

TEST(MakeBackend, NamesTheDeviceItMade) {
  EXPECT_EQ(make_backend("cpu", DType::kF32)->device(), "cpu");
  EXPECT_EQ(make_backend("cpu", DType::kBF16)->compute_type(), DType::kBF16);
}

TEST(MakeBackend, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(code_of([] { make_backend("tpu", DType::kF32); }, "found \"tpu\", expected cpu, cuda or auto"),
            ErrorCode::kUsage);
  EXPECT_EQ(code_of([] { make_backend("cpu", DType::kF64); }, "found f64, expected f32 or bf16"), ErrorCode::kUsage);
  EXPECT_EQ(code_of([] { make_backend("cpu", DType::kF32, -1); }, "found -1"), ErrorCode::kUsage);
}

TEST(CpuMemory, IsAlignedToACacheLine) {
  const auto backend = make_backend("cpu", DType::kF32);
  for (const std::size_t bytes : {0UL, 1UL, 100UL, 5UL << 20}) {
    void* memory = backend->allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0U);
    backend->release(memory);
  }
}

TEST(CpuMemory, SaysHowMuchWasTooMuch) {
  const auto backend = make_backend("cpu", DType::kF32);
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX / 2}) {
    EXPECT_EQ(code_of([&] { backend->allocate(bytes); }, "out of memory for " + std::to_string(bytes) + " bytes"),
              ErrorCode::kEnvironment);
  }
}

TEST(CpuMemory, CopiesPiecesOfRows) {
  const auto backend = make_backend("cpu", DType::kF32);
  const std::vector<float> rows{1, 2, 3, 4, 5, 6};  // two rows of three
  BackendTensor<float, 2> from(*backend, {2, 3}), to(*backend, {2, 4});
  backend->upload(from.view().data(), rows.data(), from.bytes());
  const std::vector<float> zeros(8);
  backend->upload(to.view().data(), zeros.data(), to.bytes());
  backend->copy_pieces(to.view().data() + 1, 4 * sizeof(float), from.view().data() + 1, 3 * sizeof(float),
                       2 * sizeof(float), 2);
  EXPECT_THAT(download(*backend, to.view()), ElementsAre(0, 2, 3, 0, 0, 5, 6, 0));
}

TEST(CpuMemory, MovesValuesBetweenHostAndBackend) {
  const auto backend = make_backend("cpu", DType::kF32);
  const BackendTensor<float, 2> a(*backend, {2, 2}), b(*backend, {2, 2});
  const std::vector<float> values{1, 2, 3, 4};
  backend->upload(a.view().data(), values.data(), a.bytes());
  backend->copy(b.view().data(), a.view().data(), b.bytes());
  EXPECT_THAT(download(*backend, b.view()), ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace kvs
