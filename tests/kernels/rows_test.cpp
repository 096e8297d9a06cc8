// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "tests/kernels/support.h"

namespace kvs::test {
namespace {

using ::testing::ElementsAreArray;

/// Operations that move, limit or add rows.
class Rows : public ::testing::TestWithParam<DType> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend("cpu", GetParam(), 2);
};
INSTANTIATE_TEST_SUITE_P(Types, Rows, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& type) { return type_name(type.param); });

TEST_P(Rows, ClampLimitsAndScaleTokensMultiplies) {
  const std::size_t heads = 3, tokens = 5, dim = 7, size = 2 * heads * tokens * dim;
  const auto x = random_values(size, 1);
  const auto states = uploaded<4>(*backend_, x, {2, heads, tokens, dim});
  const std::vector<float> factors{1, 2, 3, 4, 5};
  backend_->clamp(states.view(), 0.5F);
  backend_->scale_tokens(states.view(), factors);
  const auto values = download(*backend_, states.view());
  for (std::size_t i = 0; i < size; ++i)
    ASSERT_EQ(values[i], std::clamp(x[i], -0.5F, 0.5F) * factors[i / dim % tokens]) << i;
}

TEST_P(Rows, NarrowRoundsToTheOperandsType) {
  const auto x = random_values(3 * 17, 4);
  const auto in = uploaded<2>(*backend_, x, {3, 17});
  const OwnedOperand out(*backend_, 3, 17);
  backend_->narrow(in.view(), out);
  EXPECT_THAT(out.values(), ElementsAreArray(rounded(x, GetParam())));
}

TEST_P(Rows, GatherTakesRowsOfTheTableTimesAScale) {
  const auto x = rounded(random_values(5 * 17, 4), GetParam());
  const OwnedOperand table(*backend_, x, 5, 17);
  const std::vector<std::int32_t> rows{4, 0, 4, 2};
  const BackendTensor<float, 2> out(*backend_, {4, 17});
  for (const float scale : {1.0F, 3.3F}) {
    backend_->gather(table, rows, scale, out.view());
    const auto values = download(*backend_, out.view());
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], x[static_cast<std::size_t>(rows[i / 17]) * 17 + i % 17] * scale);
  }
}

TEST_P(Rows, GatherRefusesRowsOutsideTheTable) {
  const OwnedOperand table(*backend_, 5, 17);
  const BackendTensor<float, 2> out(*backend_, {1, 17});
  for (const std::int32_t row : {-1, 5}) EXPECT_THROW(backend_->gather(table, {{row}}, 1, out.view()), Error);
}

TEST_P(Rows, AddRowsAddsWeightedRowsToTheirPlaces) {
  const auto x = random_values(3 * 17, 4), start = random_values(5 * 17, 5);
  const std::vector<std::int32_t> rows{4, 0, 2};
  const std::vector<float> weights{0.5F, -3.3F, 1};
  const auto from = uploaded<2>(*backend_, x, {3, 17}), sum = uploaded<2>(*backend_, start, {5, 17});
  backend_->add_rows(from.view(), rows, weights, sum.view());
  std::vector<float> expected = start;
  for (std::size_t i = 0; i < x.size(); ++i)
    expected[static_cast<std::size_t>(rows[i / 17]) * 17 + i % 17] += weights[i / 17] * x[i];
  const auto values = download(*backend_, sum.view());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected[i], 1e-6);
}

TEST_P(Rows, AddRowsRefusesRowsOutsideTheSumAndMissingWeights) {
  const auto x = uploaded<2>(*backend_, std::vector<float>(17, 1.0F), {1, 17});
  const BackendTensor<float, 2> sum(*backend_, {5, 17}), narrow(*backend_, {5, 16});
  for (const std::int32_t row : {-1, 5})
    EXPECT_THROW(backend_->add_rows(x.view(), {{row}}, {{1.0F}}, sum.view()), Error);
  EXPECT_THROW(backend_->add_rows(x.view(), {{0}}, {}, sum.view()), Error);
  EXPECT_THROW(backend_->add_rows(x.view(), {}, {}, sum.view()), Error);
  EXPECT_THROW(backend_->add_rows(x.view(), {{0}}, {{1.0F}}, narrow.view()), Error);
}

TEST_P(Rows, SplitHeadsPutsHeadsBeforeTokens) {
  // An element's value is its index in qkv, so that each target shows where it came from. 2 members, 3 tokens, H 4, G
  // 2.
  const std::size_t members = 2, tokens = 3, heads = 4, groups = 2, dim = 8, columns = (heads + 2 * groups) * dim;
  std::vector<float> place(members * tokens * columns);
  for (std::size_t i = 0; i < place.size(); ++i) place[i] = static_cast<float>(i);
  const auto qkv = uploaded<2>(*backend_, place, {members * tokens, columns});
  const BackendTensor<float, 4> q(*backend_, {members, heads, tokens, dim}),
      k(*backend_, {members, groups, tokens, dim}), v(*backend_, {members, groups, tokens, dim});
  backend_->split_heads(qkv.view(), q.view(), k.view(), v.view());
  const auto check = [&](const BackendTensor<float, 4>& tensor, std::size_t first_column) {
    const auto values = download(*backend_, tensor.view());
    const std::size_t count = tensor.view().extent(1);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t channel = i % dim, token = i / dim % tokens, head = i / dim / tokens % count,
                        member = i / dim / tokens / count;
      ASSERT_EQ(values[i],
                static_cast<float>((member * tokens + token) * columns + first_column + head * dim + channel));
    }
  };
  check(q, 0);
  check(k, heads * dim);
  check(v, (heads + groups) * dim);
}

}  // namespace
}  // namespace kvs::test
