// SPDX-License-Identifier: Apache-2.0
// On both devices, the operations that families other than Llama need: windows and soft caps, other norms, GELU.
#include "tests/kernels/cuda_support.h"

namespace kvs::test {
namespace {

class BothDevicesArchitectures : public BothDevicesByType {};

TEST_P(BothDevicesArchitectures, AttentionInWindowsAndWithSoftCaps) {
  struct Case {
    std::size_t tokens, past, head_dim, window;
    float softcap;
  };
  // Windows below, at and above the kernels' tiles of 32 and 64 keys; the first tile of a block may then hold no key
  // that its later rows see.
  for (const Case& c :
       {Case{1, 0, 64, 1, 0}, Case{7, 300, 80, 3, 0}, Case{kMany, 0, 64, 1, 0}, Case{kMany, 0, 128, 63, 0},
        Case{kMany, 77, 96, 64, 0}, Case{kMany, 1, 64, 65, 5}, Case{300, 0, 256, 100, 0}, Case{kMost, 0, 64, 1000, 0},
        Case{kMany, 50, 64, 0, 5}, Case{70, 0, 64, 5000, 0.5F}}) {
    const std::size_t heads = 4, kv_heads = 2;
    const auto [cpu, cuda] = both([&](Backend& backend) {
      const auto states = [&](std::size_t count, std::size_t tokens, std::uint32_t seed) {
        return uploaded<4>(backend, random_values(count * tokens * c.head_dim, seed), {1, count, tokens, c.head_dim});
      };
      const auto q = states(heads, c.tokens, 1), k = states(kv_heads, c.tokens, 2), v = states(kv_heads, c.tokens, 3);
      const auto past_k = states(kv_heads, c.past, 4), past_v = states(kv_heads, c.past, 5);
      const OwnedOperand out(backend, c.tokens, heads * c.head_dim);
      AttentionInput in{.q = q.view(), .k = k.view(), .v = v.view()};
      if (c.past > 0) in.past = {past_k.view(), past_v.view(), c.past};
      in.scale = 4 / std::sqrt(static_cast<float>(c.head_dim));  // scores at which soft caps and rounding are visible
      in.window = c.window;
      in.softcap = c.softcap;
      backend.attention(in, out);
      return out.values();
    });
    // A score is off by head_dim roundings of a sum below 4 √head_dim, a weight by as much relatively, a sum over keys
    // by one rounding each. Values are below 1. In bf16 both sides round the same q, k and v, then weights and result.
    const double d = static_cast<double>(c.head_dim), keys = static_cast<double>(c.past + c.tokens);
    const double tolerance = 2 * (2 * 4 * std::sqrt(d) * d * 0x1p-24 + keys * 0x1p-24 +
                                  (GetParam() == DType::kBF16 ? 2 * half_step(DType::kBF16) : 0.0));
    SCOPED_TRACE(testing::Message() << c.tokens << " tokens, " << c.past << " past, window " << c.window << ", cap "
                                    << c.softcap << ", head_dim " << c.head_dim);
    expect_close(cuda, cpu, tolerance);
  }
}

TEST_P(BothDevicesArchitectures, LayerNorm) {
  for (const std::size_t rows : kTokenCounts) {
    for (const std::size_t columns : {1, 64, 577}) {
      auto x = random_values(rows * columns, 1);
      for (float& value : x) value += 3;  // a mean that must not be lost in the squares
      const auto gain = random_values(columns, 2), bias = random_values(columns, 3);
      const auto [cpu, cuda] = both([&](Backend& backend) {
        const auto in = uploaded<2>(backend, x, {rows, columns});
        const auto scale = uploaded<1>(backend, gain, {columns}), shift = uploaded<1>(backend, bias, {columns});
        const OwnedOperand out(backend, rows, columns);
        backend.layer_norm(in.view(), scale.view(), shift.view(), 1e-5F, out);
        return out.values();
      });
      // The mean of values below 4 is off by columns · 2^-22 at most and is divided by a deviation of 0.5 or more (with
      // one column by the root of epsilon, 1/300, but then it is exact). Results are below 4 + 1.
      const double n = static_cast<double>(columns);
      SCOPED_TRACE(testing::Message() << rows << " x " << columns);
      expect_close(cuda, cpu, 2 * ((n + 8) * 0x1p-20 + 5 * half_step(GetParam())));
    }
  }
}

TEST_F(BothDevices, RmsNormThatJoinsTheResidualStream) {
  for (const std::size_t rows : kTokenCounts) {
    for (const std::size_t columns : {1, 64, 577}) {
      const auto x = random_values(rows * columns, 1), gain = random_values(columns, 2),
                 start = random_values(rows * columns, 3);
      const auto [cpu, cuda] = both([&](Backend& backend) {
        const auto in = uploaded<2>(backend, x, {rows, columns}), sum = uploaded<2>(backend, start, {rows, columns});
        const auto scale = uploaded<1>(backend, gain, {columns});
        backend.rms_norm_add(in.view(), scale.view(), 1e-5F, sum.view());
        return download(backend, sum.view());
      });
      // A sum of n squares is off by n · 2^-24 of itself at most; a normalised value is √n at most.
      const double n = static_cast<double>(columns);
      SCOPED_TRACE(testing::Message() << rows << " x " << columns);
      expect_close(cuda, cpu, (n + 8) * 0x1p-23 * std::sqrt(n));
    }
  }
}

TEST_F(BothDevices, NormOfHeadsAloneAndTogether) {
  for (const std::size_t tokens : kTokenCounts) {
    for (const std::size_t head_dim : {2, 64, 80, 128}) {
      for (const bool together : {false, true}) {
        const std::size_t members = 2, heads = 3, gains = (together ? heads : 1) * head_dim;
        const auto x = random_values(members * heads * tokens * head_dim, 1), gain = random_values(gains, 2);
        const auto [cpu, cuda] = both([&](Backend& backend) {
          const auto states = uploaded<4>(backend, x, {members, heads, tokens, head_dim});
          const auto scale = uploaded<1>(backend, gain, {gains});
          backend.norm_heads(states.view(), scale.view(), 1e-6F);
          return download(backend, states.view());
        });
        const double n = static_cast<double>(gains);  // as above
        SCOPED_TRACE(testing::Message() << tokens << " tokens, head_dim " << head_dim << ", together " << together);
        expect_close(cuda, cpu, (n + 8) * 0x1p-23 * std::sqrt(n));
      }
    }
  }
}

TEST_P(BothDevicesArchitectures, ActivationsGatedAndAlone) {
  for (const auto activation : {Activation::kSilu, Activation::kGeluTanh, Activation::kGeluErf,
                                Activation::kGeluSigmoid, Activation::kRelu, Activation::kReluSquared}) {
    for (const std::size_t rows : {std::size_t{1}, std::size_t{7}, kMany}) {
      const std::size_t columns = 77;
      auto x = random_values(rows * 2 * columns, 1);
      for (float& value : x) value *= 8;  // the tails, too
      const auto bias = random_values(2 * columns, 2);
      const auto [cpu, cuda] = both([&](Backend& backend) {
        std::vector<float> results = projected(backend, x, rows, activation, columns),
                           alone = projected(backend, x, rows, activation, 2 * columns, bias);
        results.insert(results.end(), alone.begin(), alone.end());
        return results;
      });
      // The exponential's argument is 40 at most, off by 3 · 40 · 2^-24 on either side, as is then its value
      // relatively.
      SCOPED_TRACE(testing::Message() << static_cast<int>(activation) << ", " << rows << " rows");
      expect_close(cuda, cpu, 1e-30, 2 * half_step(GetParam()) + 2 * (3 * 40 + 16) * 0x1p-24);
    }
  }
}

TEST_P(BothDevicesArchitectures, CrossEntropyOfSoftCappedLogits) {
  for (const std::size_t vocabulary : {5, 8193, 20000}) {
    const std::size_t rows = 70, k = 48;
    const auto x = random_values(rows * k, 1), w = random_values(vocabulary * k, 2);
    std::vector<std::int32_t> targets(rows);
    for (std::size_t row = 0; row < rows; ++row) targets[row] = static_cast<std::int32_t>(row * 7919 % vocabulary);
    const auto [cpu, cuda] = both([&](Backend& backend) {
      const OwnedOperand in(backend, x, rows, k);
      std::vector<float> nll(rows);
      backend.cross_entropy(in, *make_weight(backend, w, vocabulary, k), targets, nll, 2.0F);
      return nll;
    });
    // The bound without a cap, whose slope is below 1; tanh itself is within 4 units of 2^-24 · 2 on either side.
    const double sums = static_cast<double>(vocabulary) / 256 * 0x1p-24;
    SCOPED_TRACE(testing::Message() << "vocabulary " << vocabulary);
    expect_close(cuda, cpu, 2 * (2 * 48 * 48 * 0x1p-24 + 16 * 0x1p-24 + sums), 4 * 0x1p-24);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BothDevicesArchitectures, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& type) { return type_name(type.param); });

}  // namespace
}  // namespace kvs::test
