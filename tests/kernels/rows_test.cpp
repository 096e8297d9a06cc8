#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "core/error.h"
#include "tests/kernels/support.h"

namespace kvs::test {
namespace {

using ::testing::ElementsAreArray;

/// Operations on rows, except products.
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

TEST_P(Rows, RmsNormAddJoinsTheNormToTheSum) {
  for (const std::size_t columns : {1, 15, 577}) {
    const std::size_t rows = 3;
    const auto x = random_values(rows * columns, 1), gain = random_values(columns, 2),
               sum = random_values(rows * columns, 3);
    const auto in = uploaded<2>(*backend_, x, {rows, columns}), target = uploaded<2>(*backend_, sum, {rows, columns});
    const auto gains = uploaded<1>(*backend_, gain, {columns});
    backend_->rms_norm_add(in.view(), gains.view(), 1e-5F, target.view());
    const auto values = download(*backend_, target.view());
    for (std::size_t i = 0; i < values.size(); ++i) {
      double squares = 0;
      for (std::size_t c = 0; c < columns; ++c)
        squares += std::pow(static_cast<double>(x[i / columns * columns + c]), 2);
      const double normed = static_cast<double>(x[i]) * static_cast<double>(gain[i % columns]) /
                            std::sqrt(squares / static_cast<double>(columns) + static_cast<double>(1e-5F));
      const double exact = static_cast<double>(sum[i]) + normed;
      ASSERT_NEAR(static_cast<double>(values[i]), exact, std::abs(normed) * 11 * 0x1p-24 + std::abs(exact) * 0x1p-24);
    }
  }
}

TEST_P(Rows, LayerNormCentresAndScalesARow) {
  for (const std::size_t columns : {2, 15, 64, 577}) {
    const std::size_t rows = 5;
    auto x = random_values(rows * columns, 1);
    for (float& value : x) value += 3;  // a mean that must be subtracted before squares are summed
    const auto gain = random_values(columns, 2), bias = random_values(columns, 3);
    const auto in = uploaded<2>(*backend_, x, {rows, columns});
    const auto gains = uploaded<1>(*backend_, gain, {columns}), biases = uploaded<1>(*backend_, bias, {columns});
    const OwnedOperand out(*backend_, rows, columns);
    backend_->layer_norm(in.view(), gains.view(), biases.view(), 1e-5F, out);
    const auto values = out.values();
    for (std::size_t row = 0; row < rows; ++row) {
      const float* from = &x[row * columns];
      const auto n = static_cast<double>(columns);
      double mean = 0, variance = 0;
      for (std::size_t i = 0; i < columns; ++i) mean += static_cast<double>(from[i]) / n;
      for (std::size_t i = 0; i < columns; ++i) variance += std::pow(static_cast<double>(from[i]) - mean, 2) / n;
      const double root = std::sqrt(variance + static_cast<double>(1e-5F));
      for (std::size_t i = 0; i < columns; ++i) {
        const double scaled = (static_cast<double>(from[i]) - mean) / root * static_cast<double>(gain[i]);
        const double exact = scaled + static_cast<double>(bias[i]);
        // The mean, of values near 4, is off by at most 20 steps of 2^-23, which the root enlarges; then as RmsNorm.
        ASSERT_NEAR(static_cast<double>(values[row * columns + i]), exact,
                    20 * 0x1p-23 / root * std::abs(static_cast<double>(gain[i])) + std::abs(scaled) * 40 * 0x1p-24 +
                        std::abs(exact) * (0x1p-24 + half_step(GetParam())));
      }
    }
  }
}

TEST_P(Rows, NormHeadsDividesEachHeadOrAllHeadsOfAToken) {
  const std::size_t members = 2, heads = 3, tokens = 5, dim = 40, size = members * heads * tokens * dim;
  const auto x = random_values(size, 1);
  for (const bool whole_row : {false, true}) {
    const std::size_t together = whole_row ? heads : 1;
    const auto gain = random_values(together * dim, 2);
    const auto states = uploaded<4>(*backend_, x, {members, heads, tokens, dim});
    const auto gains = uploaded<1>(*backend_, gain, {together * dim});
    backend_->norm_heads(states.view(), gains.view(), 1e-6F);
    const auto values = download(*backend_, states.view());
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t head = i / (tokens * dim) % heads, first = whole_row ? 0 : head;
      double squares = 0;
      for (std::size_t h = first; h < first + together; ++h)
        for (std::size_t c = 0; c < dim; ++c)
          squares += std::pow(static_cast<double>(x[i / (heads * tokens * dim) * heads * tokens * dim +
                                                    h * tokens * dim + i % (tokens * dim) / dim * dim + c]),
                              2);
      const float scale = gain[whole_row ? head * dim + i % dim : i % dim];
      const double exact = static_cast<double>(x[i]) * static_cast<double>(scale) /
                           std::sqrt(squares / static_cast<double>(together * dim) + static_cast<double>(1e-6F));
      ASSERT_NEAR(static_cast<double>(values[i]), exact, std::abs(exact) * 12 * 0x1p-24) << i;
    }
  }
}

TEST_P(Rows, LayerNormHeadsNormalisesEachHeadWithItsOwnGain) {
  const std::size_t members = 2, heads = 3, tokens = 5, dim = 20, size = members * heads * tokens * dim;
  const auto x = random_values(size, 1);
  for (const bool own_gains : {false, true}) {
    const std::size_t gains = (own_gains ? heads : 1) * dim;
    const auto gain = random_values(gains, 2), bias = random_values(gains, 3);
    const auto states = uploaded<4>(*backend_, x, {members, heads, tokens, dim});
    backend_->layer_norm_heads(states.view(), uploaded<1>(*backend_, gain, {gains}).view(),
                               uploaded<1>(*backend_, bias, {gains}).view(), 1e-5F);
    const auto values = download(*backend_, states.view());
    for (std::size_t i = 0; i < size; ++i) {
      const float* const row = &x[i / dim * dim];
      const double mean = std::accumulate(row, row + dim, 0.0) / dim;
      double variance = 0;
      for (std::size_t c = 0; c < dim; ++c) variance += std::pow(static_cast<double>(row[c]) - mean, 2) / dim;
      const std::size_t at = (own_gains ? i / (tokens * dim) % heads * dim : 0) + i % dim;
      const double exact =
          (static_cast<double>(x[i]) - mean) / std::sqrt(variance + 1e-5) * static_cast<double>(gain[at]) +
          static_cast<double>(bias[at]);
      ASSERT_NEAR(static_cast<double>(values[i]), exact, 40 * 0x1p-24) << i;
    }
  }
}

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

TEST_P(Rows, ClampedUpProjectionLimitsGateAndUp) {
  const std::size_t rows = 3, dim = 8, width = 20;
  auto x = rounded(random_values(rows * dim, 1), GetParam());
  auto weights = rounded(random_values(2 * width * dim, 2), GetParam());
  for (float& weight : weights) weight *= 8;  // beyond the limits
  const std::vector<float> bias = random_values(2 * width, 3);
  WeightSource source{2 * width, dim, {}, bias};
  source.read = [&](std::size_t first, std::size_t count, std::span<float> out) {
    std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(first * dim), count * dim, out.begin());
  };
  const auto weight = backend_->make_weight(source);
  const OwnedOperand in(*backend_, x, rows, dim), out(*backend_, rows, width);
  for (const SwigluClamp clamp : {SwigluClamp{1.702F, 3}, SwigluClamp{0.7F, 2}}) {
    backend_->clamped_up_projection(in, *weight, clamp, out);
    const auto values = out.values();
    const auto alpha = static_cast<double>(clamp.alpha), limit = static_cast<double>(clamp.limit);
    for (std::size_t i = 0; i < rows * width; ++i) {
      const auto product = [&](std::size_t row) {
        double sum = static_cast<double>(bias[row]);
        for (std::size_t c = 0; c < dim; ++c)
          sum += static_cast<double>(x[i / width * dim + c]) * static_cast<double>(weights[row * dim + c]);
        return sum;
      };
      const double gate = std::min(product(i % width), limit);
      const double up = std::clamp(product(width + i % width), -limit, limit);
      const double exact = gate / (1 + std::exp(-alpha * gate)) * (up + 1);
      ASSERT_NEAR(static_cast<double>(values[i]), exact, 2e-5 + std::abs(exact) * half_step(GetParam())) << i;
    }
  }
}

