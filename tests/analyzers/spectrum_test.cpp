// SPDX-License-Identifier: Apache-2.0
#include "analyzers/spectrum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "io/file.h"
#include "io/json.h"
#include "tests/analyzers/memory_source.h"

namespace kvs {
namespace {

constexpr std::size_t kHeads = 2, kTokens = 16, kHeadDim = 4;

// Some values without any symmetry.
float irregular(std::size_t document, std::size_t layer, StateKind state, std::size_t head, std::size_t token,
                std::size_t channel) {
  const auto mixed = (document + 1) * 7919 + layer * 104729 + static_cast<std::size_t>(state) * 1299709 +
                     head * 15485863 + token * token * 32452843 + channel * 49979687;
  return static_cast<float>(mixed % 1000) / 500.0F - 1.0F;
}

SpectrumAccumulator::Settings settings(std::size_t sinks, std::vector<std::size_t> layers) {
  SpectrumAccumulator::Settings chosen;
  chosen.sinks = sinks;
  chosen.layers = std::move(layers);
  chosen.kv_heads = kHeads;
  chosen.head_dim = kHeadDim;
  return chosen;
}

class SpectrumTest : public ::testing::Test {
 protected:
  SpectrumTest() : ops_(backend_.make_spectral_ops()) {}

  Spectrum run(MemorySource& source, const SpectrumAccumulator::Settings& chosen) {
    SpectrumAccumulator accumulator(*ops_, chosen, source.tokens());
    for (std::size_t document = 0; document < source.documents(); ++document)
      accumulator.add_document(source, document);
    return accumulator.result();
  }

  MemoryBackend backend_;
  std::unique_ptr<SpectralOps> ops_;
};

// The orthonormal DCT-II of a·cos(π(2n + 1)k/2N) is a·√(N/2) in bin k alone, so its power is a²N/2.
TEST_F(SpectrumTest, ACosinePutsItsPowerIntoTheBinOfItsStateLayerAndHead) {
  MemorySource source(1, kHeads, kTokens, kHeadDim, [](auto, auto layer, auto state, auto head, auto token, auto) {
    const std::size_t k = static_cast<std::size_t>(state) + 3 * head + (layer == 5 ? 6 : 0);
    return static_cast<float>(2 *
                              std::cos(std::numbers::pi * static_cast<double>((2 * token + 1) * k) / (2 * kTokens)));
  });
  const Spectrum spectrum = run(source, settings(0, {3, 5}));
  for (const StateKind state : kSpectrumStates) {
    for (std::size_t layer = 0; layer < 2; ++layer) {
      for (std::size_t head = 0; head < kHeads; ++head) {
        const auto row = spectrum.power[state].row(layer, head);
        const std::size_t k = static_cast<std::size_t>(state) + 3 * head + 6 * layer;
        EXPECT_NEAR(row[k], 4.0 * kTokens / 2, 1e-5);  // f32 input
        EXPECT_NEAR(std::accumulate(row.begin(), row.end(), 0.0) - row[k], 0, 1e-10);
      }
    }
  }
}

TEST_F(SpectrumTest, TheResultIsTheMeanOverDocuments) {
  // Document 0 is constant 1, document 1 constant 3: DC power N·1 and N·9.
  MemorySource source(2, kHeads, kTokens, kHeadDim,
                      [](auto document, auto, auto, auto, auto, auto) { return document == 0 ? 1.0F : 3.0F; });
  const Spectrum spectrum = run(source, settings(4, {0}));
  EXPECT_EQ(spectrum.documents, 2U);
  EXPECT_NEAR(spectrum.power[StateKind::kKPre].row(0, 0)[0], kTokens * 5.0, 1e-10);
  EXPECT_NEAR(spectrum.without_sinks[StateKind::kKPre].row(0, 0)[0], (kTokens - 4) * 5.0, 1e-10);
}

TEST_F(SpectrumTest, SinksAreLeftOutOfTheSecondTableOnly) {
  MemorySource source(1, kHeads, kTokens, kHeadDim,
                      [](auto, auto, auto, auto, auto token, auto) { return token < 4 ? 100.0F : 0.0F; });
  const Spectrum spectrum = run(source, settings(4, {0}));
  EXPECT_EQ(spectrum.without_sinks[StateKind::kV].bins, kTokens - 4);
  EXPECT_THAT(spectrum.without_sinks[StateKind::kV].values, ::testing::Each(0.0));
  const auto row = spectrum.power[StateKind::kV].row(0, 0);
  EXPECT_NEAR(std::accumulate(row.begin(), row.end(), 0.0), 4 * 1e4, 1e-6);  // Parseval
}

TEST_F(SpectrumTest, WithoutSinksBothTablesAgree) {
  MemorySource source(1, kHeads, kTokens, kHeadDim, irregular);
  const Spectrum spectrum = run(source, settings(0, {0, 2}));
  EXPECT_EQ(spectrum.power[StateKind::kKPost].values, spectrum.without_sinks[StateKind::kKPost].values);
}

TEST_F(SpectrumTest, GoesOnFromSavedSumsWithTheSameBits) {
  MemorySource source(5, kHeads, kTokens, kHeadDim, irregular);
  const auto chosen = settings(3, {0, 1});
  const Spectrum whole = run(source, chosen);
  SpectrumAccumulator first(*ops_, chosen, kTokens);
  first.add_document(source, 0);
  first.add_document(source, 1);
  std::vector<std::vector<double>> saved;
  for (const auto sum : first.sums()) saved.emplace_back(sum.begin(), sum.end());
  SpectrumAccumulator second(*ops_, chosen, kTokens);
  second.restore(saved);
  EXPECT_EQ(second.documents(), 2U);
  for (std::size_t document = 2; document < 5; ++document) second.add_document(source, document);
  const Spectrum resumed = second.result();
  EXPECT_EQ(resumed.documents, 5U);
  for (const StateKind state : kSpectrumStates) {
    EXPECT_EQ(resumed.power[state].values, whole.power[state].values);
    EXPECT_EQ(resumed.without_sinks[state].values, whole.without_sinks[state].values);
  }
}

TEST_F(SpectrumTest, ADocumentThatTheSourceLeavesOutIsNotCounted) {
  class Damaged final : public StateSource {
   public:
    explicit Damaged(MemorySource& source) : source_(&source) {}
    std::size_t documents() const noexcept override { return source_->documents(); }
    std::size_t tokens() const noexcept override { return source_->tokens(); }
    Backend& backend() const noexcept override { return source_->backend(); }
    RopeTable rope(std::size_t) const override { return {}; }
    void visit(std::size_t document, const StateNeeds& needs, const Sink& sink) override {
      if (document != 0) source_->visit(document, needs, sink);
    }

   private:
    MemorySource* source_;
  };
  MemorySource source(2, kHeads, kTokens, kHeadDim,
                      [](auto document, auto, auto, auto, auto, auto) { return document == 0 ? 1.0F : 3.0F; });
  Damaged damaged(source);
  SpectrumAccumulator accumulator(*ops_, settings(0, {0}), kTokens);
  EXPECT_FALSE(accumulator.add_document(damaged, 0));
  EXPECT_TRUE(accumulator.add_document(damaged, 1));
  EXPECT_EQ(accumulator.documents(), 1U);
  EXPECT_NEAR(accumulator.result().power[StateKind::kKPre].row(0, 0)[0], kTokens * 9.0, 1e-10);
}

TEST_F(SpectrumTest, RefusesSumsOfAnotherSize) {
  SpectrumAccumulator accumulator(*ops_, settings(3, {0, 1}), kTokens);
  EXPECT_THROW(accumulator.restore({}), Error);
}

TEST_F(SpectrumTest, ADocumentThatFailsIsNotCounted) {
  MemorySource source(2, kHeads, kTokens, kHeadDim,
                      [](auto document, auto layer, auto state, auto head, auto token, auto channel) {
                        if (document == 1 && layer == 7 && state == StateKind::kV && head == 1 && token == 9)
                          return std::numeric_limits<float>::quiet_NaN();
                        return irregular(document, layer, state, head, token, channel);
                      });
  SpectrumAccumulator accumulator(*ops_, settings(2, {0, 7}), kTokens);
  accumulator.add_document(source, 0);
  try {
    accumulator.add_document(source, 1);
    FAIL() << "NaN was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
    EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("document 1"), ::testing::HasSubstr("v of layer 7"),
                                               ::testing::HasSubstr("head 1")));
  }
  EXPECT_EQ(accumulator.documents(), 1U);
}

