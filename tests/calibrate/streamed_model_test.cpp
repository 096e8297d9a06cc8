// SPDX-License-Identifier: Apache-2.0
// Calibrations of a streamed model: the sums of a model in memory, from layers that all documents of a pass share.
#include <gtest/gtest.h>

#include <functional>

#include "caches/full.h"
#include "calibrate/common/layer_losses.h"
#include "calibrate/elitekv/sets.h"
#include "calibrate/full/kv_scales.h"
#include "calibrate/transform/measured.h"
#include "eval/document_loss.h"
#include "model/cache_shape.h"
#include "ranks/one_process.h"
#include "states/live_source.h"
#include "states/second_moment_source.h"
#include "tests/eval/tiny_model.h"
#include "turns/turns.h"

namespace kvs {
namespace {

constexpr std::size_t kDocuments = 5, kLength = 40;

struct StreamedModel : ::testing::Test {
  StreamedModel() {
    for (std::size_t n = 0; n < kDocuments; ++n) documents[n][n] = static_cast<std::int32_t>(n);
  }

  /// Expects the result on the model in memory, and `passes` reads of each streamed layer.
  template <class Measure>
  void expect_shared(std::size_t passes, const Measure& measure) {
    const auto expected = measure(*tiny.decoder);
    ASSERT_EQ(streamed.placement().streamed_layers, streamed.config().layers());
    EXPECT_EQ(measure(decoder), expected);
    // Between two passes, the first layer has been read ahead.
    EXPECT_EQ(streamed.placement().layers_read, passes * streamed.config().layers() + 1);
  }
  /// Like expect_shared(), for states of all documents.
  template <class Measure>
  void expect_shared_states(std::size_t passes, const Measure& measure) {
    expect_shared(passes, [&](Decoder& of) {
      LiveSource source(of, documents);
      return measure(source, of);
    });
  }
  std::vector<std::size_t> layers() const { return tiny.model->config().cached_layers(); }

  TinyModel tiny;
  Model streamed{*tiny.source, *tiny.backend, {}, tiny.model->head().bytes() + 2 * tiny.model->layer(0).bytes()};
  Decoder decoder{streamed};
  std::vector<std::vector<std::int32_t>> documents{kDocuments, TinyModel::tokens(kLength)};
  std::function<void(std::size_t)> ignore = [](std::size_t) {};
};

std::vector<std::vector<double>> copies(const std::vector<std::span<const double>>& sums) {
  std::vector<std::vector<double>> all;
  all.reserve(sums.size());
  for (const std::span<const double> sum : sums) all.emplace_back(sum.begin(), sum.end());
  return all;
}

TEST_F(StreamedModel, GivesTheScalesOfKeysAndValues) {
  expect_shared_states(1, [&](StateSource& source, Decoder& of) {
    KvScales scales(of.model().config(), {"fp8", "nvfp4"}, ScaleSharing::kHead);
    scales.measure(source, ignore);
    return std::pair(scales.parameters(ScaleRule::kEma), scales.saturated(ScaleRule::kP999));
  });
}

TEST_F(StreamedModel, GivesTheSecondMoments) {
  const auto ops = make_calibration_ops(*tiny.backend);
  expect_shared_states(1, [&](StateSource& source, Decoder& of) {
    return second_moments(source, *ops, layers(), of.model().config().d_model, ignore);
  });
}

TEST_F(StreamedModel, GivesTheMomentsOfTheTransformCoder) {
  TransformGeometry geometry{.layers = layers(), .heads = {}, .sinks = 1, .recent = 2};
  const AttentionConfig& attention = tiny.model->config().layer.front().attention;
  geometry.heads.assign(geometry.layers.size(), {attention.query_heads, attention.kv_heads, attention.head_dim});
  expect_shared_states(1, [&](StateSource& source, Decoder&) {
    TransformMoments moments = transform_moments(*tiny.source, geometry);
    Checkpoint checkpoint(tiny.folder / "config.json", {});
    std::vector<std::size_t> done;
    (void)sum_documents(moments, source, std::nullopt, checkpoint, "", [&](std::size_t n) { done.push_back(n); });
    EXPECT_EQ(done, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5}));
    return copies(moments.state());
  });
}

TEST_F(StreamedModel, GivesTheEliteChunksOfBothNorms) {
  const AttentionConfig& attention = tiny.model->config().layer.front().attention;
  const auto ops = make_calibration_ops(*tiny.backend);
  for (const int norm : {1, 2}) {
    const std::size_t before = streamed.placement().layers_read;
    const EliteSearchPlan plan{
        .geometry = {layers(), attention.query_heads, attention.kv_heads, attention.head_dim / 2},
        .norm = norm,
        .count = 2,
        .baseline = {}};
    const auto found = [&](Decoder& of) {
      LiveSource source(of, documents);
      EliteSearch search(plan, *ops, source, source);
      Checkpoint checkpoint(tiny.folder / "config.json", {});
      share_search(search, search.units(), std::nullopt, *make_one_process(), checkpoint, ignore);
      std::vector<std::vector<double>> errors;
      for (const auto& of_layer : search.picks())
        for (const ElitePicks& head : of_layer) errors.push_back(head.errors);
      return errors;
    };
    EXPECT_EQ(found(decoder), found(*tiny.decoder)) << "p = " << norm;
    const std::size_t passes = norm == 1 ? 2 : 1, read = streamed.placement().layers_read - before;
    EXPECT_EQ(read, passes * streamed.config().layers() + (before == 0 ? 1 : 0)) << "p = " << norm;
  }
}

TEST_F(StreamedModel, GivesTheLossesOfLayers) {
  expect_shared(2, [&](Decoder& of) {  // the full cache's pass, and that of the choice
    const CacheShape shape = cache_shape(of.model().config());
    LayerLosses losses(of, documents, {0, 2},
                       [&](std::size_t n, std::size_t) { return make_full_cache(plain_types(shape.layers[2 * n])); });
    return losses.divergence({0, 0});
  });
}

TEST_F(StreamedModel, RunsTheFullPassOfADocumentOnceForLossesInTurns) {
  FullPass full(decoder, documents.front());
  FullPass whole(*tiny.decoder, documents.front());
  std::vector<std::vector<float>> found(3);
  run_in_turns(
      found.size(), [&](std::size_t n) { found[n] = download(*tiny.backend, full.finished().rows.view()); },
      [](std::size_t) {});
  for (const std::vector<float>& rows : found) EXPECT_EQ(rows, download(*tiny.backend, whole.finished().rows.view()));
  EXPECT_EQ(streamed.placement().layers_read, streamed.config().layers() + 1);
}

}  // namespace
}  // namespace kvs