/// The exact activation, in double.
double activated(double x, Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGeluTanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    case Activation::kGeluErf:
      return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluSigmoid:
      return x / (1 + std::exp(-1.702 * x));
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kReluSquared:
      return std::pow(std::max(x, 0.0), 2);
  }
  return 0;
}

TEST_P(Rows, SparseUpProjectionCutsGatesBelowTheRowsQuantile) {
  const std::size_t rows = 3, dim = 8, width = 20;
  const auto x = rounded(random_values(rows * dim, 1), GetParam());
  const auto weights = rounded(random_values(2 * width * dim, 2), GetParam());
  WeightSource source{2 * width, dim, {}, {}};
  source.read = [&](std::size_t first, std::size_t count, std::span<float> out) {
    std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(first * dim), count * dim, out.begin());
  };
  const auto weight = backend_->make_weight(source);
  const OwnedOperand in(*backend_, x, rows, dim), out(*backend_, rows, width);
  for (const float deviations : {-0.5F, 0.0F, 1.25F}) {
    backend_->sparse_up_projection(in, *weight, Activation::kGeluTanh, deviations, out);
    const auto values = out.values();
    for (std::size_t row = 0; row < rows; ++row) {
      std::vector<double> products(2 * width);
      for (std::size_t n = 0; n < products.size(); ++n)
        for (std::size_t c = 0; c < dim; ++c)
          products[n] += static_cast<double>(x[row * dim + c]) * static_cast<double>(weights[n * dim + c]);
      double mean = 0, variance = 0;
      for (std::size_t n = 0; n < width; ++n) mean += products[n] / width;
      for (std::size_t n = 0; n < width; ++n) variance += (products[n] - mean) * (products[n] - mean) / width;
      const double least = mean + static_cast<double>(deviations) * std::sqrt(variance);
      for (std::size_t i = 0; i < width; ++i) {
        const double exact = activated(std::max(products[i] - least, 0.0), Activation::kGeluTanh) * products[width + i];
        ASSERT_NEAR(static_cast<double>(values[row * width + i]), exact, 2e-5 + std::abs(exact) * half_step(GetParam()))
            << deviations << " " << row << " " << i;
      }
    }
  }
}

