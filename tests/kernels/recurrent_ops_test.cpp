// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/support.h"

namespace kvs::test {
namespace {

using Values = std::vector<float>;

/// The inputs of a recurrence as columns of one matrix of rows, behind a column that belongs to none of them.
struct Recurrence {
  std::size_t members = 1, tokens = 0, key_heads = 2, value_heads = 6, key_dim = 20, value_dim = 24;
  bool delta = true, tiled = false;

  std::size_t key_head(std::size_t head) const { return tiled ? head % key_heads : head * key_heads / value_heads; }
  std::size_t keys() const { return key_heads * key_dim; }
  std::size_t values() const { return value_heads * value_dim; }
  std::size_t width() const { return 1 + 2 * keys() + values() + 2 * value_heads; }
  std::size_t state_size() const { return value_heads * key_dim * value_dim; }
};

float log_decay(std::size_t head) { return -0.1F - 0.7F * static_cast<float>(head); }
float bias(std::size_t head) { return 0.3F * static_cast<float>(head) - 0.5F; }
float skip(std::size_t head) { return 0.5F + static_cast<float>(head); }

Values by_head(const Recurrence& r, float (*f)(std::size_t)) {
  Values values;
  for (std::size_t head = 0; head < r.value_heads; ++head) values.push_back(f(head));
  return values;
}

/// Runs rows [member · token, width] and moves `state` on if there is one member. @return out
Values run(Backend& backend, const Recurrence& r, const Values& rows, Values& state) {
  const std::size_t count = rows.size() / r.width();
  const auto x = uploaded<2>(backend, rows, {count, r.width()});
  const auto decay = uploaded<1>(backend, by_head(r, log_decay), {r.value_heads}),
             bias_of = uploaded<1>(backend, by_head(r, bias), {r.value_heads}),
             skips = uploaded<1>(backend, by_head(r, skip), {r.value_heads});
  const auto held = uploaded<3>(backend, state, {r.value_heads, r.key_dim, r.value_dim});
  const BackendTensor<float, 2> out(backend, {count, r.values()});
  const std::size_t steps = 1 + 2 * r.keys() + r.values();
  RecurrenceInput input{.queries = {x.view(), 1, r.keys()},
                        .keys = {x.view(), 1 + r.keys(), r.keys()},
                        .values = {x.view(), 1 + 2 * r.keys(), r.values()},
                        .steps = {x.view(), steps, r.value_heads},
                        .strengths = {},
                        .members = r.members,
                        .key_heads = r.key_heads,
                        .value_heads = r.value_heads,
                        .tiled = r.tiled,
                        .decay = decay.view(),
                        .step_bias = bias_of.view(),
                        .unit_keys = r.delta,
                        .state = held.view()};
  if (r.delta) input.strengths = {x.view(), steps + r.value_heads, r.value_heads};
  if (!r.delta) {
    input.skip = skips.view();
    input.least_step = 0.4F;
    input.most_step = 0.9F;
  }
  backend.recur(input, out.view());
  state = download(backend, held.view());
  return download(backend, out.view());
}

/// The recurrence of one head in double precision, as its definition says. @return out [token, value_dim]
std::vector<double> by_definition(const Recurrence& r, const float* rows, std::size_t head,
                                  std::vector<double>& state) {
  const std::size_t dk = r.key_dim, dv = r.value_dim, key_head = r.key_head(head);
  std::vector<double> out;
  for (std::size_t t = 0; t < r.tokens; ++t) {
    const float* const row = rows + t * r.width();
    std::vector<double> q(row + 1 + key_head * dk, row + 1 + (key_head + 1) * dk),
        k(row + 1 + r.keys() + key_head * dk, row + 1 + r.keys() + (key_head + 1) * dk),
        v(row + 1 + 2 * r.keys() + head * dv, row + 1 + 2 * r.keys() + (head + 1) * dv);
    const float* const rates = row + 1 + 2 * r.keys() + r.values();
    double step = std::log1p(std::exp(double{rates[head]} + double{bias(head)})), beta = step;
    if (r.delta) {
      beta = 1 / (1 + std::exp(-double{rates[r.value_heads + head]}));
      for (auto* x : {&q, &k}) {
        double squares = 1e-6;
        for (const double value : *x) squares += value * value;
        for (double& value : *x) value /= std::sqrt(squares * (x == &q ? static_cast<double>(dk) : 1.0));
      }
    } else {
      beta = step = std::clamp(step, double{0.4F}, double{0.9F});
    }
    const double decay = std::exp(step * double{log_decay(head)});
    for (double& value : state) value *= decay;
    for (std::size_t j = 0; j < dv; ++j) {
      double read = 0, mixed = r.delta ? 0 : double{skip(head)} * v[j];
      for (std::size_t i = 0; i < dk; ++i) read += state[i * dv + j] * k[i];
      const double written = beta * (r.delta ? v[j] - read : v[j]);
      for (std::size_t i = 0; i < dk; ++i) {
        state[i * dv + j] += k[i] * written;
        mixed += state[i * dv + j] * q[i];
      }
      out.push_back(mixed);
    }
  }
  return out;
}

void expect_near(const Values& found, const Values& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], tolerance) << i;
}

