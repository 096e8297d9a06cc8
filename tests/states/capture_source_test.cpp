// SPDX-License-Identifier: Apache-2.0
#include "states/capture_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/error.h"

namespace kvs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::size_t kTokens = 3;

/// A capture in memory: two documents, layers 1 and 4, one KV head of size 4 and two query heads. The value of an
/// element shows its origin.
class MemoryReader final : public CaptureReader {
 public:
  explicit MemoryReader(StateSet states) {
    header_.layers = {1, 4};
    header_.query_heads = 2;
    header_.kv_heads = 1;
    header_.head_dim = 4;
    header_.model_layers = 5;
    header_.rotary_dim = 4;
    header_.rope_kinds.assign(5, 0);
    header_.rope_factors = {1};
    header_.rope_frequencies = {1, 0.01};
    header_.states = std::move(states);
    header_.tokens = kTokens;
    header_.documents = 2;
  }
  const CaptureHeader& header() const noexcept override { return header_; }
  const Json& identity() const noexcept override { return identity_; }
  bool has_checksums() const noexcept override { return true; }
  std::string sha256() override { return ""; }
  std::uint64_t documents() const noexcept override { return 2; }
  std::vector<std::int32_t> tokens(std::uint64_t) override { return {1, 2, 3}; }
  std::vector<float> nll(std::uint64_t) override { return {0, 0}; }
  bool read_states(std::uint64_t document, std::int32_t layer, StateKind kind, TensorView<float, 3> out) override {
    for (std::size_t i = 0; i < out.size(); ++i) out.data()[i] = value(document, layer, kind, i);
    return !(document == 1 && damaged);
  }
  std::vector<std::byte> read_stored(std::uint64_t, std::int32_t, StateKind) override { return {}; }
  static float value(std::uint64_t document, std::int32_t layer, StateKind kind, std::size_t index) {
    return static_cast<float>(1000 * document + 100 * static_cast<std::size_t>(layer) + 30 * static_cast<int>(kind) +
                              index);
  }
  /// Layer 4 gets its own RoPE, which rotates only channels 0 and 1, and multiplies them by 2.
  void give_layer_4_another_rope() {
    header_.rotary_dim = 2;
    header_.rope_kinds = {0, 0, 0, 0, 1};
    header_.rope_factors = {1, 2};
    header_.rope_frequencies = {1, 0.25};
  }
  /// Layer 4 gets two KV heads of size 2.
  void give_layer_4_other_heads() {
    header_.kv_heads = LayerSizes({0, 1, 0, 0, 2});
    header_.head_dim = LayerSizes({0, 4, 0, 0, 2});
    header_.rotary_dim = LayerSizes({4, 2});
    header_.rope_kinds = {0, 0, 0, 0, 1};
    header_.rope_factors = {1, 1};
    header_.rope_frequencies = {1, 0.01, 1};
    header_.layers_without_cache = {0, 2, 3};
  }
  bool damaged = false;

 private:
  CaptureHeader header_;
  Json identity_;
};

std::vector<float> expected(std::uint64_t document, std::int32_t layer, StateKind kind, std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = MemoryReader::value(document, layer, kind, i);
  return values;
}

std::unique_ptr<Backend> cpu() { return make_backend("cpu", DType::kF32); }

TEST(CaptureSource, GivesTheStatesOfTheLayersAskedFor) {
  MemoryReader reader({StateKind::kQPre, StateKind::kKPre, StateKind::kV});
  const std::unique_ptr<Backend> backend = cpu();
  CaptureSource source(reader, *backend);
  EXPECT_EQ(source.documents(), 2U);
  EXPECT_EQ(source.tokens(), kTokens);
  std::vector<std::size_t> layers;
  source.visit(1, {.layers = {1, 4}, .states = {StateKind::kQPre, StateKind::kV}}, [&](const DocumentStates& states) {
    const auto layer = static_cast<std::int32_t>(states.layer);
    layers.push_back(states.layer);
    EXPECT_EQ(download(*backend, states[StateKind::kQPre]), expected(1, layer, StateKind::kQPre, 2 * kTokens * 4));
    EXPECT_EQ(download(*backend, states[StateKind::kV]), expected(1, layer, StateKind::kV, kTokens * 4));
    EXPECT_TRUE(states[StateKind::kKPre].empty() && states[StateKind::kKPost].empty());
    EXPECT_EQ(states.x.data, nullptr);
  });
  EXPECT_THAT(layers, ElementsAre(1, 4));
}

TEST(CaptureSource, GivesEachLayerItsOwnShape) {
  MemoryReader reader({StateKind::kKPre, StateKind::kV});
  reader.give_layer_4_other_heads();
  const std::unique_ptr<Backend> backend = cpu();
  CaptureSource source(reader, *backend);
  for (int pass = 0; pass < 2; ++pass)  // the second pass reuses the memory of both shapes
    source.visit(0, {.layers = {1, 4}, .states = {StateKind::kKPre, StateKind::kKPost, StateKind::kV}},
                 [&](const DocumentStates& states) {
                   const bool wide = states.layer == 1;
                   const std::array<std::size_t, 3> shape{wide ? 1UL : 2UL, kTokens, wide ? 4UL : 2UL};
                   const auto layer = static_cast<std::int32_t>(states.layer);
                   for (const StateKind kind : {StateKind::kKPre, StateKind::kV}) {
                     EXPECT_EQ(states[kind].shape(), shape);
                     EXPECT_EQ(download(*backend, states[kind]), expected(0, layer, kind, 12));
                   }
                   const std::vector<float> before = expected(0, layer, StateKind::kKPre, 12),
                                            after = download(*backend, states[StateKind::kKPost]);
                   const std::size_t head_dim = shape[2], at = head_dim;  // token 1 of head 0
                   EXPECT_NEAR(after[at], before[at] * std::cos(1.0) - before[at + head_dim / 2] * std::sin(1.0), 2e-4);
                 });
}