TEST_F(SpectrumTest, ListsChannelsThatNeverChange) {
  // Channel 2 of k_pre, layer 4, head 1 is constant in every document; channel 3 only in the first document.
  MemorySource source(2, kHeads, kTokens, kHeadDim,
                      [](auto document, auto layer, auto state, auto head, auto token, auto channel) {
                        const bool here = state == StateKind::kKPre && layer == 4 && head == 1;
                        if (here && (channel == 2 || (channel == 3 && document == 0))) return 0.25F;
                        return irregular(document, layer, state, head, token, channel);
                      });
  const Spectrum spectrum = run(source, settings(0, {1, 4}));
  ASSERT_EQ(spectrum.constant_channels.size(), 1U);
  const ConstantChannel found = spectrum.constant_channels[0];
  EXPECT_EQ(found.state, StateKind::kKPre);
  EXPECT_EQ(found.layer, 4U);
  EXPECT_EQ(found.head, 1U);
  EXPECT_EQ(found.channel, 2U);
}

TEST_F(SpectrumTest, LayerMeanAveragesTheHeads) {
  PowerTable table(1, 2, 3);
  table.values = {1, 2, 3, 5, 6, 7};
  EXPECT_THAT(table.layer_mean(0), ::testing::ElementsAre(3, 4, 5));
}

TEST_F(SpectrumTest, NeedsMoreTokensThanSinksAndAtLeastOneDocument) {
  EXPECT_THROW(SpectrumAccumulator(*ops_, settings(kTokens, {0}), kTokens), Error);
  EXPECT_THROW(SpectrumAccumulator(*ops_, settings(0, {0}), kTokens).result(), Error);
}

// Values of layer 14, head 1 of SmolLM2-135M over 512 tokens and their spectrum by SciPy
// (tests/golden/make_spectrum.py).
TEST_F(SpectrumTest, AgreesWithScipyOnRealStates) {
  const std::string folder = KVS_GOLDEN_DIR;
  const Json golden = parse_json(read_text_file(folder + "/spectrum_opticks512.json", 1 << 24), "golden");
  std::ifstream file(folder + "/spectrum_v_layer14_head1.f32", std::ios::binary);
  std::vector<float> states(512 * 64);
  ASSERT_TRUE(file.read(reinterpret_cast<char*>(states.data()), static_cast<std::streamsize>(states.size() * 4)));
  std::vector<double> power(512);
  ops_->power({std::span<const float>(states), {1, 512, 64}}, Transform::kDct, 0, power);
  const Json& expected = golden["v_layer14_head1"];
  ASSERT_EQ(expected.size(), power.size());
  for (std::size_t bin = 0; bin < power.size(); ++bin) {
    EXPECT_NEAR(power[bin] / expected[bin].get<double>(), 1, 1e-6) << "bin " << bin;  // the file's values are f32
  }
}

}  // namespace
}  // namespace kvs