constexpr Activation kActivations[] = {Activation::kSilu,        Activation::kGeluTanh, Activation::kGeluErf,
                                       Activation::kGeluSigmoid, Activation::kRelu,     Activation::kReluSquared};

TEST_P(Rows, RaiseMultipliesByTheActivatedGate) {
  for (const Activation activation : kActivations) {
    for (const std::size_t columns : {1, 31, 96}) {
      const std::size_t rows = 5;
      auto x = random_values(rows * 2 * columns, 3);
      for (float& value : x) value *= 20;
      x = rounded(x, GetParam());
      const auto values = projected(*backend_, x, rows, activation, columns);
      for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t i = 0; i < columns; ++i) {
          const auto gate = static_cast<double>(x[row * 2 * columns + i]),
                     up = static_cast<double>(x[row * 2 * columns + columns + i]);
          const double exact = activated(gate, activation) * up;
          // exp to 2 units of 2^-23, then a sum, a quotient, a product and the result's type. Where GELU is small, its
          // exponent's own rounding counts: a share of it that e^-x² makes less than 2^-20 of x.
          const double small = activation == Activation::kSilu ? 0.0 : 0x1p-20 * std::min(1.0, std::abs(up));
          ASSERT_NEAR(static_cast<double>(values[row * columns + i]), exact,
                      std::abs(exact) * (half_step(GetParam()) + 7 * 0x1p-24) + small)
              << gate;
        }
      }
    }
  }
}

