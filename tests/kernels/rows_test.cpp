#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/kernels/support.h"

namespace kvs::test {
namespace {

using ::testing::ElementsAreArray;

/// Operations on rows: everything but products.
class Rows : public ::testing::TestWithParam<DType> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend("cpu", GetParam(), 2);
};

TEST_P(Rows, RmsNormDividesARowByItsRootMeanSquare) {
  for (const std::size_t columns : {1, 15, 64, 577}) {
    const std::size_t rows = 7;
    const auto x = random_values(rows * columns, 1), gain = random_values(columns, 2);
    const auto in = uploaded<2>(*backend_, x, {rows, columns});
    const auto gains = uploaded<1>(*backend_, gain, {columns});
    const OwnedOperand out(*backend_, rows, columns);
    backend_->rms_norm(in.view(), gains.view(), 1e-5F, out);
    const auto values = out.values();
    for (std::size_t row = 0; row < rows; ++row) {
      double squares = 0;
      for (std::size_t i = 0; i < columns; ++i) squares += std::pow(static_cast<double>(x[row * columns + i]), 2);
      for (std::size_t i = 0; i < columns; ++i) {
        const double exact = static_cast<double>(x[row * columns + i]) * static_cast<double>(gain[i]) /
                             std::sqrt(squares / static_cast<double>(columns) + static_cast<double>(1e-5F));
        // One rounding to the type, two of products, one of the inverse root, and half of the sum's (at most 15 steps).
        ASSERT_NEAR(static_cast<double>(values[row * columns + i]), exact,
                    std::abs(exact) * (half_step(GetParam()) + 11 * 0x1p-24));
      }
    }
  }
}

TEST_P(Rows, RmsNormKeepsNanInItsRow) {
  std::vector<float> x(2 * 20, 1.0F);
  x[25] = std::numeric_limits<float>::quiet_NaN();
  const auto in = uploaded<2>(*backend_, x, {2, 20});
  const auto gain = uploaded<1>(*backend_, std::vector<float>(20, 1.0F), {20});
  const OwnedOperand out(*backend_, 2, 20);
  backend_->rms_norm(in.view(), gain.view(), 0, out);
  const auto values = out.values();
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(std::isnan(values[i]), i >= 20);
}

TEST_P(Rows, SwigluMultipliesBySiluOfTheGate) {
  for (const std::size_t columns : {1, 31, 96}) {
    const std::size_t rows = 5;
    auto x = random_values(rows * 2 * columns, 3);
    for (float& value : x) value *= 20;
    const auto in = uploaded<2>(*backend_, x, {rows, 2 * columns});
    const OwnedOperand out(*backend_, rows, columns);
    backend_->swiglu(in.view(), out);
    const auto values = out.values();
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < columns; ++i) {
        const double gate = static_cast<double>(x[row * 2 * columns + i]);
        const double exact = gate / (1 + std::exp(-gate)) * static_cast<double>(x[row * 2 * columns + columns + i]);
        // exp to 2 units of 2^-23, then a sum, a quotient, a product and the result's type.
        ASSERT_NEAR(static_cast<double>(values[row * columns + i]), exact,
                    std::abs(exact) * (half_step(GetParam()) + 7 * 0x1p-24));
      }
    }
  }
}

TEST_P(Rows, SwigluKeepsNanAndSaturates) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto in = uploaded<2>(*backend_, {nan, 1, 200, -200, 1, nan, 2, 2}, {1, 8});
  const OwnedOperand out(*backend_, 1, 4);
  backend_->swiglu(in.view(), out);
  const auto values = out.values();
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_TRUE(std::isnan(values[1]));
  EXPECT_EQ(values[2], 400.0F);
  EXPECT_EQ(values[3], 0.0F);
}

TEST_P(Rows, WidenGivesTheOperandsValues) {
  const auto x = random_values(3 * 17, 4);
  EXPECT_THAT(OwnedOperand(*backend_, x, 3, 17).values(), ElementsAreArray(rounded(x, GetParam())));
}

