// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/cpu/aligned.h"
#include "tests/kernels/support.h"

namespace kvs::cpu {
namespace {

using test::random_values;
using test::rounded;

/// Row-major values in the engine's type.
struct Typed {
  Typed(const std::vector<float>& values, DType type) : floats(values) {
    if (type == DType::kBF16)
      for (const float value : values) words.push_back(f32_to_bf16(value));
  }
  const void* data() const { return words.empty() ? static_cast<const void*>(floats.data()) : words.data(); }
  std::vector<float> floats;
  std::vector<std::uint16_t> words;
};

class PanelProducts : public ::testing::TestWithParam<DType> {
 protected:
  /// The product with the leading part of B [n, k] that `shape` names.
  std::vector<float> run(const ProductShape& shape, std::size_t n, std::size_t k, const std::vector<float>& x,
                         const std::vector<float>& b, const std::vector<float>& bias, std::vector<float> out) {
    const auto engine = make_panel_products(GetParam(), 1);
    const auto layout = engine->layout(n, k);
    AlignedBuffer packed;
    packed.reserve(layout->bytes());
    std::memset(packed.data(), 0, layout->bytes());
    engine->pack(*layout, packed.data(), 0, n, b.data(), k, 1);
    const auto product = engine->product(shape, *layout);
    const Typed typed(x, GetParam());
    EXPECT_TRUE(product->run(0, {.x = typed.data(), .packed = packed.data(), .bias = bias.data(), .out = out.data()}));
    return out;
  }
};

// Batches, threads and resumed runs give the same bits only because of this: one chain of fused multiply-adds per
// element, in ascending order of k.
TEST_P(PanelProducts, AreOneChainOfFusedMultiplyAdds) {
  for (const std::size_t m : {1, 2, 3, 5, 6, 7, 13, 64}) {
    for (const auto& [n, k] : {std::pair<std::size_t, std::size_t>{16, 8}, {1, 1}, {100, 70}, {48, 512}, {37, 1100}}) {
      SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
      const auto x = rounded(random_values(m * k, 1), GetParam()), b = rounded(random_values(n * k, 2), GetParam());
      const auto bias = random_values(n, 3), start = random_values(m * n, 4);
      for (const bool accumulate : {false, true}) {
        const auto out = run({m, n, k, accumulate, true}, n, k, x, b, bias, start);
        for (std::size_t row = 0; row < m; ++row) {
          for (std::size_t column = 0; column < n; ++column) {
            float sum = 0;
            for (std::size_t i = 0; i < k; ++i) sum = std::fma(x[row * k + i], b[column * k + i], sum);
            sum += bias[column];
            if (accumulate) sum = start[row * n + column] + sum;
            ASSERT_EQ(out[row * n + column], sum) << row << ' ' << column;
          }
        }
      }
    }
  }
}

TEST_P(PanelProducts, TakeTheLeadingPartOfAPackedMatrix) {
  const std::size_t m = 9, n = 80, k = 96;
  const auto x = random_values(m * k, 5), b = random_values(n * k, 6);
  for (const auto& [part_n, part_k] : {std::pair<std::size_t, std::size_t>{80, 40}, {50, 96}, {33, 17}}) {
    std::vector<float> part_x, part_b;
    for (std::size_t row = 0; row < m; ++row) part_x.insert(part_x.end(), &x[row * k], &x[row * k] + part_k);
    for (std::size_t column = 0; column < part_n; ++column)
      part_b.insert(part_b.end(), &b[column * k], &b[column * k] + part_k);
    const std::vector<float> stale(m * part_n, std::nanf(""));
    const ProductShape shape{.m = m, .n = part_n, .k = part_k};
    EXPECT_EQ(run(shape, n, k, part_x, b, {}, stale), run(shape, part_n, part_k, part_x, part_b, {}, stale));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PanelProducts, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& type) { return test::type_name(type.param); });

}  // namespace
}  // namespace kvs::cpu
