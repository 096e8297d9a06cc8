// SPDX-License-Identifier: Apache-2.0
#include "kernels/calibration_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"
#include "kernels/backend.h"
#include "kernels/cpu/calibration_ops.h"

namespace kvs {
namespace {

std::vector<double> random_matrix(std::size_t rows, std::size_t columns, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(rows * columns);
  std::ranges::generate(values, [&] { return normal(generator); });
  return values;
}

class CalibrationOpsTest : public testing::Test {
 protected:
  std::unique_ptr<CalibrationOps> ops_ = make_cpu_calibration_ops(DType::kF32);
};

/// The CPU's backend memory is host memory.
BackendView<const float, 3> view_of(const std::vector<float>& values, std::array<std::size_t, 3> shape) {
  return {std::span<const float>(values), shape};
}

using View = TensorView<const double, 2>;

/// ‖M − left · diag(singular) · right‖².
double residual(View m, const SingularValues& svd) {
  const std::size_t rows = m.extent(0), columns = m.extent(1), rank = svd.right.size() / columns;
  double sum = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<double> row(m.slice(i).span().begin(), m.slice(i).span().end());
    for (std::size_t r = 0; r < rank; ++r) {
      const double weight = svd.left[i * rank + r] * svd.singular[r];
      for (std::size_t j = 0; j < columns; ++j) row[j] -= weight * svd.right[r * columns + j];
    }
    for (const double value : row) sum += value * value;
  }
  return sum;
}

/// The largest entry of Vᵀ V − I for columns V [n, rank], or of V Vᵀ − I for rows V [rank, n].
double orthonormality(const std::vector<double>& v, std::size_t rank, bool columns) {
  const std::size_t n = v.size() / rank;
  double worst = 0;
  for (std::size_t a = 0; a < rank; ++a) {
    for (std::size_t b = a; b < rank; ++b) {
      double dot = a == b ? -1.0 : 0.0;
      for (std::size_t i = 0; i < n; ++i)
        dot += columns ? v[i * rank + a] * v[i * rank + b] : v[a * n + i] * v[b * n + i];
      worst = std::max(worst, std::abs(dot));
    }
  }
  return worst;
}

double sum_of_squares(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

TEST_F(CalibrationOpsTest, SvdOfAKnownMatrix) {
  // [[3, 0], [4, 5]]: M Mᵀ has trace 50 and determinant 225, so σ² = 45 and 5.
  const std::vector<double> m{3, 0, 4, 5};
  const SingularValues svd = ops_->svd(View(m, {2, 2}), 1);
  EXPECT_NEAR(svd.singular[0], std::sqrt(45.0), 1e-14);
  EXPECT_NEAR(svd.singular[1], std::sqrt(5.0), 1e-14);
  // The leading left vector is (1, 3)/√10 up to sign.
  EXPECT_NEAR(svd.left[1] / svd.left[0], 3.0, 1e-13);
}

TEST_F(CalibrationOpsTest, SvdLeavesTheTailOfTheSpectrumInTallAndWideMatrices) {
  for (const auto& [rows, columns] : {std::pair<std::size_t, std::size_t>{30, 17}, {17, 30}}) {
    const std::vector<double> m = random_matrix(rows, columns, 1);
    const SingularValues svd = ops_->svd(View(m, {rows, columns}), 9);
    ASSERT_EQ(svd.singular.size(), 17U);
    EXPECT_TRUE(std::ranges::is_sorted(svd.singular, std::greater<>()));
    // Eckart & Young: the residual is Σ_{i ≥ 9} σ_i². Rounding: about 1e-15 of ‖M‖² = 510.
    EXPECT_NEAR(residual(View(m, {rows, columns}), svd), sum_of_squares(std::span(svd.singular).subspan(9)), 1e-11);
    EXPECT_LT(orthonormality(svd.left, 9, true), 1e-13);
    EXPECT_LT(orthonormality(svd.right, 9, false), 1e-13);
  }
}

TEST_F(CalibrationOpsTest, SvdAboveTheDirectLimitFindsAPlantedSpectrum) {
  // M = Σ_i σ_i h_i g_iᵀ with Householder-reflected unit vectors: H diag(σ) G, H and G symmetric orthogonal.
  constexpr std::size_t kRows = 1030, kColumns = 1100, kRank = 40;
  for (const bool transpose : {false, true}) {
    std::vector<double> u = random_matrix(kRows, 1, 2), v = random_matrix(kColumns, 1, 3);
    const double uu = sum_of_squares(u), vv = sum_of_squares(v);
    std::vector<double> sigma(kRows), m(kRows * kColumns);
    for (std::size_t i = 0; i < kRows; ++i) sigma[i] = 10.0 / (1.0 + 0.01 * static_cast<double>(i));
    double usv = 0;  // uᵀ Σ v
    for (std::size_t i = 0; i < kRows; ++i) usv += u[i] * sigma[i] * v[i];
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t j = 0; j < kColumns; ++j) {
        const double plain = i == j ? sigma[i] : 0.0, s_i = sigma[i] * v[i], s_j = j < kRows ? u[j] * sigma[j] : 0.0;
        const double value = plain - 2 * u[i] * s_j / uu - 2 * s_i * v[j] / vv + 4 * u[i] * usv * v[j] / (uu * vv);
        (transpose ? m[j * kRows + i] : m[i * kColumns + j]) = value;
      }
    }
    const View view(m, transpose ? std::array{kColumns, kRows} : std::array{kRows, kColumns});
    const SingularValues svd = ops_->svd(view, kRank);
    for (std::size_t i = 0; i < kRows; ++i) {  // eps (σ_1/σ_i)² ≤ 2.5e-14, times √n for the sums
      ASSERT_NEAR(svd.singular[i], sigma[i], 1e-12 * sigma[i]) << i;
    }
    EXPECT_NEAR(residual(view, svd), sum_of_squares(std::span(sigma).subspan(kRank)), 1e-8);
    EXPECT_LT(orthonormality(svd.left, kRank, true), 1e-12);
    EXPECT_LT(orthonormality(svd.right, kRank, false), 1e-12);
    EXPECT_TRUE(ops_->svd(view, 0).left.empty());
    EXPECT_NEAR(ops_->svd(view, 0).singular[500], sigma[500], 1e-12 * sigma[500]);
  }
}