TEST_P(Rows, RaiseWithoutAGateIsTheGateOfOne) {
  auto x = random_values(3 * 37, 3);
  std::vector<float> gate_up;
  for (std::size_t row = 0; row < 3; ++row) {
    gate_up.insert(gate_up.end(), x.begin() + static_cast<std::ptrdiff_t>(row * 37),
                   x.begin() + static_cast<std::ptrdiff_t>((row + 1) * 37));
    gate_up.insert(gate_up.end(), 37, 1.0F);
  }
  for (const Activation activation : kActivations) {
    EXPECT_THAT(projected(*backend_, x, 3, activation, 37),
                ElementsAreArray(projected(*backend_, gate_up, 3, activation, 37)));
  }
}

TEST_P(Rows, RaiseAddsTheBiasFirst) {
  auto x = random_values(3 * 34, 3), bias = random_values(34, 4);
  for (auto* values : {&x, &bias})
    for (float& value : *values) value = std::round(value * 64) / 64;  // types and sums hold them exactly
  std::vector<float> sum = x;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += bias[i % 34];
  for (const std::size_t columns : {17, 34}) {
    const auto found = projected(*backend_, x, 3, Activation::kSilu, columns, bias);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const float* row = &sum[i / columns * 34];
      const double up = columns == 17 ? static_cast<double>(row[17 + i % columns]) : 1.0;
      const double exact = activated(static_cast<double>(row[i % columns]), Activation::kSilu) * up;
      ASSERT_NEAR(found[i], exact, std::abs(exact) * (half_step(GetParam()) + 7 * 0x1p-24));  // as above
    }
  }
}

TEST_P(Rows, RaiseTakesMoreRowsThanAProductsSlab) {
  const std::size_t rows = 4100;  // x and the weight are one column: y[row] = x[row]
  const auto x = rounded(random_values(rows, 5), GetParam());
  const OwnedOperand in(*backend_, x, rows, 1), out(*backend_, rows, 1);
  backend_->up_projection(in, *make_weight(*backend_, {1}, 1, 1), Activation::kSilu, out);
  const auto values = out.values();
  for (const std::size_t row : {0, 2047, 2048, 4095, 4096, 4099}) {
    const double exact = activated(static_cast<double>(x[row]), Activation::kSilu);
    EXPECT_NEAR(values[row], exact, std::abs(exact) * (half_step(GetParam()) + 7 * 0x1p-24)) << row;
  }
}

TEST_P(Rows, RaiseKeepsNanAndSaturates) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Activation activation : kActivations) {
    const auto values = projected(*backend_, {nan, 1, 200, -200, 1, nan, 2, 2}, 1, activation, 4);
    EXPECT_TRUE(std::isnan(values[0]));
    EXPECT_TRUE(std::isnan(values[1]));
    const float large = activation == Activation::kReluSquared ? 200.0F * 200 * 2 : 200.0F * 2;
    EXPECT_EQ(values[2], rounded({large}, GetParam()).front());
    EXPECT_EQ(values[3], 0.0F);
  }
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

