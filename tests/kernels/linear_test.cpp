// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/kernels/support.h"

namespace kvs::test {
namespace {

using ::testing::ElementsAreArray;

class Linear : public ::testing::TestWithParam<DType> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend("cpu", GetParam(), 2);

  std::vector<float> run(Backend& backend, const std::vector<float>& x, const Weight& weight,
                         const std::vector<float>& start, bool accumulate) {
    const std::size_t rows = x.size() / weight.columns();
    const OwnedOperand operand(backend, x, rows, weight.columns());
    const auto out = uploaded<2>(backend, start, {rows, weight.rows()});
    backend.linear(operand, weight, out.view(), accumulate);
    return download(backend, out.view());
  }
};

/// Bound of |a − b| of a sum of k products in f32, in any order: k roundings of at most Σ|x·w| each, plus two for the
/// added terms.
void expect_product(const std::vector<float>& out, const std::vector<float>& x, const std::vector<float>& w,
                    const std::vector<float>& start, const std::vector<float>& bias, std::size_t k) {
  const std::size_t rows = x.size() / k, n = w.size() / k;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < n; ++column) {
      double sum = 0, magnitude = 0;
      for (std::size_t i = 0; i < k; ++i) {
        const double term = static_cast<double>(x[row * k + i]) * static_cast<double>(w[column * k + i]);
        sum += term;
        magnitude += std::abs(term);
      }
      for (const double extra : {start.empty() ? 0.0 : static_cast<double>(start[row * n + column]),
                                 bias.empty() ? 0.0 : static_cast<double>(bias[column])}) {
        sum += extra;
        magnitude += std::abs(extra);
      }
      ASSERT_NEAR(static_cast<double>(out[row * n + column]), sum, static_cast<double>(k + 2) * 0x1p-24 * magnitude)
          << "row " << row << " column " << column;
    }
  }
}

TEST_P(Linear, EqualsTheProductOfEveryShape) {
  for (const std::size_t rows : {1, 7, 130, 300}) {
    for (const auto& [n, k] :
         {std::pair<std::size_t, std::size_t>{576, 576}, {960, 80}, {50, 33}, {3, 1}, {129, 200}}) {
      const auto x = rounded(random_values(rows * k, 1), GetParam());
      const auto w = rounded(random_values(n * k, 2), GetParam());
      const std::vector<float> stale(rows * n, std::numeric_limits<float>::quiet_NaN());
      const auto weight = make_weight(*backend_, w, n, k);
      SCOPED_TRACE(testing::Message() << rows << " x " << n << " x " << k);
      expect_product(run(*backend_, x, *weight, stale, false), x, w, {}, {}, k);
    }
  }
}

TEST_P(Linear, AddsBiasAndAccumulates) {
  for (const std::size_t rows : {1, 7, 300}) {
    for (const std::size_t n : {48, 320}) {
      const std::size_t k = 96;
      const auto x = rounded(random_values(rows * k, 3), GetParam()), w = rounded(random_values(n * k, 4), GetParam());
      const auto bias = random_values(n, 5), start = random_values(rows * n, 6);
      const auto weight = make_weight(*backend_, w, n, k, bias);
      SCOPED_TRACE(testing::Message() << rows << " x " << n);
      expect_product(run(*backend_, x, *weight, start, false), x, w, {}, bias, k);
      expect_product(run(*backend_, x, *weight, start, true), x, w, start, bias, k);
    }
  }
}

TEST_P(Linear, InF32DoesNotFollowTheComputeType) {
  for (const std::size_t rows : {1, 7, 130}) {
    for (const auto& [n, k] : {std::pair<std::size_t, std::size_t>{384, 64}, {50, 33}}) {
      const auto x = random_values(rows * k, 1), w = random_values(n * k, 2), bias = random_values(n, 3),
                 start = random_values(rows * n, 4);
      const auto weight = make_weight(*backend_, w, n, k, bias, true);
      const auto in = uploaded<2>(*backend_, x, {rows, k}), out = uploaded<2>(*backend_, start, {rows, n});
      SCOPED_TRACE(testing::Message() << rows << " x " << n << " x " << k);
      backend_->linear_f32(in.view(), *weight, out.view(), false);
      expect_product(download(*backend_, out.view()), x, w, {}, bias, k);
      backend_->upload(out.view().data(), start.data(), out.bytes());
      backend_->linear_f32(in.view(), *weight, out.view(), true);
      expect_product(download(*backend_, out.view()), x, w, start, bias, k);
    }
  }
}