TEST_F(CalibrationOpsTest, SvdOfARankDeficientMatrixIsFinite) {
  std::vector<double> m(1100 * 1030, 0.0);  // every row the same: rank 1, σ_1 = √1100 · ‖row‖ = √1100 · √1030
  std::ranges::fill(m, 1.0);
  const SingularValues svd = ops_->svd(View(m, {1100, 1030}), 3);
  EXPECT_NEAR(svd.singular[0], std::sqrt(1100.0 * 1030.0), 1e-9);
  EXPECT_LT(residual(View(m, {1100, 1030}), svd), 1e-10);
}

TEST_F(CalibrationOpsTest, EigenvectorsOfAKnownMatrix) {
  std::vector<double> matrix{2, 1, 1, 2}, seen;  // 3 of (1, 1), 1 of (1, −1)
  const Eigenvectors found = ops_->eigenvectors({matrix, {2, 2}}, [&](std::span<const double> values) {
    seen.assign(values.begin(), values.end());
    return 1;
  });
  EXPECT_NEAR(found.values[0], 3, 1e-14);
  EXPECT_NEAR(found.values[1], 1, 1e-14);
  EXPECT_EQ(seen, found.values);
  ASSERT_EQ(found.vectors.size(), 2U);
  EXPECT_NEAR(found.vectors[0] * found.vectors[1], 0.5, 1e-14);
}

TEST_F(CalibrationOpsTest, EigenvectorsSolveTheirEquation) {
  constexpr std::size_t kSize = 60, kRank = 7;
  std::vector<double> matrix = random_matrix(kSize, kSize, 4);
  for (std::size_t row = 0; row < kSize; ++row)
    for (std::size_t column = 0; column < row; ++column) matrix[row * kSize + column] = matrix[column * kSize + row];
  const std::vector<double> symmetric = matrix;
  const Eigenvectors found = ops_->eigenvectors({matrix, {kSize, kSize}}, [&](auto) { return kRank; });
  EXPECT_TRUE(std::ranges::is_sorted(found.values, std::greater<>()));
  EXPECT_LT(orthonormality(found.vectors, kRank, false), 1e-13);
  for (std::size_t n = 0; n < kRank; ++n)
    for (std::size_t row = 0; row < kSize; ++row) {
      double product = 0;
      for (std::size_t i = 0; i < kSize; ++i) product += symmetric[row * kSize + i] * found.vectors[n * kSize + i];
      EXPECT_NEAR(product, found.values[n] * found.vectors[n * kSize + row], 1e-12) << n << ", " << row;
    }
}

