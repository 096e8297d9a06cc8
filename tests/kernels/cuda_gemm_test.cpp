// SPDX-License-Identifier: Apache-2.0
// The algorithm of a product on CUDA.
#include <gmock/gmock.h>

#include "core/error.h"
#include "tests/io/temporary_directory.h"
#include "tests/kernels/cuda_support.h"

namespace kvs::test {
namespace {

class CudaGemm : public BothDevices {
 protected:
  void SetUp() override { start(DType::kBF16); }

  /// A backend that reads `table`.
  std::unique_ptr<Backend> with_table(const std::string& table) const {
    setenv("KVS_GEMM_TABLE", directory_.write("table.txt", table).c_str(), 1);
    auto backend = make_backend("cuda", DType::kBF16);
    unsetenv("KVS_GEMM_TABLE");
    return backend;
  }

  TemporaryDirectory directory_;
};

/// x: [5, inner], W: [columns, inner]
struct Operands {
  Operands(Backend& backend, std::size_t columns, std::size_t inner)
      : x(backend, random_values(5 * inner, 1), 5, inner),
        weight(make_weight(backend, random_values(columns * inner, 2), columns, inner)) {}

  std::vector<float> product(Backend& backend) const {
    const BackendTensor<float, 2> y(backend, {5, weight->rows()});
    backend.linear(x, *weight, y.view(), false);
    return download(backend, y.view());
  }
  OwnedOperand x;
  std::unique_ptr<Weight> weight;
};

TEST_F(CudaGemm, CountsProductsThatCublasltHasNoAlgorithmFor) {
  (void)Operands(*cuda_, 24, 16).product(*cuda_);
  EXPECT_EQ(cuda_products(*cuda_).all, 1U);
  EXPECT_EQ(cuda_products(*cuda_).unplanned, 0U);
#ifdef KVS_EMULATED  // its cuBLASLt is known to refuse rows of 30 bytes
  for (int n = 0; n < 2; ++n) (void)Operands(*cuda_, 24, 15).product(*cuda_);
  (void)Operands(*cuda_, 24, 17).product(*cuda_);
  EXPECT_EQ(cuda_products(*cuda_).all, 4U);
  EXPECT_EQ(cuda_products(*cuda_).unplanned, 3U);
  EXPECT_EQ(cuda_products(*cuda_).first_unplanned, "5 x 24 from 15, bf16 to f32");
#endif
}

TEST_F(CudaGemm, TriesEveryProposalAndTakesTheOneThatATableNames) {
  const Operands operands(*cuda_, 24, 16);
  for (const DType y_type : {DType::kBF16, DType::kF32}) {
    const auto trials = cuda_gemm_trials(*cuda_, operands.x, *operands.weight, y_type);
    ASSERT_FALSE(trials.empty());
    EXPECT_TRUE(trials.front().agrees);
    EXPECT_GT(trials.front().seconds, 0);
    EXPECT_THAT(trials.front().entry, testing::HasSubstr(" 5 24 16 bf16 " + type_name(y_type) + " - "));
  }
  const auto trials = cuda_gemm_trials(*cuda_, operands.x, *operands.weight, DType::kF32);
  const auto backend = with_table("# measured\n" + trials.back().entry + "\n");
  const auto product = Operands(*backend, 24, 16).product(*backend);
  EXPECT_EQ(cuda_products(*backend).by_table, 1U);
  EXPECT_EQ(cuda_products(*backend).refused, 0U);
  // Both sums of 16 products below 1 are off by less than 16 · 16 · 2^-24.
  expect_close(product, operands.product(*cuda_), 0x1p-16);
  (void)Operands(*backend, 32, 16).product(*backend);
  EXPECT_EQ(cuda_products(*backend).by_table, 1U) << "another shape";
  EXPECT_EQ(cuda_products(*backend).all, 2U);
}

#ifdef KVS_EMULATED  // which has its own algorithms
TEST_F(CudaGemm, TakesTheFirstProposalInPlaceOfAnEntryThatCannotBeUsed) {
  const Operands operands(*cuda_, 24, 16);
  std::string entry = cuda_gemm_trials(*cuda_, operands.x, *operands.weight, DType::kF32).front().entry;
  entry = entry.substr(0, entry.find(" - ")) + " - ffffffff 1 2 3 4 5 6 7";
  const auto backend = with_table(entry);
  EXPECT_EQ(Operands(*backend, 24, 16).product(*backend), operands.product(*cuda_));
  EXPECT_EQ(cuda_products(*backend).by_table, 0U);
  EXPECT_EQ(cuda_products(*backend).refused, 1U);
}
#endif

TEST_F(CudaGemm, RefusesATableThatIsNone) {
  try {
    with_table("fast\n");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInput);
    EXPECT_THAT(error.what(), testing::HasSubstr("line 1"));
  }
}

}  // namespace
}  // namespace kvs::test