class Recurrences : public testing::TestWithParam<bool> {
 protected:
  Recurrence recurrence(std::size_t tokens, std::size_t members = 1) const {
    return {.members = members, .tokens = tokens, .delta = GetParam()};
  }
  std::unique_ptr<Backend> backend_ = make_backend("cpu", DType::kF32, 2);
};

TEST_P(Recurrences, EqualTheDefinition) {
  for (const std::size_t tokens : {1, 7, 8, 16, 64, 150}) {
    SCOPED_TRACE(tokens);
    Recurrence r = recurrence(tokens);
    r.tiled = tokens == 64;
    const Values rows = random_values(tokens * r.width(), 3), before = random_values(r.state_size(), 4);
    Values state = before;
    const Values out = run(*backend_, r, rows, state);
    for (std::size_t head = 0; head < r.value_heads; ++head) {
      const std::size_t size = r.key_dim * r.value_dim;
      std::vector<double> expected_state(before.begin() + static_cast<std::ptrdiff_t>(head * size),
                                         before.begin() + static_cast<std::ptrdiff_t>((head + 1) * size));
      const std::vector<double> expected = by_definition(r, rows.data(), head, expected_state);
      for (std::size_t t = 0; t < tokens; ++t)
        for (std::size_t j = 0; j < r.value_dim; ++j)
          ASSERT_NEAR(out[t * r.values() + head * r.value_dim + j], expected[t * r.value_dim + j], 2e-5) << head << t;
      for (std::size_t i = 0; i < size; ++i) ASSERT_NEAR(state[head * size + i], expected_state[i], 1e-5) << head;
    }
  }
}

TEST_P(Recurrences, GroupsAndSingleTokensEqualOnePass) {
  constexpr std::size_t kTokens = 150;
  const Recurrence r = recurrence(kTokens);
  const Values rows = random_values(kTokens * r.width(), 5);
  Values whole(r.state_size());
  const Values expected = run(*backend_, r, rows, whole);
  for (const std::size_t group : {1, 5, 40}) {
    Values state(r.state_size()), out;
    for (std::size_t first = 0; first < kTokens; first += group) {
      const std::size_t count = std::min(group, kTokens - first);
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first * r.width());
      const Values part = run(*backend_, r, {begin, begin + static_cast<std::ptrdiff_t>(count * r.width())}, state);
      out.insert(out.end(), part.begin(), part.end());
    }
    expect_near(out, expected, 1e-5);
    expect_near(state, whole, 1e-5);
  }
}

TEST_P(Recurrences, MembersBeginAlikeAndLeaveTheState) {
  constexpr std::size_t kTokens = 40;
  const Recurrence one = recurrence(kTokens), three = recurrence(kTokens, 3);
  const Values rows = random_values(3 * kTokens * one.width(), 6), before = random_values(one.state_size(), 7);
  Values state = before;
  const Values batch = run(*backend_, three, rows, state);
  EXPECT_EQ(state, before);
  for (std::size_t member = 0; member < 3; ++member) {
    Values own = before;
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(member * kTokens * one.width());
    const Values alone = run(*backend_, one, {begin, begin + static_cast<std::ptrdiff_t>(kTokens * one.width())}, own);
    EXPECT_TRUE(
        std::equal(alone.begin(), alone.end(), batch.begin() + static_cast<std::ptrdiff_t>(member * alone.size())));
  }
}

