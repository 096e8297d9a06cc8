// SPDX-License-Identifier: Apache-2.0
// Spectra, decompositions and sums over tokens on both devices; all in double, so that tolerances are small.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "kernels/calibration_ops.h"
#include "kernels/spectral_ops.h"
#include "tests/kernels/cuda_support.h"

namespace kvs::test {
namespace {

std::vector<double> random_doubles(std::size_t count, std::uint32_t seed) {
  const auto values = random_values(count, seed);
  return {values.begin(), values.end()};
}

struct HeadShape {
  std::size_t heads, head_dim;
};
/// An odd head_dim, whose last channel has no partner; an even one, whose channels are processed in pairs; for short
/// segments also more signals than a block has threads.
std::vector<HeadShape> head_shapes(std::size_t tokens) {
  std::vector<HeadShape> shapes{{3, 17}, {2, 10}};
  if (tokens <= 7) shapes.insert(shapes.end(), {{70, 10}, {70, 9}});
  return shapes;
}

TEST_F(BothDevices, PowerOfEveryLength) {
  for (const std::size_t tokens : kTokenCounts) {
    for (const auto& [heads, head_dim] : head_shapes(tokens)) {
      for (const auto transform : {Transform::kDct, Transform::kDft}) {
        for (const std::size_t first : {std::size_t{0}, std::min<std::size_t>(tokens - 1, 4)}) {
          const auto states = random_values(heads * tokens * head_dim, 1);
          const std::array shape{heads, tokens, head_dim};
          const std::size_t bins = bins_of(transform, tokens - first);
          const auto [cpu, cuda] = both([&](Backend& backend) {
            const auto memory = uploaded<3>(backend, states, shape);
            std::vector<double> power(shape[0] * bins);
            backend.make_spectral_ops()->power(memory.view(), transform, first, power);
            return power;
          });
          // An FFT's error is below 2^-53 · log2 N ≤ 12 of the signal's norm, so of power about 1e-14 of the largest
          // bin.
          SCOPED_TRACE(testing::Message() << heads << " heads of " << head_dim << ", " << tokens << " from " << first);
          expect_close(cuda, cpu, 1e-13 * *std::ranges::max_element(cpu), 1e-12);
        }
      }
    }
  }
}

TEST_F(BothDevices, FilterOfEveryLengthAlsoIntoItsOwnInput) {
  for (const std::size_t tokens : kTokenCounts) {
    for (const auto& [heads, head_dim] : head_shapes(tokens)) {
      for (const auto transform : {Transform::kDct, Transform::kDft}) {
        const std::size_t members = 3, first = tokens / 7, last = tokens - tokens / 20;
        const std::array shape{members, heads, tokens, head_dim};
        const std::size_t bins = bins_of(transform, last - first);
        const auto states = random_values(members * heads * tokens * head_dim, 1);
        const auto gains = random_doubles(members * bins, 2);
        const auto [cpu, cuda] = both([&](Backend& backend) {
          const auto out = uploaded<4>(backend, states, shape);
          const BackendView<const float, 3> x = out.view().slice(1);
          backend.make_spectral_ops()->filter(x, transform, first, last,
                                              {std::span<const double>(gains), {members, bins}}, out.view());
          return download(backend, out.view());
        });
        // Values of size √N at most after gains below 1 (Parseval); computed in double, rounded to f32 once on either
        // side.
        SCOPED_TRACE(testing::Message() << heads << " heads of " << head_dim << ", " << tokens << " tokens");
        expect_close(cuda, cpu, 1e-12, 0x1p-23);
      }
    }
  }
}

/// left · diag(singular) · right: unlike the vectors, free of signs.
std::vector<double> rebuilt(const SingularValues& svd, std::size_t rows, std::size_t columns, std::size_t rank) {
  std::vector<double> matrix(rows * columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t r = 0; r < rank; ++r)
      for (std::size_t j = 0; j < columns; ++j)
        matrix[i * columns + j] += svd.left[i * rank + r] * svd.singular[r] * svd.right[r * columns + j];
  return matrix;
}

TEST_F(BothDevices, SingularTripletsOfTallAndWideMatrices) {
  // The last two have a smaller side above 1024 and go through the Gram matrix.
  for (const auto& [rows, columns] :
       {std::pair<std::size_t, std::size_t>{33, 70}, {70, 33}, {1, 7}, {1027, 1040}, {1040, 1027}}) {
    const auto matrix = random_doubles(rows * columns, 1);
    const TensorView<const double, 2> view(std::span<const double>(matrix), {rows, columns});
    const std::size_t rank = std::min<std::size_t>(rows, 9);
    const auto [cpu, cuda] = both([&](Backend& backend) { return make_calibration_ops(backend)->svd(view, rank); });
    SCOPED_TRACE(testing::Message() << rows << " x " << columns);
    // Directly σ_i is off by about 1e-15 σ_1, by the Gram matrix by about 1e-16 σ_1²/σ_i (the smallest are not compared
    // relatively: a random square-ish matrix has σ_n near 0).
    expect_close(cuda.singular, cpu.singular, (std::min(rows, columns) > 1024 ? 1e-6 : 1e-13) * cpu.singular[0]);
    // Neighbouring singular values of such a matrix differ by 1e-3 or more of σ_1: vectors good to 1e-11.
    expect_close(rebuilt(cuda, rows, columns, rank), rebuilt(cpu, rows, columns, rank), 1e-9 * cpu.singular[0]);
    const auto values_only = make_calibration_ops(*cuda_)->svd(view, 0);
    EXPECT_TRUE(values_only.left.empty() && values_only.right.empty());
    EXPECT_NEAR(values_only.singular[0], cpu.singular[0], 1e-12 * cpu.singular[0]);
  }
}

TEST_F(BothDevices, EigenvectorsOfSymmetricMatrices) {
  for (const std::size_t n : {1, 9, 130}) {
    std::vector<double> matrix = random_doubles(n * n, 1);
    for (std::size_t row = 0; row < n; ++row)
      for (std::size_t column = 0; column < row; ++column) matrix[row * n + column] = matrix[column * n + row];
    const std::size_t rank = std::min<std::size_t>(n, 5);
    const auto [cpu, cuda] = both([&](Backend& backend) {
      std::vector<double> copy = matrix;
      return make_calibration_ops(backend)->eigenvectors({copy, {n, n}}, [&](auto) { return rank; });
    });
    SCOPED_TRACE(testing::Message() << n);
    expect_close(cuda.values, cpu.values, 1e-13 * static_cast<double>(n));
    for (std::size_t vector = 0; vector < rank; ++vector) {  // equal but for the sign
      const double* const a = &cpu.vectors[vector * n];
      const double* const b = &cuda.vectors[vector * n];
      EXPECT_NEAR(std::abs(std::inner_product(a, a + n, b, 0.0)), 1, 1e-11) << vector;
    }
  }
}

TEST_F(BothDevices, CholeskyFactorsAndTriangularProducts) {
  for (const std::size_t n : {0, 1, 7, 130}) {
    // Diagonally dominant, so positive definite with a condition number below 3.
    std::vector<double> a = random_doubles(n * n, 1);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < i; ++j) a[i * n + j] = a[j * n + i];
      a[i * n + i] = 2 * static_cast<double>(n);
    }
    const std::size_t rows = 33;
    const auto x = random_doubles(rows * n, 2);
    const auto [cpu, cuda] = both([&](Backend& backend) {
      const auto ops = make_calibration_ops(backend);
      std::vector<double> factor = a, product = x, quotient = x;
      ops->cholesky(TensorView<double, 2>(factor, {n, n}));
      const TensorView<const double, 2> lower(std::span<const double>(factor), {n, n});
      ops->multiply_lower(TensorView<double, 2>(product, {rows, n}), lower, Triangular::kMultiply);
      ops->multiply_lower(TensorView<double, 2>(quotient, {rows, n}), lower, Triangular::kSolve);
      return std::array{factor, product, quotient};
    });
    SCOPED_TRACE(testing::Message() << n << " x " << n);
    for (std::size_t i = 0; i < cpu.size(); ++i) expect_close(cuda[i], cpu[i], 1e-14 * static_cast<double>(n), 1e-13);
  }
}

