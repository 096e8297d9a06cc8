// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "core/error.h"

namespace kvs::cuda {
namespace {

constexpr GemmPlace kPlace{.version = 130100, .architecture = 90, .multiprocessors = 132};
constexpr GemmShape kShape{
    .rows = 4096, .columns = 12288, .inner = 4096, .type = DType::kBF16, .y_type = DType::kF32, .bias = false};
constexpr GemmAlgorithm kAlgorithm{0x42, 1, 0xffffffffffffffff, 0, 5, 6, 7, 8};

TEST(GemmTable, ReadsTheLinesThatItPrints) {
  GemmShape biased = kShape;
  biased.bias = true;
  const std::string text = "# cuBLASLt 13.1, H200\n\n" + gemm_line(kPlace, kShape, kAlgorithm) + "  # 780 TFLOP/s\n" +
                           gemm_line(kPlace, biased, {9});
  const GemmTable table(text, "text", kPlace);
  ASSERT_NE(table.find(kShape), nullptr);
  EXPECT_EQ(*table.find(kShape), kAlgorithm);
  EXPECT_EQ(*table.find(biased), GemmAlgorithm{9});
  EXPECT_EQ(gemm_line(kPlace, kShape, {0x42}), "130100 90 132 4096 12288 4096 bf16 f32 - 42 0 0 0 0 0 0 0");
}

TEST(GemmTable, TheOneThatIsBuiltInCanBeRead) { EXPECT_NO_THROW(GemmTable(kMeasuredGemms, "gemm_table.h", kPlace)); }

TEST(GemmTable, HoldsOnlyWhereItWasMeasured) {
  const std::string line = gemm_line(kPlace, kShape, kAlgorithm);
  for (const GemmPlace& other : {GemmPlace{130101, 90, 132}, {130100, 80, 132}, {130100, 90, 114}})
    EXPECT_EQ(GemmTable(line, "text", other).find(kShape), nullptr) << gemm_line(other, kShape, kAlgorithm);
  for (const auto& [rows, columns, inner, y_type] : {std::tuple{4095U, 12288U, 4096U, DType::kF32},
                                                     {4096U, 12289U, 4096U, DType::kF32},
                                                     {4096U, 12288U, 4097U, DType::kF32},
                                                     {4096U, 12288U, 4096U, DType::kBF16}}) {
    const GemmShape other{rows, columns, inner, DType::kBF16, y_type, false};
    EXPECT_EQ(GemmTable(line, "text", kPlace).find(other), nullptr) << to_string(other);
  }
}

TEST(GemmTable, NamesTheLineThatIsNone) {
  const std::string good = gemm_line(kPlace, kShape, kAlgorithm);
  const std::string bad_lines[] = {"fast", good + " 9", good.substr(0, good.rfind(' ')),
                                   "130100 90 132 4096 12288 4096 bf16 f9 - 1 2 3 4 5 6 7 8",
                                   "130100 90 132 4096 12288 4096 bf16 f32 biased 1 2 3 4 5 6 7 8"};
  for (const std::string& bad : bad_lines) {
    try {
      const GemmTable table(good + "\n" + bad + "\n", "measured.txt", kPlace);
      FAIL() << "expected an error for " << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
      EXPECT_THAT(error.what(), testing::StartsWith("measured.txt: line 2: "));
    }
  }
}

}  // namespace
}  // namespace kvs::cuda