TEST_P(Recurrences, StrongDecayNeitherOverflowsNorLosesRecentTokens) {
  Recurrence r = recurrence(130);
  Values rows = random_values(r.tokens * r.width(), 8);
  for (std::size_t t = 0; t < r.tokens; ++t)  // softplus(90): a state that forgets everything at once
    for (std::size_t head = 0; head < r.value_heads; ++head)
      rows[t * r.width() + 1 + 2 * r.keys() + r.values() + head] = t % 3 == 0 ? 90.0F : -20.0F;
  Values state(r.state_size());
  const Values out = run(*backend_, r, rows, state);
  std::vector<double> expected_state(r.key_dim * r.value_dim);
  const std::vector<double> expected = by_definition(r, rows.data(), 0, expected_state);
  for (std::size_t t = 0; t < r.tokens; ++t)
    for (std::size_t j = 0; j < r.value_dim; ++j)
      ASSERT_NEAR(out[t * r.values() + j], expected[t * r.value_dim + j], 2e-5) << t;
}

INSTANTIATE_TEST_SUITE_P(Rules, Recurrences, testing::Bool(),
                         [](const auto& rule) { return rule.param ? "Delta" : "Duality"; });

class Convolutions : public testing::Test {
 protected:
  static constexpr std::size_t kChannels = 19, kTaps = 4, kTokens = 9;

  /// Convolves columns 2 to 20 of rows [row, 24]. @param past  moved on
  Values run(const Values& rows, std::size_t members, bool silu, bool factor, Values& past) {
    const auto x = uploaded<2>(*backend_, rows, {rows.size() / 24, 24});
    const auto taps = uploaded<2>(*backend_, taps_, {kTaps, kChannels}),
               held = uploaded<2>(*backend_, past, {kTaps - 1, kChannels});
    const auto bias = uploaded<1>(*backend_, bias_, {kChannels});
    const BackendTensor<float, 2> out(*backend_, {rows.size() / 24, kChannels});
    ConvolutionInput input{.x = {x.view(), 2, kChannels},
                           .members = members,
                           .taps = taps.view(),
                           .bias = bias.view(),
                           .past = held.view(),
                           .silu = silu};
    if (factor) input.factor = {x.view(), 5, kChannels};
    backend_->convolve(input, out.view());
    past = download(*backend_, held.view());
    return download(*backend_, out.view());
  }

  std::unique_ptr<Backend> backend_ = make_backend("cpu", DType::kF32, 2);
  Values taps_ = random_values(kTaps * kChannels, 1), bias_ = random_values(kChannels, 2);
};

TEST_F(Convolutions, EqualTheDefinition) {
  const Values rows = random_values(kTokens * 24, 3), before = random_values((kTaps - 1) * kChannels, 4);
  for (const bool factor : {false, true}) {
    Values past = before;
    const Values out = run(rows, 1, true, factor, past);
    const auto input = [&](std::size_t position, std::size_t channel) {  // counted from the oldest one before
      if (position < kTaps - 1) return double{before[position * kChannels + channel]};
      const float* const row = rows.data() + (position - (kTaps - 1)) * 24;
      return double{row[2 + channel]} * (factor ? double{row[5 + channel]} : 1.0);
    };
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      for (std::size_t t = 0; t < kTokens; ++t) {
        double sum = double{bias_[channel]};
        for (std::size_t tap = 0; tap < kTaps; ++tap)
          sum += double{taps_[tap * kChannels + channel]} * input(t + tap, channel);
        ASSERT_NEAR(out[t * kChannels + channel], sum / (1 + std::exp(-sum)), 1e-6) << t << " " << channel;
      }
      for (std::size_t n = 0; n + 1 < kTaps; ++n)
        ASSERT_NEAR(past[n * kChannels + channel], input(kTokens + n, channel), 1e-6) << n;
    }
  }
}