TEST_F(BothDevices, CholeskyRefusesAnIndefiniteMatrix) {
  std::vector<double> indefinite{1, 2, 2, 1};
  try {
    make_calibration_ops(*cuda_)->cholesky(TensorView<double, 2>(indefinite, {2, 2}));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
  }
}

class BothDevicesSums : public BothDevicesByType {};

TEST_P(BothDevicesSums, SecondMomentOfEveryLength) {
  for (const std::size_t rows : kTokenCounts) {
    const std::size_t n = 65;
    const auto x = random_values(rows * n, 1);
    const auto [cpu, cuda] = both([&](Backend& backend) {
      const OwnedOperand operand(backend, x, rows, n);
      std::vector<double> sum(n * n, 0.5);
      make_calibration_ops(backend)->accumulate_second_moment(operand, TensorView<double, 2>(sum, {n, n}));
      return sum;
    });
    SCOPED_TRACE(testing::Message() << rows << " rows");
    expect_close(cuda, cpu, static_cast<double>(rows) * static_cast<double>(rows) * 0x1p-52);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BothDevicesSums, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& type) { return type_name(type.param); });

/// Both RoPE sums of random states at angles that are not unit circles.
struct RopeRun {
  std::size_t query_heads, kv_heads, tokens, half, first;

  template <class Sum>
  void operator()(Backend& backend, Sum sum) const {
    const auto q =
        uploaded<3>(backend, random_values(query_heads * tokens * 2 * half, 1), {query_heads, tokens, 2 * half});
    const auto k = uploaded<3>(backend, random_values(kv_heads * tokens * 2 * half, 2), {kv_heads, tokens, 2 * half});
    const auto cosine = uploaded<2>(backend, random_values((tokens + first) * half, 3), {tokens + first, half});
    const auto sine = uploaded<2>(backend, random_values((tokens + first) * half, 4), {tokens + first, half});
    sum(*make_calibration_ops(backend), q.view(), k.view(), RopeTable{cosine.view(), sine.view()});
  }
};

