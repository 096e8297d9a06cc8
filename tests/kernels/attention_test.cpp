// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/kernels/support.h"

namespace kvs::test {
namespace {

using ::testing::ElementsAreArray;

struct Shape {
  std::size_t members, query_heads, kv_heads, tokens, head_dim, past, past_members;
  std::size_t keys() const { return past + tokens; }
};

struct Inputs {
  Shape shape;
  std::vector<float> q, k, v, past_k, past_v;
  float scale;
  std::size_t window = 0;
  float softcap = 0;
  std::vector<float> sinks = {};  // [query_head], or empty
  std::size_t chunk = 0, first_position = 0;
};

Inputs random_inputs(const Shape& s, DType type) {
  const auto make = [&](std::size_t count, std::uint32_t seed) { return rounded(random_values(count, seed), type); };
  return {s,
          make(s.members * s.query_heads * s.tokens * s.head_dim, 1),
          make(s.members * s.kv_heads * s.tokens * s.head_dim, 2),
          make(s.members * s.kv_heads * s.tokens * s.head_dim, 3),
          make(s.past_members * s.kv_heads * s.past * s.head_dim, 4),
          make(s.past_members * s.kv_heads * s.past * s.head_dim, 5),
          1.0F / std::sqrt(static_cast<float>(s.head_dim)),
          0,
          0,
          {},
          0,
          0};
}

/// Returns row `key` of a kv head, i.e. token `key` of past ++ own.
const float* row_of(const std::vector<float>& past, const std::vector<float>& own, const Shape& s, std::size_t member,
                    std::size_t head, std::size_t key) {
  if (key < s.past) {
    const std::size_t from = s.past_members == 1 ? 0 : member;
    return past.data() + ((from * s.kv_heads + head) * s.past + key) * s.head_dim;
  }
  return own.data() + ((member * s.kv_heads + head) * s.tokens + key - s.past) * s.head_dim;
}

/// softmax(q·k · scale) in double, one row, without the weight of a sink.
std::vector<double> reference_weights(const Inputs& in, std::size_t member, std::size_t head, std::size_t token) {
  const Shape& s = in.shape;
  const std::size_t group = head / (s.query_heads / s.kv_heads);
  const float* q = in.q.data() + ((member * s.query_heads + head) * s.tokens + token) * s.head_dim;
  std::vector<double> weights(s.past + token + 1);
  double largest = -1e300, sum = 0;
  for (std::size_t key = 0; key < weights.size(); ++key) {
    const float* k = row_of(in.past_k, in.k, s, member, group, key);
    for (std::size_t i = 0; i < s.head_dim; ++i) weights[key] += static_cast<double>(q[i]) * static_cast<double>(k[i]);
    weights[key] *= static_cast<double>(in.scale);
    const auto cap = static_cast<double>(in.softcap);
    if (cap > 0) weights[key] = cap * std::tanh(weights[key] / cap);
    if (in.window > 0 && key + in.window <= s.past + token) weights[key] = -std::numeric_limits<double>::infinity();
    const std::size_t position = in.first_position + s.past + token;
    if (in.chunk > 0 && (in.first_position + key) / in.chunk != position / in.chunk)
      weights[key] = -std::numeric_limits<double>::infinity();
    largest = std::max(largest, weights[key]);
  }
  if (!in.sinks.empty()) {
    largest = std::max(largest, static_cast<double>(in.sinks[head]));
    sum = std::exp(static_cast<double>(in.sinks[head]) - largest);
  }
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// The weighted sum of values, one output row.
std::vector<double> reference_row(const Inputs& in, std::size_t member, std::size_t head, std::size_t token) {
  const Shape& s = in.shape;
  const std::vector<double> weights = reference_weights(in, member, head, token);
  std::vector<double> out(s.head_dim, 0.0);
  for (std::size_t key = 0; key < weights.size(); ++key) {
    const float* v = row_of(in.past_v, in.v, s, member, head / (s.query_heads / s.kv_heads), key);
    for (std::size_t i = 0; i < s.head_dim; ++i) out[i] += weights[key] * static_cast<double>(v[i]);
  }
  return out;
}

/// @param mass  for a single token: the attention that each key received, [kv_head, past + 1]
std::vector<float> run(Backend& backend, const Inputs& in, std::vector<float>* mass = nullptr) {
  const Shape& s = in.shape;
  const auto q = uploaded<4>(backend, in.q, {s.members, s.query_heads, s.tokens, s.head_dim});
  const auto k = uploaded<4>(backend, in.k, {s.members, s.kv_heads, s.tokens, s.head_dim});
  const auto v = uploaded<4>(backend, in.v, {s.members, s.kv_heads, s.tokens, s.head_dim});
  constexpr std::size_t kSpare = 3;
  const auto past = [&](const std::vector<float>& values) {
    return uploaded<4>(backend, with_spare_rows(values, s.past, s.head_dim, kSpare),
                       {s.past_members, s.kv_heads, values.empty() ? 0 : s.past + kSpare, s.head_dim});
  };
  const auto past_k = past(in.past_k), past_v = past(in.past_v);
  const OwnedOperand out(backend, s.members * s.tokens, s.query_heads * s.head_dim);
  AttentionInput input{q.view(),  k.view(),  v.view(), {past_k.view(), past_v.view(), s.past},
                       in.scale,  in.window, in.chunk, in.first_position,
                       in.softcap};
  const BackendTensor<float, 2> received(backend, {s.kv_heads, mass == nullptr ? 0 : s.past + 1});
  input.mass = received.view();
  const auto sinks = uploaded<1>(backend, in.sinks, {in.sinks.size()});
  input.sinks = sinks.view();
  backend.attention(input, out);
  if (mass != nullptr) *mass = download(backend, received.view());
  return out.values();
}

/// Values lie in (−1, 1). A score carries at most head_dim roundings of Σ|q·k|, about head_dim / 4, times scale; an
/// error e of every score changes each weight by a factor of up to e^{2e}. In bf16 the weights (against an exact sum)
/// and the result are each rounded once more. The rest is f32 sums over the keys.
double tolerance(const Shape& s, DType type) {
  const auto d = static_cast<double>(s.head_dim);
  const double scores = 2 * d * 0x1p-24 * d / 4 / std::sqrt(d), sums = static_cast<double>(s.keys()) * 0x1p-24;
  return scores + sums + (type == DType::kBF16 ? 2 * half_step(type) : 0.0);
}

void expect_reference(const Inputs& in, const std::vector<float>& out, DType type) {
  const Shape& s = in.shape;
  for (std::size_t member = 0; member < s.members; ++member) {
    for (std::size_t head = 0; head < s.query_heads; ++head) {
      for (std::size_t token = 0; token < s.tokens; ++token) {
        const auto expected = reference_row(in, member, head, token);
        const float* row = out.data() + ((member * s.tokens + token) * s.query_heads + head) * s.head_dim;
        for (std::size_t i = 0; i < s.head_dim; ++i)
          ASSERT_NEAR(static_cast<double>(row[i]), expected[i], tolerance(s, type))
              << "member " << member << " head " << head << " token " << token << " channel " << i;
      }
    }
  }
}

class Attention : public ::testing::TestWithParam<DType> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend("cpu", GetParam(), 2);
};

TEST_P(Attention, EqualsASoftmaxInDouble) {
  for (const std::size_t head_dim : {64, 80, 128}) {
    for (const std::size_t tokens : {1, 7, 130}) {
      for (const auto& [query_heads, kv_heads] : {std::pair<std::size_t, std::size_t>{4, 1}, {9, 3}, {2, 2}}) {
        const Inputs in = random_inputs({1, query_heads, kv_heads, tokens, head_dim, 0, 0}, GetParam());
        SCOPED_TRACE(testing::Message() << head_dim << " dim " << tokens << " tokens " << query_heads << " heads");
        expect_reference(in, run(*backend_, in), GetParam());
      }
    }
  }
}

TEST_P(Attention, ReadsAllOfThePastOfEachMemberOrOfAll) {
  for (const std::size_t past : {1, 63, 256, 300}) {
    for (const std::size_t past_members : {1, 2}) {
      for (const std::size_t tokens : {1, 70}) {
        const Inputs in = random_inputs({2, 6, 2, tokens, 64, past, past_members}, GetParam());
        SCOPED_TRACE(testing::Message() << past << " past of " << past_members << ", " << tokens << " tokens");
        expect_reference(in, run(*backend_, in), GetParam());
      }
    }
  }
}

TEST_P(Attention, OfFewTokensTakesAnyNumberOfRowsKeysAndChannels) {
  for (const std::size_t head_dim : {1, 7, 8, 20, 63, 96}) {          // whole registers, and a part of one
    for (const std::size_t past : {1, 3, 4, 31, 33, 66, 257, 290}) {  // keys that are scored and mixed together
      for (const auto& [query_heads, tokens] :
           {std::pair<std::size_t, std::size_t>{2, 1}, {4, 1}, {6, 1}, {10, 1}, {2, 5}, {8, 2}}) {
        const Inputs in = random_inputs({1, query_heads, 2, tokens, head_dim, past, 1}, GetParam());
        SCOPED_TRACE(testing::Message() << head_dim << " dim, " << past << " past, " << query_heads << " heads, "
                                        << tokens << " tokens");
        expect_reference(in, run(*backend_, in), GetParam());
      }
    }
  }
}

TEST_P(Attention, ReadsTheWindowOnly) {
  // 1 is the token itself, 256 one run of keys, 300 more than all; 257 and 63 straddle runs.
  for (const std::size_t window : {1, 63, 256, 257, 1000}) {
    for (const auto& [tokens, past] : {std::pair<std::size_t, std::size_t>{1, 300}, {70, 0}, {70, 270}, {530, 0}}) {
      Inputs in = random_inputs({1, 6, 2, tokens, 64, past, past > 0 ? 1UL : 0UL}, GetParam());
      in.window = window;
      SCOPED_TRACE(testing::Message() << "window " << window << ", " << past << " past, " << tokens << " tokens");
      expect_reference(in, run(*backend_, in), GetParam());
    }
  }
}

TEST_P(Attention, ReadsItsChunkOnly) {
  // Chunks shorter and longer than blocks of queries and runs of keys, and one that holds everything.
  for (const std::size_t chunk : {1, 7, 63, 256, 300, 5000})
    for (const std::size_t first : {0, 5, 270}) {
      for (const auto& [tokens, past] : {std::pair<std::size_t, std::size_t>{1, 300}, {5, 61}, {70, 0}, {70, 270}}) {
        Inputs in = random_inputs({1, 6, 2, tokens, 64, past, past > 0 ? 1UL : 0UL}, GetParam());
        in.chunk = chunk;
        in.first_position = first;
        SCOPED_TRACE(testing::Message() << "chunk " << chunk << ", first position " << first << ", " << past
                                        << " past, " << tokens << " tokens");
        expect_reference(in, run(*backend_, in), GetParam());
      }
    }
}

// Steps that fit the blocks of queries and steps that do not, and first steps of several lengths.
TEST_P(Attention, ReadsRowsInTheirSettledFormLater) {
  for (const auto& [first, step] : {std::pair<std::size_t, std::size_t>{32, 16}, {36, 16}, {7, 3}, {300, 130}, {5, 5}})
    for (const std::size_t tokens : {4, 70, 333}) {
      const Settling settling{first, step};
      const Shape s{1, 6, 2, tokens, 64, 0, 1};
      const Inputs in = random_inputs(s, GetParam());
      const std::size_t settled = settling.before(tokens - 1), size = 2 * settled * s.head_dim;
      const std::vector<float> k = rounded(random_values(size, 6), GetParam()),
                               v = rounded(random_values(size, 7), GetParam());
      const auto q = uploaded<4>(*backend_, in.q, {1, 6, tokens, s.head_dim}),
                 own_k = uploaded<4>(*backend_, in.k, {1, 2, tokens, s.head_dim}),
                 own_v = uploaded<4>(*backend_, in.v, {1, 2, tokens, s.head_dim}),
                 past_k = uploaded<4>(*backend_, k, {1, 2, settled, s.head_dim}),
                 past_v = uploaded<4>(*backend_, v, {1, 2, settled, s.head_dim});
      AttentionInput input{.q = q.view(), .k = own_k.view(), .v = own_v.view(), .scale = in.scale};
      input.past = PastKv(past_k.view(), past_v.view(), settled);
      input.past.settling = settling;
      const OwnedOperand out(*backend_, tokens, s.query_heads * s.head_dim);
      backend_->attention(input, out);
      const std::vector<float> found = out.values();
      SCOPED_TRACE(testing::Message() << first << " first, " << step << " per step, " << tokens << " tokens");
      for (std::size_t token = 0; token < tokens; ++token) {
        Inputs read = in;
        for (std::size_t head = 0; head < 2; ++head) {
          const std::size_t count = settling.before(token) * s.head_dim;
          std::copy_n(k.data() + head * settled * s.head_dim, count, read.k.data() + head * tokens * s.head_dim);
          std::copy_n(v.data() + head * settled * s.head_dim, count, read.v.data() + head * tokens * s.head_dim);
        }
        for (std::size_t head = 0; head < s.query_heads; ++head) {
          const auto expected = reference_row(read, 0, head, token);
          const float* const row = found.data() + (token * s.query_heads + head) * s.head_dim;
          for (std::size_t i = 0; i < s.head_dim; ++i)
            ASSERT_NEAR(static_cast<double>(row[i]), expected[i], tolerance(s, GetParam())) << token << " " << head;
        }
      }
    }
}

TEST_P(Attention, GivesTheMassThatEachKeyReceived) {
  for (const std::size_t past : {0, 1, 256, 300, 515}) {
    for (const auto& [window, softcap] : {std::pair<std::size_t, float>{0, 0.0F}, {1, 0.0F}, {200, 0.0F}, {0, 2.0F}}) {
      Inputs in = random_inputs({1, 6, 2, 1, 80, past, 1}, GetParam());
      in.window = window;
      in.softcap = softcap;
      SCOPED_TRACE(testing::Message() << past << " past, window " << window << ", cap " << softcap);
      std::vector<float> mass;
      expect_reference(in, run(*backend_, in, &mass), GetParam());
      std::vector<double> expected(2 * (past + 1));
      for (std::size_t head = 0; head < 6; ++head) {
        const auto weights = reference_weights(in, 0, head, 0);
        for (std::size_t key = 0; key <= past; ++key) expected[head / 3 * (past + 1) + key] += weights[key];
      }
      for (std::size_t i = 0; i < expected.size(); ++i)  // three weights, each with its error; f32 in both types
        ASSERT_NEAR(static_cast<double>(mass[i]), expected[i], expected[i] * tolerance(in.shape, DType::kF32)) << i;
    }
  }
}

TEST_P(Attention, ASinkTakesItsShareOfTheWeights) {
  for (const auto& [tokens, past] : {std::pair<std::size_t, std::size_t>{1, 0}, {1, 300}, {5, 70}, {150, 130}}) {
    for (const auto& [window, softcap] : {std::pair<std::size_t, float>{0, 0.0F}, {20, 0.0F}, {0, 2.0F}}) {
      Inputs in = random_inputs({1, 6, 2, tokens, 80, past, 1}, GetParam());
      in.window = window;
      in.softcap = softcap;
      in.sinks = {-30, -1, 0, 0.5F, 2, 30};  // from no share to nearly all of it
      SCOPED_TRACE(testing::Message() << tokens << " tokens, " << past << " past, window " << window);
      std::vector<float> mass;
      const std::vector<float> out = run(*backend_, in, tokens == 1 ? &mass : nullptr);
      expect_reference(in, out, GetParam());
      for (std::size_t group = 0; tokens == 1 && group < 2; ++group) {
        double expected = 0, found = 0;
        for (std::size_t head = 3 * group; head < 3 * group + 3; ++head)
          for (const double weight : reference_weights(in, 0, head, 0)) expected += weight;
        for (std::size_t key = 0; key <= past; ++key) found += static_cast<double>(mass[group * (past + 1) + key]);
        EXPECT_NEAR(found, expected, 3 * tolerance(in.shape, DType::kF32));
      }
    }
  }
}

TEST_P(Attention, CapsScoresSoftly) {
  for (const std::size_t window : {0, 100}) {
    Inputs in = random_inputs({2, 4, 2, 150, 80, 130, 2}, GetParam());
    in.scale = 1;  // scores reach about ±15: well into the cap
    in.softcap = 5;
    in.window = window;
    // The bound for uncapped scores of this scale, which is √80 times the default scale; the cap only narrows the
    // scores.
    const auto out = run(*backend_, in);
    const Shape& s = in.shape;
    for (std::size_t row = 0; row < 2 * 150 * 4; ++row) {
      const std::size_t member = row / 600, token = row / 4 % 150, head = row % 4;
      const auto expected = reference_row(in, member, head, token);
      for (std::size_t i = 0; i < s.head_dim; ++i)
        ASSERT_NEAR(static_cast<double>(out[row * s.head_dim + i]), expected[i], 9 * tolerance(s, GetParam())) << row;
    }
  }
}

TEST_P(Attention, ForgetsNanBeforeTheWindow) {
  Inputs in = random_inputs({1, 1, 1, 140, 64, 0, 0}, GetParam());
  in.k[20 * 64] = std::numeric_limits<float>::quiet_NaN();
  in.window = 50;
  const auto out = run(*backend_, in);
  for (std::size_t token = 0; token < 140; ++token)
    EXPECT_EQ(std::isnan(out[token * 64]), token >= 20 && token < 70) << "token " << token;
}

TEST_P(Attention, SpansSeveralRunsOfKeys) {
  const Inputs in = random_inputs({1, 3, 1, 600, 64, 0, 0}, GetParam());
  expect_reference(in, run(*backend_, in), GetParam());
}

TEST_P(Attention, FollowsAMaximumThatRisesLate) {
  // Scores rise with the key from −64 to 64 (units of nats), so that every run of keys raises the maximum and the
  // softmax is all but one-hot on the latest keys. Two channels suffice: q = (8, 0 …), k = (key-dependent, 0 …).
  const Shape s{1, 1, 1, 520, 64, 0, 0};
  Inputs in = random_inputs(s, GetParam());
  in.scale = 1;
  std::fill(in.q.begin(), in.q.end(), 0.0F);
  std::fill(in.k.begin(), in.k.end(), 0.0F);
  for (std::size_t token = 0; token < s.tokens; ++token) {
    in.q[token * 64] = 8;
    in.k[token * 64] = static_cast<float>(token / 4) / 8.0F - 8.0F;  // 3 fraction bits, 7 bits in all: exact in bf16
  }
  expect_reference(in, run(*backend_, in), GetParam());
}

TEST_P(Attention, GivesAMemberTheSameBitsAloneAndInABatch) {
  const Shape s{3, 6, 2, 150, 64, 90, 3};
  const Inputs in = random_inputs(s, GetParam());
  const auto together = run(*backend_, in);
  const std::size_t row = s.tokens * s.query_heads * s.head_dim;
  for (std::size_t member = 0; member < s.members; ++member) {
    const auto part = [&](const std::vector<float>& all) {
      const auto size = static_cast<std::ptrdiff_t>(all.size() / s.members), at = static_cast<std::ptrdiff_t>(member);
      return std::vector<float>(all.begin() + at * size, all.begin() + (at + 1) * size);
    };
    Inputs alone{s, part(in.q), part(in.k), part(in.v), part(in.past_k), part(in.past_v), in.scale};
    alone.shape.members = alone.shape.past_members = 1;
    EXPECT_THAT(run(*backend_, alone), ElementsAreArray(together.data() + member * row, row));
  }
}

TEST_P(Attention, GivesTheSameBitsForEveryNumberOfThreads) {
  const Inputs in = random_inputs({2, 9, 3, 200, 64, 0, 0}, GetParam());
  const auto two = run(*backend_, in);
  for (const int threads : {1, 3}) {
    const auto other = make_backend("cpu", GetParam(), threads);
    EXPECT_THAT(run(*other, in), ElementsAreArray(two)) << threads << " threads";
  }
}

TEST_P(Attention, CarriesNanToTheTokensThatReadIt) {
  Inputs in = random_inputs({1, 1, 1, 140, 64, 0, 0}, GetParam());
  in.k[130 * 64] = std::numeric_limits<float>::quiet_NaN();
  const auto out = run(*backend_, in);
  for (std::size_t token = 0; token < 140; ++token)
    EXPECT_EQ(std::isnan(out[token * 64]), token >= 130) << "token " << token;
}

TEST_P(Attention, RefusesShapesThatDoNotFit) {
  const BackendTensor<float, 4> q(*backend_, {1, 3, 2, 64}), k(*backend_, {1, 2, 2, 64});
  const OwnedOperand out(*backend_, 2, 192);
  EXPECT_THROW(backend_->attention({q.view(), k.view(), k.view(), {}, 1.0F, 0, 0}, out),
               Error);  // 3 heads in groups of 2
  const BackendTensor<float, 4> q4(*backend_, {1, 4, 2, 64});
  const BackendTensor<float, 2> mass(*backend_, {2, 2});
  const OwnedOperand out4(*backend_, 2, 256);
  EXPECT_THROW(backend_->attention({q4.view(), k.view(), k.view(), {}, 1.0F, 0, 0, 0, 0, mass.view()}, out4),
               Error);  // the mass of two tokens
}

INSTANTIATE_TEST_SUITE_P(Types, Attention, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& type) { return type_name(type.param); });

}  // namespace
}  // namespace kvs::test