TEST_P(Linear, GivesARowTheSameBitsWhateverTheBatchAndTheThreads) {
  const std::size_t rows = 700, n = 320, k = 192;
  const auto x = random_values(rows * k, 7), w = random_values(n * k, 8), start = random_values(rows * n, 9);
  const auto weight = make_weight(*backend_, w, n, k);
  const auto all = run(*backend_, x, *weight, start, true);
  for (const std::size_t first : {0UL, 5UL, 699UL}) {
    for (const std::size_t count : {1UL, 3UL, 4UL, 5UL, 64UL, 130UL}) {
      if (first + count > rows) continue;
      const std::vector<float> part(x.begin() + static_cast<std::ptrdiff_t>(first * k),
                                    x.begin() + static_cast<std::ptrdiff_t>((first + count) * k));
      const std::vector<float> part_start(start.begin() + static_cast<std::ptrdiff_t>(first * n),
                                          start.begin() + static_cast<std::ptrdiff_t>((first + count) * n));
      EXPECT_THAT(run(*backend_, part, *weight, part_start, true), ElementsAreArray(all.data() + first * n, count * n))
          << first << ' ' << count;
    }
  }
  for (const int threads : {1, 3}) {
    const auto other = make_backend("cpu", GetParam(), threads);
    const auto same_weight = make_weight(*other, w, n, k);
    EXPECT_THAT(run(*other, x, *same_weight, start, true), ElementsAreArray(all)) << threads << " threads";
  }
}

TEST_P(Linear, ReadsAWeightInConsecutiveSlabs) {
  const std::size_t n = 5000, k = 512;  // 2.5 Mi values, a slab holds at most 1 Mi
  std::size_t next = 0, largest = 0;
  const auto read = [&](std::size_t first, std::size_t count, std::span<float> out) {
    EXPECT_EQ(first, next);
    EXPECT_EQ(out.size(), count * k);
    next = first + count;
    largest = std::max(largest, out.size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = i % k == 0 ? static_cast<float>((first + i / k) % 128) : 0;
  };
  const auto weight = backend_->make_weight({.rows = n, .columns = k, .read = read});
  EXPECT_EQ(next, n);
  EXPECT_LE(largest, std::size_t{1} << 20);
  std::vector<float> x(k, 0.0F);
  x[0] = 2;
  const auto out = run(*backend_, x, *weight, std::vector<float>(n), false);
  for (std::size_t row = 0; row < n; ++row) ASSERT_EQ(out[row], 2.0F * static_cast<float>(row % 128));
}

TEST_P(Linear, RefusesShapesThatDoNotFit) {
  const auto weight = make_weight(*backend_, random_values(12, 1), 4, 3);
  const OwnedOperand x(*backend_, random_values(10, 1), 2, 5);
  const BackendTensor<float, 2> out(*backend_, {2, 4});
  EXPECT_THROW(backend_->linear(x, *weight, out.view(), false), Error);
}

TEST_P(Linear, RefusesAWeightOfAnotherType) {
  if (GetParam() == DType::kF32) GTEST_SKIP() << "one type for both";
  const auto values = random_values(12, 1);
  const auto narrow = make_weight(*backend_, values, 4, 3), f32 = make_weight(*backend_, values, 4, 3, {}, true);
  const OwnedOperand x(*backend_, random_values(6, 1), 2, 3);
  const BackendTensor<float, 2> in(*backend_, {2, 3}), out(*backend_, {2, 4});
  EXPECT_THROW(backend_->linear(x, *f32, out.view(), false), Error);
  EXPECT_THROW(backend_->linear_f32(in.view(), *narrow, out.view(), false), Error);
}

INSTANTIATE_TEST_SUITE_P(Types, Linear, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& type) { return type_name(type.param); });

}  // namespace
}  // namespace kvs::test