TEST(CaptureSource, RecomputesRotatedKeys) {
  MemoryReader reader({StateKind::kKPre});
  const std::unique_ptr<Backend> backend = cpu();
  CaptureSource source(reader, *backend);
  for (const bool keep : {false, true}) {
    StateSet wanted{StateKind::kKPost};
    if (keep) wanted.insert(StateKind::kKPre);
    source.visit(0, {.layers = {4}, .states = wanted}, [&](const DocumentStates& states) {
      const std::vector<float> before = expected(0, 4, StateKind::kKPre, kTokens * 4);
      const std::vector<float> after = download(*backend, states[StateKind::kKPost]);
      for (std::size_t t = 0; t < kTokens; ++t) {
        for (std::size_t c = 0; c < 2; ++c) {
          const double angle = static_cast<double>(t) * (c == 0 ? 1 : 0.01);
          const double a = before[4 * t + c], b = before[4 * t + c + 2];  // chunk c: channels (c, c + 2)
          // Values are about 440: a few f32 roundings of that.
          EXPECT_NEAR(after[4 * t + c], a * std::cos(angle) - b * std::sin(angle), 2e-4);
          EXPECT_NEAR(after[4 * t + c + 2], a * std::sin(angle) + b * std::cos(angle), 2e-4);
        }
      }
      if (keep) {
        EXPECT_EQ(download(*backend, states[StateKind::kKPre]), before);
      }
      EXPECT_EQ(states[StateKind::kKPre].empty(), !keep);
    });
  }
}

TEST(CaptureSource, RecomputesEachLayersKeysWithItsOwnRope) {
  MemoryReader reader({StateKind::kKPre});
  reader.give_layer_4_another_rope();
  const std::unique_ptr<Backend> backend = cpu();
  CaptureSource source(reader, *backend);
  source.visit(0, {.layers = {1, 4}, .states = {StateKind::kKPost}}, [&](const DocumentStates& states) {
    const auto before = expected(0, static_cast<std::int32_t>(states.layer), StateKind::kKPre, kTokens * 4);
    const std::vector<float> after = download(*backend, states[StateKind::kKPost]);
    const double frequency = states.layer == 1 ? 1 : 0.25, factor = states.layer == 1 ? 1 : 2;
    for (std::size_t t = 0; t < kTokens; ++t) {
      const double angle = static_cast<double>(t) * frequency, a = before[4 * t], b = before[4 * t + 1];
      EXPECT_NEAR(after[4 * t], factor * (a * std::cos(angle) - b * std::sin(angle)), 4e-4);
      EXPECT_NEAR(after[4 * t + 1], factor * (a * std::sin(angle) + b * std::cos(angle)), 4e-4);
      EXPECT_EQ(after[4 * t + 2], before[4 * t + 2]);
      EXPECT_EQ(after[4 * t + 3], before[4 * t + 3]);
    }
  });
}

TEST(CaptureSource, PrefersStoredRotatedKeys) {
  MemoryReader reader({StateKind::kKPre, StateKind::kKPost});
  const std::unique_ptr<Backend> backend = cpu();
  CaptureSource source(reader, *backend);
  source.visit(0, {.layers = {1}, .states = {StateKind::kKPost}}, [&](const DocumentStates& states) {
    EXPECT_EQ(download(*backend, states[StateKind::kKPost]), expected(0, 1, StateKind::kKPost, kTokens * 4));
  });
}

TEST(CaptureSource, SaysWhatTheCaptureLacks) {
  MemoryReader reader({StateKind::kV});
  const std::unique_ptr<Backend> backend = cpu();
  CaptureSource source(reader, *backend);
  const auto message = [&](const StateNeeds& needs) -> std::string {
    try {
      source.visit(0, needs, [](const DocumentStates&) {});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput);
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message({.layers = {1}, .states = {StateKind::kKPost}}), HasSubstr("k_post"));
  EXPECT_THAT(message({.layers = {1}, .states = {StateKind::kQPre}}), HasSubstr("q_pre"));
  EXPECT_THAT(message({.layers = {2}, .states = {StateKind::kV}}), HasSubstr("layer 2"));
  EXPECT_THAT(message({.layers = {1}, .x = true}), HasSubstr("a model and texts do"));
}

TEST(CaptureSource, LeavesOutADamagedDocumentWhole) {
  MemoryReader reader({StateKind::kV});
  reader.damaged = true;
  const std::unique_ptr<Backend> backend = cpu();
  CaptureSource source(reader, *backend, true);
  ASSERT_EQ(source.documents(), 1);
  EXPECT_EQ(source.skipped(), 1);
  source.visit(0, {.layers = {1}, .states = {StateKind::kV}},
               [&](const DocumentStates& states) { EXPECT_EQ(states.document, 0); });
}

}  // namespace
}  // namespace kvs