TEST_F(CalibrationOpsTest, SvdRefusesWeightsThatAreNotFinite) {
  std::vector<double> m{1, 2, 3, std::numeric_limits<double>::quiet_NaN()};
  try {
    ops_->svd(View(m, {2, 2}), 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
  }
}

TEST_F(CalibrationOpsTest, CholeskyFactorMultipliesBackAndSolves) {
  // A = [[4, 2], [2, 5]] = L Lᵀ with L = [[2, 0], [1, 2]].
  std::vector<double> a{4, 2, 2, 5};
  ops_->cholesky(TensorView<double, 2>(a, {2, 2}));
  EXPECT_EQ(a, (std::vector<double>{2, 0, 1, 2}));
  std::vector<double> x{1, 10};  // [1, 10] L = [2 + 10, 20]
  ops_->multiply_lower(TensorView<double, 2>(x, {1, 2}), View(a, {2, 2}), Triangular::kMultiply);
  EXPECT_EQ(x, (std::vector<double>{12, 20}));
  ops_->multiply_lower(TensorView<double, 2>(x, {1, 2}), View(a, {2, 2}), Triangular::kSolve);
  EXPECT_EQ(x, (std::vector<double>{1, 10}));
  std::vector<double> indefinite{1, 2, 2, 1};
  EXPECT_THROW(ops_->cholesky(TensorView<double, 2>(indefinite, {2, 2})), Error);
}

TEST_F(CalibrationOpsTest, CholeskyAndTriangularProductsTakeEmptyMatrices) {
  std::vector<double> none, lower{2, 0, 1, 2};
  ops_->cholesky(TensorView<double, 2>(none, {0, 0}));
  for (const Triangular how : {Triangular::kMultiply, Triangular::kSolve}) {
    ops_->multiply_lower(TensorView<double, 2>(none, {0, 2}), View(lower, {2, 2}), how);
    ops_->multiply_lower(TensorView<double, 2>(none, {3, 0}), View(none, {0, 0}), how);
  }
  EXPECT_TRUE(none.empty());
}

TEST_F(CalibrationOpsTest, SecondMomentAddsOuterProductsOfRows) {
  std::vector<float> rows{1, 2, 3, 4, 5, 6};  // 3 rows of 2: Σ x xᵀ = [[35, 44], [44, 56]]
  std::vector<double> sum{1, 0, 0, 1};
  ops_->accumulate_second_moment(Operand{rows.data(), 3, 2}, TensorView<double, 2>(sum, {2, 2}));
  EXPECT_EQ(sum, (std::vector<double>{36, 44, 44, 57}));
}

TEST_F(CalibrationOpsTest, SecondMomentReadsTheBackendsBf16) {
  std::array<std::uint16_t, 2> row{f32_to_bf16(1.5F), f32_to_bf16(-2.0F)};  // exact in bf16
  std::vector<double> sum(4, 0.0);
  make_cpu_calibration_ops(DType::kBF16)
      ->accumulate_second_moment(Operand{row.data(), 1, 2}, TensorView<double, 2>(sum, {2, 2}));
  EXPECT_EQ(sum, (std::vector<double>{2.25, -3, -3, 4}));
}

/// Random states and a table of arbitrary angles (not unit circles, so that nothing cancels by luck).
struct RopeCase {
  std::size_t query_heads, kv_heads, tokens, half, first_position, width;
  float factor;
  std::vector<float> q, k, cosine, sine;

  /// @param tail  channels of a head that are never rotated;  @param scale  the table's factor (its values stay
  /// arbitrary)
  RopeCase(std::size_t heads, std::size_t shared, std::size_t count, std::size_t chunks, std::size_t position,
           std::size_t tail = 0, float scale = 1)
      : query_heads(heads),
        kv_heads(shared),
        tokens(count),
        half(chunks),
        first_position(position),
        width(2 * chunks + tail),
        factor(scale) {
    std::mt19937 generator(7);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& values, std::size_t size) {
      values.resize(size);
      std::ranges::generate(values, [&] { return normal(generator); });
    };
    fill(q, heads * count * width);
    fill(k, shared * count * width);
    fill(cosine, (count + position) * chunks);
    fill(sine, (count + position) * chunks);
  }

  /// δ_c(i,j) by its definition: rotate both, subtract the product of the unrotated ones, which carry only the factor.
  double delta(std::size_t head, std::size_t chunk, std::size_t i, std::size_t j) const {
    const auto rotated = [&](const float* x, std::size_t position) {
      const double c = cosine[(position + first_position) * half + chunk];
      const double s = sine[(position + first_position) * half + chunk];
      return std::array{x[chunk] * c - x[chunk + half] * s, x[chunk + half] * c + x[chunk] * s};
    };
    const float* qi = q.data() + (head * tokens + i) * width;
    const float* kj = k.data() + (head / (query_heads / kv_heads) * tokens + j) * width;
    const auto a = rotated(qi, i), b = rotated(kj, j);
    const double plain = double{qi[chunk]} * kj[chunk] + double{qi[chunk + half]} * kj[chunk + half];
    return a[0] * b[0] + a[1] * b[1] - double{factor} * double{factor} * plain;
  }
};

