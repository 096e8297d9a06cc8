// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/kernels/support.h"

namespace kvs::test {
namespace {

class Rope : public ::testing::TestWithParam<DType> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend("cpu", GetParam(), 2);
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

INSTANTIATE_TEST_SUITE_P(Types, Rope, ::testing::Values(DType::kF32),
                         [](const auto& type) { return type_name(type.param); });

}  // namespace
}  // namespace kvs::test