TEST_P(Rows, SplitHeadsPutsHeadsBeforeTokens) {
  // Element value = its place in qkv, so that each target says where it came from. 2 members, 3 tokens, H 4, G 2.
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

class Rope : public Rows {
 protected:
  static constexpr std::size_t kMembers = 2, kHeads = 3, kTokens = 5, kDim = 80, kFirst = 3;

  std::vector<float> cosine_, sine_;
  BackendTensor<float, 2> cosines_, sines_;

  void SetUp() override {
    for (std::size_t position = 0; position < kFirst + kTokens; ++position) {
      for (std::size_t c = 0; c < kDim / 2; ++c) {
        const double angle = static_cast<double>(position) * std::pow(10000.0, -2.0 * static_cast<double>(c) / kDim);
        cosine_.push_back(static_cast<float>(std::cos(angle)));
        sine_.push_back(static_cast<float>(std::sin(angle)));
      }
    }
    cosines_ = uploaded<2>(*backend_, cosine_, {kFirst + kTokens, kDim / 2});
    sines_ = uploaded<2>(*backend_, sine_, {kFirst + kTokens, kDim / 2});
  }

  std::vector<float> run(const std::vector<float>& x, RopeDirection direction, std::span<const std::uint8_t> chunks) {
    const auto tensor = uploaded<4>(*backend_, x, {kMembers, kHeads, kTokens, kDim});
    backend_->rope(tensor.view(), {cosines_.view(), sines_.view()}, kFirst, direction, chunks);
    return download(*backend_, tensor.view());
  }
};

TEST_P(Rope, RotatesTheChosenChunksByTheirPositionsAngle) {
  const auto x = random_values(kMembers * kHeads * kTokens * kDim, 5);
  std::vector<std::uint8_t> chosen(kHeads * kDim / 2);
  for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = i % 3 == 0;
  for (const bool all : {true, false}) {
    const auto y = run(x, RopeDirection::kForward, all ? std::span<const std::uint8_t>() : chosen);
    for (std::size_t row = 0; row < kMembers * kHeads * kTokens; ++row) {
      const std::size_t position = kFirst + row % kTokens, head = row / kTokens % kHeads;
      for (std::size_t c = 0; c < kDim / 2; ++c) {
        const double a = static_cast<double>(x[row * kDim + c]), b = static_cast<double>(x[row * kDim + kDim / 2 + c]);
        const double cosine = static_cast<double>(cosine_[position * kDim / 2 + c]),
                     sine = static_cast<double>(sine_[position * kDim / 2 + c]);
        const bool turned = all || chosen[head * kDim / 2 + c] != 0;
        // Two products and a sum of values below 1, 1 and 2: at most 2^-25 + 2^-25 + 2^-24.
        const double tolerance = turned ? 0x1p-23 : 0.0;
        ASSERT_NEAR(static_cast<double>(y[row * kDim + c]), turned ? a * cosine - b * sine : a, tolerance);
        ASSERT_NEAR(static_cast<double>(y[row * kDim + kDim / 2 + c]), turned ? b * cosine + a * sine : b, tolerance);
      }
    }
  }
}

TEST_P(Rope, InverseUndoesForward) {
  const auto x = random_values(kMembers * kHeads * kTokens * kDim, 6);
  const auto back = run(run(x, RopeDirection::kForward, {}), RopeDirection::kInverse, {});
  // Two rotations of at most 2^-23 each, and a table whose cos² + sin² is 1 to within 2^-23, times a length below √2.
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(back[i], x[i], 5e-7);
}

TEST_P(Rope, RefusesATableThatIsTooShort) {
  const BackendTensor<float, 4> x(*backend_, {1, 1, kTokens + 1, kDim});
  EXPECT_THROW(backend_->rope(x.view(), {cosines_.view(), sines_.view()}, kFirst, RopeDirection::kForward, {}), Error);
}

INSTANTIATE_TEST_SUITE_P(Types, Rows, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& type) { return type_name(type.param); });
INSTANTIATE_TEST_SUITE_P(Types, Rope, ::testing::Values(DType::kF32),
                         [](const auto& type) { return type_name(type.param); });

}  // namespace
}  // namespace kvs::test