TEST_F(Convolutions, GroupsAndMembersEqualOnePass) {
  const Values rows = random_values(kTokens * 24, 5);
  Values whole((kTaps - 1) * kChannels), past = whole, out;
  const Values expected = run(rows, 1, false, true, whole);
  for (const std::size_t group : {1, 2, 5}) {
    out.clear();
    past.assign(past.size(), 0.0F);
    for (std::size_t first = 0; first < kTokens; first += group) {
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first * 24);
      const Values part = run({begin, begin + static_cast<std::ptrdiff_t>(24 * std::min(group, kTokens - first))}, 1,
                              false, true, past);
      out.insert(out.end(), part.begin(), part.end());
    }
    EXPECT_EQ(out, expected) << group;
    EXPECT_EQ(past, whole) << group;
  }
  Values twice = rows, begin((kTaps - 1) * kChannels);
  twice.insert(twice.end(), rows.begin(), rows.end());
  const Values batch = run(twice, 2, false, true, begin);
  EXPECT_EQ(begin, Values(begin.size()));
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), batch.begin()));
  EXPECT_TRUE(
      std::equal(expected.begin(), expected.end(), batch.begin() + static_cast<std::ptrdiff_t>(expected.size())));
}

double silu(double x) { return x / (1 + std::exp(-x)); }

TEST(Gates, EqualTheDefinition) {
  constexpr std::size_t kRows = 3, kChannels = 12, kGroup = 4, kStride = 15;
  const Values x = random_values(kRows * kChannels, 1), gates = random_values(kRows * kStride, 2),
               gains = random_values(kChannels, 3);
  for (const DType type : {DType::kF32, DType::kBF16}) {
    const auto backend = make_backend("cpu", type, 2);
    const auto gate = uploaded<2>(*backend, gates, {kRows, kStride});
    for (const bool first : {false, true})
      for (const std::size_t shared : {kGroup, kChannels}) {
        const auto gain =
            uploaded<1>(*backend, {gains.begin(), gains.begin() + static_cast<std::ptrdiff_t>(shared)}, {shared});
        const auto rows = uploaded<2>(*backend, x, {kRows, kChannels});
        const OwnedOperand out(*backend, kRows, kChannels);
        backend->gate({.x = rows.view(),
                       .gate = {gate.view(), 2, kChannels},
                       .gain = gain.view(),
                       .norm_channels = kGroup,
                       .epsilon = 0.01F,
                       .gate_first = first},
                      out);
        const Values found = download(*backend, static_cast<const Operand&>(out));
        for (std::size_t i = 0; i < found.size(); ++i) {
          const auto value = [&](std::size_t at) {
            const double f = silu(double{gates[at / kChannels * kStride + 2 + at % kChannels]});
            return double{x[at]} * (first ? f : 1.0);
          };
          double squares = 0;
          for (std::size_t at = i / kGroup * kGroup; at < i / kGroup * kGroup + kGroup; ++at)
            squares += value(at) * value(at);
          double expected =
              value(i) / std::sqrt(squares / kGroup + double{0.01F}) * double{gains[i % kChannels % shared]};
          if (!first) expected *= silu(double{gates[i / kChannels * kStride + 2 + i % kChannels]});
          ASSERT_NEAR(found[i], expected, 1e-6 + half_step(type) * std::abs(expected)) << i << first << shared;
        }
      }
  }
}

TEST(Gates, WithoutANormMultiply) {
  const auto backend = make_backend("cpu", DType::kF32, 1);
  const Values x = random_values(20, 1), gates = random_values(20, 2);
  const auto gate = uploaded<2>(*backend, gates, {2, 10});
  for (const bool activated : {false, true}) {
    const auto rows = uploaded<2>(*backend, x, {2, 10});
    const OwnedOperand out(*backend, 2, 10);
    backend->gate({.x = rows.view(), .gate = {gate.view(), 0, 10}, .silu = activated}, out);
    const Values found = download(*backend, static_cast<const Operand&>(out));
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], double{x[i]} * (activated ? silu(double{gates[i]}) : double{gates[i]}), 1e-6) << i;
  }
  const OwnedOperand in_place(*backend, x, 2, 10);
  backend->gate_by_sigmoid(gate.view(), in_place);
  const Values found = download(*backend, static_cast<const Operand&>(in_place));
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], double{x[i]} / (1 + std::exp(-double{gates[i]})), 1e-6) << i;
}

}  // namespace
}  // namespace kvs::test