void PrintTo(const RopeCase& c, std::ostream* out) { *out << "heads" << c.query_heads << "tokens" << c.tokens; }

class RopeSums : public CalibrationOpsTest, public testing::WithParamInterface<RopeCase> {
 protected:
  template <class Function>
  void with_operands(const RopeCase& c, Function function) {
    const std::array table_shape{std::size_t{1}, c.tokens + c.first_position, c.half};
    function(view_of(c.q, {c.query_heads, c.tokens, c.width}), view_of(c.k, {c.kv_heads, c.tokens, c.width}),
             RopeTable{view_of(c.cosine, table_shape).slice(0), view_of(c.sine, table_shape).slice(0), c.factor});
  }
};

TEST_P(RopeSums, GramEqualsTheSumOverCausalPairs) {
  const RopeCase& c = GetParam();
  std::vector<double> gram(c.query_heads * c.half * c.half, 0.5);  // += is checked by the 0.5
  with_operands(c, [&](auto q, auto k, const RopeTable& table) {
    const auto grams = ops_->rope_grams(TensorView<double, 4>(gram, {1, c.query_heads, c.half, c.half}));
    grams->add(0, q, k, table, c.first_position);
    grams->finish();
  });
  for (std::size_t head = 0; head < c.query_heads; ++head) {
    for (std::size_t a = 0; a < c.half; ++a) {
      for (std::size_t b = 0; b < c.half; ++b) {
        double expected = 0.5, magnitude = 1;
        for (std::size_t i = 0; i < c.tokens; ++i) {
          for (std::size_t j = 0; j <= i; ++j) {
            const double product = c.delta(head, a, i, j) * c.delta(head, b, i, j);
            expected += product;
            magnitude += std::abs(product);
          }
        }
        ASSERT_NEAR(gram[(head * c.half + a) * c.half + b], expected, 1e-12 * magnitude)
            << head << ' ' << a << ' ' << b;
      }
    }
  }
}

TEST_P(RopeSums, DistanceEqualsTheSumOverCausalPairs) {
  const RopeCase& c = GetParam();
  std::vector<std::uint8_t> rotated(c.query_heads * c.half, 0);
  for (std::size_t head = 0; head < c.query_heads; ++head) rotated[head * c.half + head % c.half] = 1;
  std::vector<double> errors(c.query_heads * c.half, 0.25);
  with_operands(c, [&](auto q, auto k, const RopeTable& table) {
    const std::array shape{c.query_heads, c.half};
    ops_->accumulate_rope_distance(q, k, table, c.first_position, TensorView<const std::uint8_t, 2>(rotated, shape),
                                   TensorView<double, 2>(errors, shape));
  });
  for (std::size_t head = 0; head < c.query_heads; ++head) {
    for (std::size_t candidate = 0; candidate < c.half; ++candidate) {
      double expected = 0.25;
      const bool taken = rotated[head * c.half + candidate] != 0;
      for (std::size_t i = 0; i < c.tokens && !taken; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
          double left = 0;
          for (std::size_t chunk = 0; chunk < c.half; ++chunk)
            if (chunk != candidate && rotated[head * c.half + chunk] == 0) left += c.delta(head, chunk, i, j);
          expected += std::abs(left);
        }
      }
      ASSERT_NEAR(errors[head * c.half + candidate], expected, 1e-12 * expected) << head << ' ' << candidate;
    }
  }
}

// Tokens and chunks at, below and above the block (16), the row tile (64) and the lanes (8); GQA and MHA; partial
// rotation with a factor.
INSTANTIATE_TEST_SUITE_P(Shapes, RopeSums,
                         testing::Values(RopeCase(1, 1, 1, 2, 0), RopeCase(2, 2, 16, 8, 0), RopeCase(6, 2, 33, 11, 3),
                                         RopeCase(3, 1, 70, 16, 5), RopeCase(2, 1, 130, 5, 0),
                                         RopeCase(2, 1, 40, 4, 2, 7, 1.25F)),
                         testing::PrintToStringParamName());

TEST_F(CalibrationOpsTest, RopeSumsRefuseATableThatIsTooShort) {
  const std::vector<float> values(4 * 8);
  const auto states = view_of(values, {1, 4, 8});
  const auto table = view_of(values, {2, 4, 4}).slice(0);
  std::vector<double> gram(16);
  EXPECT_THROW(ops_->rope_grams(TensorView<double, 4>(gram, {1, 1, 4, 4}))->add(0, states, states, {table, table}, 1),
               Error);
}

}  // namespace
}  // namespace kvs