TEST_F(BothDevices, RopeGramOfEveryLength) {
  for (const std::size_t tokens : kTokenCounts) {
    for (const std::size_t half : {32, 40, 64}) {
      for (const auto& [query_heads, kv_heads] : {std::pair<std::size_t, std::size_t>{2, 1}, {6, 3}, {3, 3}}) {
        if (tokens > kMany && query_heads == 6) continue;  // a minute on the CPU
        const RopeRun run{query_heads, kv_heads, tokens, half, 3};
        const std::size_t size = half * half;
        const auto [cpu, cuda] = both([&](Backend& backend) {
          std::vector<double> gram(query_heads * size, 0.25);
          run(backend, [&](CalibrationOps& ops, auto q, auto k, const RopeTable& table) {
            const auto grams = ops.rope_grams(TensorView<double, 4>(gram, {1, run.query_heads, half, half}));
            grams->add(0, q, k, table, 3);
            grams->finish();
          });
          return gram;
        });
        SCOPED_TRACE(testing::Message() << tokens << " tokens, " << half << " chunks, " << kv_heads << " kv heads");
        for (std::size_t head = 0; head < query_heads; ++head) {
          // Every entry is a sum of products of which the diagonal bounds the magnitude (Cauchy and Schwarz).
          double largest = 0;
          for (std::size_t c = 0; c < half; ++c) largest = std::max(largest, cpu[head * size + c * half + c]);
          const auto of_head = [&](const std::vector<double>& gram) {
            return std::vector<double>(&gram[head * size], &gram[head * size] + size);
          };
          expect_close(of_head(cuda), of_head(cpu), 1e-12 * largest);
        }
      }
    }
  }
}

TEST_F(BothDevices, RopeGramsOfSeveralLayersStayOnTheDeviceUntilTheEnd) {
  constexpr std::size_t kHeads = 2, kHalf = 20, kSize = kHeads * kHalf * kHalf, kLayers = 3;
  const RopeRun run{kHeads, 1, 7, kHalf, 0};
  std::vector<double> once(kSize), gram(kLayers * kSize, 0.25), expected = gram;
  run(*cuda_, [&](CalibrationOps& ops, auto q, auto k, const RopeTable& table) {
    const auto one = ops.rope_grams(TensorView<double, 4>(once, {1, kHeads, kHalf, kHalf}));
    one->add(0, q, k, table, 0);
    one->finish();
    const auto grams = ops.rope_grams(TensorView<double, 4>(gram, {kLayers, kHeads, kHalf, kHalf}));
    for (const std::size_t layer : {2, 0, 2}) grams->add(layer, q, k, table, 0);
    EXPECT_EQ(gram, expected) << "nothing comes to the host before the end";
    grams->finish();
  });
  for (std::size_t i = 0; i < kSize; ++i) {
    expected[i] += once[i];
    expected[2 * kSize + i] += 2 * once[i];  // exact: a sum and itself
  }
  EXPECT_EQ(gram, expected);
}

TEST_F(BothDevices, RopeDistanceOfEveryLength) {
  for (const std::size_t tokens :
       {std::size_t{1}, std::size_t{7}, kMany}) {  // quadratic: 4097 tokens take the CPU minutes
    for (const std::size_t half : {5, 32, 40, 128}) {
      const RopeRun run{6, 3, tokens, half, 2};
      std::vector<std::uint8_t> rotated(6 * half);
      for (std::size_t i = 0; i < rotated.size(); ++i) rotated[i] = i % 7 == 3;
      const auto [cpu, cuda] = both([&](Backend& backend) {
        std::vector<double> errors(6 * half, 0.25);
        run(backend, [&](CalibrationOps& ops, auto q, auto k, const RopeTable& table) {
          ops.accumulate_rope_distance(
              q, k, table, 2, TensorView<const std::uint8_t, 2>(std::span<const std::uint8_t>(rotated), {6, half}),
              TensorView<double, 2>(errors, {6, half}));
        });
        return errors;
      });
      SCOPED_TRACE(testing::Message() << tokens << " tokens, " << half << " chunks");
      expect_close(cuda, cpu, 0, 1e-11);  // sums of magnitudes: up to 5e5 terms, each off by 1e-15 of a few
    }
  }
}

}  // namespace
}  // namespace kvs::test