TEST_P(Rope, SelfAttentionSplitsRotatesAndAttends) {
  // The table rotates the first 80 of 86 channels.
  constexpr std::size_t kGroups = 1, kWide = kDim + 6, kColumns = (kHeads + 2 * kGroups) * kWide;
  const auto qkv =
      uploaded<2>(*backend_, random_values(kMembers * kTokens * kColumns, 8), {kMembers * kTokens, kColumns});
  const RopeTable table{cosines_.view(), sines_.view()};
  const BackendTensor<float, 4> q(*backend_, {kMembers, kHeads, kTokens, kWide}),
      k(*backend_, {kMembers, kGroups, kTokens, kWide}), v(*backend_, {kMembers, kGroups, kTokens, kWide});
  backend_->split_heads(qkv.view(), q.view(), k.view(), v.view());
  for (const auto* tensor : {&q, &k}) backend_->rope(tensor->view(), table, kFirst, RopeDirection::kForward, {});
  const OwnedOperand step_by_step(*backend_, kMembers * kTokens, kHeads * kWide),
      at_once(*backend_, kMembers * kTokens, kHeads * kWide);
  backend_->attention({q.view(), k.view(), v.view(), {}, 0.3F, 4, 0, 0, 2.0F}, step_by_step);
  backend_->self_attention({qkv.view(), kMembers, kHeads, kGroups, table, kFirst, 0.3F, 4, 0, 2.0F}, at_once);
  EXPECT_EQ(at_once.values(), step_by_step.values());
}

TEST_P(Rope, InverseUndoesForward) {
  const auto x = random_values(kMembers * kHeads * kTokens * kDim, 6);
  const auto back = run(run(x, RopeDirection::kForward, {}), RopeDirection::kInverse, {});
  // Two rotations of at most 2^-23 each, and a table whose cos² + sin² is 1 to within 2^-23, times a length below √2.
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(back[i], x[i], 5e-7);
}

TEST_P(Rope, LeavesChannelsBehindTheTablesChunksAlone) {
  // This table for heads of 6 more channels: chunk c is then channels c and c + kDim / 2 of the first kDim.
  constexpr std::size_t kWide = kDim + 6;
  const auto x = random_values(kTokens * kWide, 7);
  std::vector<float> narrow;
  for (std::size_t token = 0; token < kTokens; ++token)
    narrow.insert(narrow.end(), x.begin() + token * kWide, x.begin() + token * kWide + kDim);
  const auto wide = uploaded<4>(*backend_, x, {1, 1, kTokens, kWide});
  const auto whole = uploaded<4>(*backend_, narrow, {1, 1, kTokens, kDim});
  for (const auto& tensor : {&wide, &whole})
    backend_->rope(tensor->view(), {cosines_.view(), sines_.view()}, kFirst, RopeDirection::kForward, {});
  const auto found = download(*backend_, wide.view()), turned = download(*backend_, whole.view());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t token = i / kWide, channel = i % kWide;
    ASSERT_EQ(found[i], channel < kDim ? turned[token * kDim + channel] : x[i]) << i;
  }
}

TEST_P(Rope, TheFactorIsDividedOutByTheInverseAndKeptByUnrotate) {
  constexpr float kFactor = 1.5F;
  auto cosine = cosine_, sine = sine_;
  for (std::size_t i = 0; i < cosine.size(); ++i) cosine[i] *= kFactor, sine[i] *= kFactor;
  const auto cosines = uploaded<2>(*backend_, cosine, cosines_.view().shape());
  const auto sines = uploaded<2>(*backend_, sine, sines_.view().shape());
  const RopeTable table{cosines.view(), sines.view(), kFactor};
  const auto x = random_values(kMembers * kHeads * kTokens * kDim, 8);
  for (const RopeDirection back : {RopeDirection::kInverse, RopeDirection::kUnrotate}) {
    const auto tensor = uploaded<4>(*backend_, x, {kMembers, kHeads, kTokens, kDim});
    backend_->rope(tensor.view(), table, kFirst, RopeDirection::kForward, {});
    backend_->rope(tensor.view(), table, kFirst, back, {});
    const auto found = download(*backend_, tensor.view());
    const float left = back == RopeDirection::kUnrotate ? kFactor : 1.0F;
    // The bound of InverseUndoesForward, with a few more roundings and values up to 1.5 times as long.
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(found[i], left * x[i], 1.5e-6);
  }
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
