// SPDX-License-Identifier: Apache-2.0
// Every operation of the forward pass on both devices. The other tests of this folder check the CPU against
// definitions; a tolerance here is the sum of the rounding errors of both sides.
#include <gmock/gmock.h>

#include "core/error.h"
#include "tests/kernels/cuda_support.h"

namespace kvs::test {
namespace {

using ::testing::HasSubstr;

TEST(CudaBackend, IsRefusedWhereThereIsNoDevice) {
  if (cuda_available()) GTEST_SKIP() << "this machine has a CUDA device";
  try {
    make_backend("cuda", DType::kF32);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("device cuda"));
  }
  EXPECT_EQ(make_backend("auto", DType::kF32)->device(), "cpu");
}

TEST_F(BothDevices, AutoPicksCuda) { EXPECT_EQ(make_backend("auto", DType::kF32)->device(), "cuda"); }

TEST_F(BothDevices, SaysHowMuchMemoryWasTooMuch) {
  for (const std::size_t bytes : {SIZE_MAX / 2, std::size_t{1} << 50}) {
    try {
      cuda_->allocate(bytes);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
      EXPECT_THAT(error.what(), HasSubstr("out of memory for " + std::to_string(bytes) + " bytes"));
    }
  }
  cuda_->release(cuda_->allocate(0));  // and goes on
}

TEST_F(BothDevices, MovesValuesBetweenHostAndDevice) {
  const auto values = random_values(4097, 1);
  const auto a = uploaded<1>(*cuda_, values, {4097});
  const BackendTensor<float, 1> b(*cuda_, {4097});
  cuda_->copy(b.view().data(), a.view().data(), b.bytes());
  EXPECT_EQ(download(*cuda_, b.view()), values);
}

TEST_P(BothDevicesByType, RmsNorm) {
  for (const std::size_t rows : kTokenCounts) {
    for (const std::size_t columns : {1, 64, 577}) {
      const auto x = random_values(rows * columns, 1), gain = random_values(columns, 2);
      const auto [cpu, cuda] = both([&](Backend& backend) {
        const auto in = uploaded<2>(backend, x, {rows, columns});
        const auto scale = uploaded<1>(backend, gain, {columns});
        const OwnedOperand out(backend, rows, columns);
        backend.rms_norm(in.view(), scale.view(), 1e-5F, out);
        return out.values();
      });
      // An f32 sum of n squares is off by n · 2^-24 of itself at most, its root by half of that. Two roundings to the
      // operand's type, and a few of the products.
      const double relative = 2 * half_step(GetParam()) + (static_cast<double>(columns) + 8) * 0x1p-24;
      SCOPED_TRACE(testing::Message() << rows << " x " << columns);
      expect_close(cuda, cpu, 0, relative);
    }
  }
}

TEST_P(BothDevicesByType, LinearWithBiasAndAccumulation) {
  for (const std::size_t rows : kTokenCounts) {
    // k = 33 and 1 have no 16-byte alignment; n = 50 and 3 have none either.
    for (const auto& [n, k] : {std::pair<std::size_t, std::size_t>{576, 64}, {129, 80}, {50, 33}, {3, 1}}) {
      const auto x = random_values(rows * k, 1), w = random_values(n * k, 2), bias = random_values(n, 3),
                 start = random_values(rows * n, 4);
      for (const bool with_bias : {false, true}) {
        for (const bool accumulate : {false, true}) {
          const auto [cpu, cuda] = both([&](Backend& backend) {
            const OwnedOperand in(backend, x, rows, k);
            const auto weight =
                make_weight(backend, w, n, k, with_bias ? std::span<const float>(bias) : std::span<const float>());
            const auto out = uploaded<2>(backend, start, {rows, n});
            backend.linear(in, *weight, out.view(), accumulate);
            return download(backend, out.view());
          });
          // Both sides: k products of at most 1 and up to two terms of at most 1, each addition rounded at most by half
          // a unit of the running sum.
          const auto terms = static_cast<double>(k + 2);
          SCOPED_TRACE(testing::Message() << rows << " x " << n << " x " << k << (with_bias ? " bias" : "")
                                          << (accumulate ? " accumulate" : ""));
          expect_close(cuda, cpu, 2 * terms * terms * 0x1p-24);
        }
      }
    }
  }
}

TEST_P(BothDevicesByType, LinearInF32) {
  constexpr std::size_t kN = 129, kK = 80;
  for (const std::size_t rows : kTokenCounts) {
    const auto x = random_values(rows * kK, 1), w = random_values(kN * kK, 2), bias = random_values(kN, 3),
               start = random_values(rows * kN, 4);
    for (const bool accumulate : {false, true}) {
      const auto [cpu, cuda] = both([&](Backend& backend) {
        const auto in = uploaded<2>(backend, x, {rows, kK}), out = uploaded<2>(backend, start, {rows, kN});
        backend.linear_f32(in.view(), *make_weight(backend, w, kN, kK, bias, true), out.view(), accumulate);
        return download(backend, out.view());
      });
      constexpr double kTerms = kK + 2;  // as above, whatever the compute type is
      SCOPED_TRACE(testing::Message() << rows << (accumulate ? " accumulate" : ""));
      expect_close(cuda, cpu, 2 * kTerms * kTerms * 0x1p-24);
    }
  }
}

TEST_P(BothDevicesByType, RaiseOfGivenProducts) {
  for (const std::size_t rows : kTokenCounts) {
    for (const std::size_t columns : {77, 80}) {  // of 16-byte rows or not
      auto gate_up = random_values(rows * 2 * columns, 1);
      for (float& value : gate_up) value *= 20;  // also the tails of the sigmoid
      const auto [cpu, cuda] =
          both([&](Backend& backend) { return projected(backend, gate_up, rows, Activation::kSilu, columns); });
      // exp within 2 units, a sum, a quotient and a product on either side; e^20 · 2^-149 is the subnormals' share.
      SCOPED_TRACE(testing::Message() << rows << " x " << columns);
      expect_close(cuda, cpu, 0x1p-120, 2 * half_step(GetParam()) + 16 * 0x1p-24);
    }
  }
}

TEST_P(BothDevicesByType, RaiseOfAProductWithBias) {
  const std::size_t k = 16;
  for (const std::size_t rows : {1, 7, 1000}) {
    for (const std::size_t columns : {33, 64}) {
      const auto x = random_values(rows * k, 1), w = random_values(2 * columns * k, 2),
                 bias = random_values(2 * columns, 3);
      const auto [cpu, cuda] = both([&](Backend& backend) {
        const OwnedOperand in(backend, x, rows, k), out(backend, rows, columns);
        backend.up_projection(in, *make_weight(backend, w, 2 * columns, k, bias), Activation::kGeluTanh, out);
        return out.values();
      });
      // The sum of k products below 1 and a bias is off by (k + 1)² units of 2^-24 on either side; CUDA may also round
      // the products' sum, below k, to the type. GELU's slope is below 1.2, and up below k + 1.
      const double sum = 2 * 17 * 17 * 0x1p-24 + static_cast<double>(k) * half_step(GetParam());
      SCOPED_TRACE(testing::Message() << rows << " x " << columns);
      expect_close(cuda, cpu, 1.2 * 2 * 17 * sum, 2 * half_step(GetParam()) + 40 * 0x1p-24);
    }
  }
}

TEST_P(BothDevicesByType, GatherOfRowsInAnyOrder) {
  for (const std::size_t count : kTokenCounts) {
    for (const std::size_t columns : {13, 64}) {
      const std::size_t vocabulary = 300;
      const auto table = random_values(vocabulary * columns, 1);
      std::vector<std::int32_t> rows(count);
      for (std::size_t row = 0; row < count; ++row) rows[row] = static_cast<std::int32_t>(row * 7919 % vocabulary);
      const auto [cpu, cuda] = both([&](Backend& backend) {
        const OwnedOperand operand(backend, table, vocabulary, columns);
        const BackendTensor<float, 2> out(backend, {count, columns});
        backend.gather(operand, rows, 3.3F, out.view());
        return download(backend, out.view());
      });
      EXPECT_EQ(cuda, cpu) << count << " rows of " << columns;
    }
  }
}

TEST_F(BothDevices, SplitHeadsMovesTheSameBits) {
  for (const std::size_t tokens : kTokenCounts) {
    for (const auto& [head_dim, kv_heads] : {std::pair<std::size_t, std::size_t>{10, 3}, {64, 3}, {64, 0}}) {
      const std::size_t members = 2, query_heads = 6;
      const auto qkv = random_values(members * tokens * (query_heads + 2 * kv_heads) * head_dim, 1);
      const auto [cpu, cuda] = both([&, head_dim = head_dim, kv_heads = kv_heads](Backend& backend) {
        const auto in = uploaded<2>(backend, qkv, {members * tokens, (query_heads + 2 * kv_heads) * head_dim});
        const BackendTensor<float, 4> q(backend, {members, query_heads, tokens, head_dim}),
            k(backend, {members, kv_heads, tokens, head_dim}), v(backend, {members, kv_heads, tokens, head_dim});
        backend.split_heads(in.view(), q.view(), k.view(), v.view());
        return std::array{download(backend, q.view()), download(backend, k.view()), download(backend, v.view())};
      });
      EXPECT_EQ(cuda, cpu) << tokens << " tokens";
    }
  }
}

// Without a hook a pass attends at once, with a hook step by step: on either device the bits are the same, so a hook
// that only reads changes nothing.
TEST_P(BothDevicesByType, SelfAttentionGivesTheBitsOfItsSteps) {
  for (const std::size_t tokens : kTokenCounts) {
    for (const auto& [head_dim, half] : {std::pair<std::size_t, std::size_t>{64, 32}, {10, 5}, {64, 8}, {12, 4}}) {
      const std::size_t members = 2, query_heads = 4, kv_heads = 2, first = 5, heads = query_heads + 2 * kv_heads;
      const auto rows = random_values(members * tokens * heads * head_dim, 1);
      const auto cosine = random_values((tokens + first) * half, 2), sine = random_values((tokens + first) * half, 3);
      const auto run = [&](Backend& backend, bool at_once) {
        const auto qkv = uploaded<2>(backend, rows, {members * tokens, heads * head_dim});
        const auto c = uploaded<2>(backend, cosine, {tokens + first, half});
        const auto s = uploaded<2>(backend, sine, {tokens + first, half});
        const RopeTable table{c.view(), s.view()};
        const OwnedOperand out(backend, members * tokens, query_heads * head_dim);
        if (at_once) {
          backend.self_attention({qkv.view(), members, query_heads, kv_heads, table, first, 0.3F, 0, 0}, out);
          return out.values();
        }
        const BackendTensor<float, 4> q(backend, {members, query_heads, tokens, head_dim}),
            k(backend, {members, kv_heads, tokens, head_dim}), v(backend, {members, kv_heads, tokens, head_dim});
        backend.split_heads(qkv.view(), q.view(), k.view(), v.view());
        for (const auto* tensor : {&q, &k}) backend.rope(tensor->view(), table, first, RopeDirection::kForward, {});
        backend.attention({q.view(), k.view(), v.view(), {}, 0.3F, 0, 0}, out);
        return out.values();
      };
      SCOPED_TRACE(testing::Message() << tokens << " tokens, " << half << " of " << head_dim);
      EXPECT_EQ(run(*cuda_, true), run(*cuda_, false));
      EXPECT_EQ(run(*cpu_, true), run(*cpu_, false));
    }
  }
}

TEST_F(BothDevices, RopeInBothDirectionsAndByChunk) {
  for (const std::size_t head_dim : {64, 80, 128}) {
    for (const std::size_t tokens : kTokenCounts) {
      const std::size_t members = 2, heads = 3, first = 5, half = head_dim / 2;
      const auto x = random_values(members * heads * tokens * head_dim, 1);
      const auto cosine = random_values((tokens + first) * half, 2), sine = random_values((tokens + first) * half, 3);
      std::vector<std::uint8_t> some(heads * half);
      for (std::size_t i = 0; i < some.size(); ++i) some[i] = i % 3 == 0;
      for (const auto direction : {RopeDirection::kForward, RopeDirection::kInverse}) {
        for (const auto& chunks : {std::vector<std::uint8_t>(), some}) {
          const auto [cpu, cuda] = both([&](Backend& backend) {
            const auto states = uploaded<4>(backend, x, {members, heads, tokens, head_dim});
            const auto c = uploaded<2>(backend, cosine, {tokens + first, half});
            const auto s = uploaded<2>(backend, sine, {tokens + first, half});
            backend.rope(states.view(), {c.view(), s.view()}, first, direction, chunks);
            return download(backend, states.view());
          });
          SCOPED_TRACE(testing::Message() << tokens << " tokens " << head_dim << " dim "
                                          << (direction == RopeDirection::kForward ? "forward " : "inverse ")
                                          << (chunks.empty() ? "all chunks" : "some chunks"));
          expect_close(cuda, cpu, 4 * 0x1p-24);  // two products below 1 and their sum below 2, on either side
        }
      }
    }
  }
}

TEST_P(BothDevicesByType, CrossEntropyInSlicesOfTheVocabulary) {
  for (const std::size_t rows : kTokenCounts) {
    for (const std::size_t vocabulary : {5, 8192, 8193, 20000}) {
      if (rows * vocabulary > 20'000'000 && GetParam() == DType::kF32) continue;  // seconds on the CPU; bf16 covers it
      const std::size_t k = 48;
      const auto x = random_values(rows * k, 1), w = random_values(vocabulary * k, 2);
      std::vector<std::int32_t> targets(rows);
      for (std::size_t row = 0; row < rows; ++row)
        targets[row] = row % 5 == 4 ? -1 : static_cast<std::int32_t>(row * 7919 % vocabulary);
      const auto [cpu, cuda] = both([&](Backend& backend) {
        const OwnedOperand in(backend, x, rows, k);
        std::vector<float> nll(rows, std::numeric_limits<float>::quiet_NaN());
        backend.cross_entropy(in, *make_weight(backend, w, vocabulary, k), targets, nll, 0);
        return nll;
      });
      // On either side two logits of 48 products below 1, a sum of exponentials in f32 and the f32 result.
      const double sums = static_cast<double>(vocabulary) / 256 * 0x1p-24;
      SCOPED_TRACE(testing::Message() << rows << " rows, vocabulary " << vocabulary);
      expect_close(cuda, cpu, 2 * (2 * 48 * 48 * 0x1p-24 + sums), 4 * 0x1p-24);
    }
  }
}

TEST_P(BothDevicesByType, CrossEntropyRefusesLogitsThatAreNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const std::size_t at : {0UL, 8191UL, 8192UL, 8999UL}) {
      std::vector<float> w(9000, 1.0F);
      w[at] = bad;
      const auto weight = make_weight(*cuda_, w, 9000, 1);
      const OwnedOperand x(*cuda_, {1, 1}, 2, 1);
      std::vector<float> nll(2);
      const std::vector<std::int32_t> targets{0, 1};
      try {
        cuda_->cross_entropy(x, *weight, targets, nll, 0);
        ADD_FAILURE() << "no error for " << bad << " at " << at;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kData);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BothDevicesByType, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& type) { return type_name(type.param); });

}  // namespace
}  // namespace kvs::test
