// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <set>
#include <utility>

#include "eval/cache_quality.h"
#include "io/file.h"
#include "tests/eval/tiny_model.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/caches.h"

namespace kvs {
namespace {

Evaluation evaluate_tiny(TinyModel& tiny, const std::string& method, const std::vector<std::string>& settings) {
  const std::vector<std::vector<std::int32_t>> documents{TinyModel::tokens(60), TinyModel::tokens(60)};
  return evaluate(*tiny.decoder, documents,
                  {.make = [&] { return test::cache_of(tiny.model->config(), method, settings); }, .compare = true});
}

TEST(Evaluation, TheFullCacheDoesNotDivergeFromItself) {
  TinyModel tiny;
  const Evaluation found = evaluate_tiny(tiny, "full", {});
  ASSERT_TRUE(found.full.has_value());
  EXPECT_DOUBLE_EQ(found.sum.nll, found.full->sum.nll);
  EXPECT_EQ(found.full->divergence.tokens, 2U * 59);
  EXPECT_EQ(found.full->divergence.agreed, 2U * 59);
  EXPECT_NEAR(found.full->divergence.kl, 0, 1e-12);
  EXPECT_EQ(found.cache.peak.stored, 60 * 2 * tiny.model->config().cache_values_per_token());
}

TEST(Evaluation, OfAStreamedModelIsTheSame) {
  TinyModel tiny;
  const std::size_t layer = tiny.model->layer(0).bytes();
  const Model streamed(*tiny.source, *tiny.backend, {}, tiny.model->head().bytes() + 2 * layer);
  ASSERT_GT(streamed.placement().streamed_layers, 0U);
  Decoder decoder(streamed);
  std::vector<std::vector<std::int32_t>> documents(5, TinyModel::tokens(60));
  for (std::size_t n = 0; n < documents.size(); ++n) documents[n][n] = static_cast<std::int32_t>(n);
  const EvaluationPlan plan{.make =
                                [&] {
                                  return test::cache_of(streamed.config(), "h2o", {"recent=4", "cache_size=16"});
                                },
                            .compare = true};
  const Evaluation expected = evaluate(*tiny.decoder, documents, plan);
  std::vector<std::size_t> done;
  const Evaluation found = evaluate(decoder, documents, plan, [&](std::size_t count) { done.push_back(count); });
  EXPECT_EQ(found.sum.nll, expected.sum.nll);
  EXPECT_EQ(found.full->sum.nll, expected.full->sum.nll);
  EXPECT_EQ(found.full->divergence.kl, expected.full->divergence.kl);
  EXPECT_EQ(found.cache.compressions, expected.cache.compressions);
  EXPECT_EQ(found.cache.peak.stored, expected.cache.peak.stored);
  EXPECT_EQ(done, (std::vector<std::size_t>{1, 2, 3, 4, 5}));
}

TEST(Evaluation, ScoresTheLastTokensAlone) {
  TinyModel tiny;
  const std::vector<std::vector<std::int32_t>> documents{TinyModel::tokens(60)};
  const auto expected = document_nll(*tiny.decoder, documents.front());
  for (const std::size_t decode : {0U, 7U}) {
    const Evaluation found = evaluate(*tiny.decoder, documents,
                                      {.make = [&] { return test::cache_of(tiny.model->config(), "full"); },
                                       .compare = true,
                                       .last = 10,
                                       .decode = decode});
    EXPECT_EQ(found.sum.scored, 10U);
    EXPECT_NEAR(found.sum.nll, std::accumulate(expected.end() - 10, expected.end(), 0.0), 1e-4);
    EXPECT_EQ(found.full->divergence.tokens, 10U);
    EXPECT_EQ(found.cache.decoded, decode);
  }
}

/// Fills a row of a stored f32 matrix of a tiny model.
void overwrite_row(const TinyModel& tiny, const std::string& tensor, std::size_t row, float value) {
  const std::filesystem::path path = tiny.folder / "model/model.safetensors";
  std::string bytes = read_text_file(path, 1 << 24);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const Json entry = parse_json(std::string_view(bytes).substr(sizeof header, header), "header").at(tensor);
  const auto columns = entry.at("shape")[1].get<std::size_t>();
  char* const first = bytes.data() + sizeof header + header + entry.at("data_offsets")[0].get<std::size_t>();
  const std::vector<float> values(columns, value);
  std::memcpy(first + row * columns * sizeof(float), values.data(), columns * sizeof(float));
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(RunCached, NamesLayerHeadAndTokenOfAStateThatIsNotFinite) {
  TinyModel tiny;
  const std::vector<std::vector<std::int32_t>> documents{TinyModel::tokens(40)};
  overwrite_row(tiny, "model.layers.2.self_attn.k_proj.weight", tiny.model->config().head_dim() + 3, 3e38F);
  const auto source = ModelSource::open(tiny.folder / "model");
  const Model model(*source, *tiny.backend);
  Decoder decoder(model);
  test::expect_error(ErrorCode::kData, "layer 2, KV head 1, token 0: found NaN or infinity in its key", [&] {
    evaluate(decoder, documents, {.make = [&] { return test::cache_of(model.config(), "lagkv", {"lag=4"}); }});
  });
}

TEST(Divergence, IsTheSumOverTheVocabularyInDouble) {
  TinyModel tiny;
  const auto ids = TinyModel::tokens(40);
  const std::size_t layers = tiny.model->config().layers(), vocabulary = tiny.model->config().vocabulary;
  ResidualStream whole = tiny.decoder->embed(ids), part = tiny.decoder->embed(std::span(ids).subspan(10), 10);
  tiny.decoder->advance(whole, layers);
  tiny.decoder->advance(part, layers);  // has not seen the first 10 tokens
  std::vector<std::size_t> rows(30);
  std::iota(rows.begin(), rows.end(), 10);
  const std::vector<float> expected = tiny.decoder->logits(whole, rows);
  std::iota(rows.begin(), rows.end(), 0);
  const std::vector<float> found = tiny.decoder->logits(part, rows);
  double kl = 0;
  std::size_t agreed = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto distribution = [&](const std::vector<float>& logits) {
      std::vector<double> p(logits.begin() + static_cast<std::ptrdiff_t>(row * vocabulary),
                            logits.begin() + static_cast<std::ptrdiff_t>((row + 1) * vocabulary));
      double sum = 0;
      for (double& value : p) sum += value = std::exp(value);
      for (double& value : p) value /= sum;
      return p;
    };
    const auto p = distribution(expected), q = distribution(found);
    for (std::size_t v = 0; v < vocabulary; ++v) kl += p[v] * std::log(p[v] / q[v]);
    agreed += std::ranges::max_element(p) - p.begin() == std::ranges::max_element(q) - q.begin() ? 1 : 0;
  }
  Divergence divergence;
  for (const TokenDivergence& one : token_divergences(*tiny.decoder, whole, part, {10, 10, 40}))
    divergence.add(one, {}, 0);
  EXPECT_GT(kl, 0.1);
  EXPECT_NEAR(divergence.kl, kl, 1e-5 * kl + 1e-6);
  EXPECT_EQ(divergence.agreed, agreed);
}

TEST(Divergence, OfSeveralDocumentsNamesTheLargestOfAll) {
  Divergence sum;
  for (std::size_t document = 0; document < 3; ++document) {
    Divergence one;
    for (const double kl : {0.1, document == 1 ? 2.5 : 0.3})
      one.add({kl, kl < 0.2}, {.position = 7, .token = static_cast<std::int32_t>(document)}, -2 * kl);
    sum.append(one, document);
  }
  EXPECT_DOUBLE_EQ(sum.kl, 3.4);
  EXPECT_DOUBLE_EQ(sum.changes, 6.8);
  EXPECT_EQ(sum.agreed, 3U);
  EXPECT_EQ(sum.largest.kl, 2.5);
  EXPECT_EQ(sum.largest.document, 1U);
  EXPECT_EQ(sum.largest.position, 7U);
  EXPECT_EQ(sum.largest.token, 1);
  EXPECT_NEAR(sum.kls.quantile(0.6), 0.3, 0.3 * QuantileSketch::kRelativeError);
  EXPECT_NEAR(sum.change.quantile(1), 5, 5 * QuantileSketch::kRelativeError);
}

TEST(Evaluation, StatesTheTailOfTheDivergence) {
  TinyModel tiny;
  const std::vector<std::vector<std::int32_t>> documents{TinyModel::tokens(60), TinyModel::tokens(60)};
  const EvaluationPlan plan{
      .make = [&] { return test::cache_of(tiny.model->config(), "full", {"type=int4_per_token_head"}); },
      .compare = true,
      .parts = 7};
  const Evaluation found = evaluate(*tiny.decoder, documents, plan);
  std::vector<double> kls, changes;
  for (const auto& document : documents) {
    const ReferencePass reference = reference_pass(*tiny.decoder, document, 0, plan);
    Cache cache = plan.make();
    ResidualStream hidden = tiny.decoder->embed(document, 0, cache.positions(60));
    tiny.decoder->advance(hidden, tiny.model->config().layers(), nullptr, &cache);
    std::vector<std::int32_t> next(document.begin() + 1, document.end());
    next.push_back(-1);
    const std::vector<float> nll = tiny.decoder->nll(hidden, next);
    for (std::size_t t = 0; t < 59; ++t) {
      kls.push_back(token_divergences(*tiny.decoder, reference.hidden, hidden, {0, t, t + 1}).front().kl);
      changes.push_back(std::abs(static_cast<double>(nll[t]) - static_cast<double>(reference.nll[t])));
    }
  }
  const DivergenceTail tail = divergence_tail(*found.full);
  const std::size_t largest = static_cast<std::size_t>(std::ranges::max_element(kls) - kls.begin());
  EXPECT_EQ(tail.largest.document, largest / 59);
  EXPECT_EQ(tail.largest.position, largest % 59 + 1);
  EXPECT_EQ(tail.largest.token, documents[largest / 59][largest % 59 + 1]);
  EXPECT_NEAR(tail.change_mean, std::accumulate(changes.begin(), changes.end(), 0.0) / 118, 1e-6);
  std::ranges::sort(kls);
  std::ranges::sort(changes);
  const double within = 1.01 * QuantileSketch::kRelativeError;
  EXPECT_NEAR(tail.median, kls[58], within * kls[58]);
  EXPECT_NEAR(tail.p99, kls[116], within * kls[116]);
  EXPECT_NEAR(tail.p999, kls[117], within * kls[117]);
  EXPECT_NEAR(tail.change_p95, changes[112], within * changes[112]);

  const CacheQuality quality = cache_quality(found, tiny.model->config(), 60);
  const DivergenceCurves& curves = *quality.loss->curves;
  EXPECT_EQ(curves.first, 1U);
  ASSERT_EQ(curves.parts.size(), 7U);
  EXPECT_EQ(curves.parts.back().end, 60U);
  std::size_t tokens = curves.zeros;
  for (const auto& bin : curves.histogram) tokens += bin.tokens;
  EXPECT_EQ(tokens, 118U);
  EXPECT_LE(std::pow(10, static_cast<double>(curves.histogram.back().bin) / kBinsPerDecade), kls.back());
  const Json record = to_record(found);
  EXPECT_EQ(to_record(evaluation_from(JsonCursor(record, "record"))).dump(), record.dump());
}

TEST(Evaluation, RefusesARecordWhoseSketchIsForged) {
  TinyModel tiny;
  const Json record = to_record(evaluate_tiny(tiny, "full", {"type=int4_per_token_head"}));
  const auto refused = [&](const std::string& pointer, const Json& value) {
    Json forged = record;
    forged[Json::json_pointer(pointer)] = value;
    EXPECT_THROW(evaluation_from(JsonCursor(forged, "record")), Error) << pointer << ' ' << value;
  };
  refused("/full/kls/first", -1000000);
  refused("/full/kls/counts", Json::array({1}));
  refused("/full/kls/counts", Json(std::vector<int>(100000, 1)));
  refused("/full/change/zeros", 100000);
  refused("/full/largest/token", -1);
}

/// Perplexities of an independent decoder: golden/opticks1024_caches.json. One setting for each method and first
/// parameter; with KVS_CASES=all every setting.
TEST(CachesOfSmolLM2, GiveThePerplexitiesOfPyTorch) {
  const char* path = std::getenv("KVS_MODEL");
  if (path == nullptr) GTEST_SKIP() << "set KVS_MODEL to the path that scripts/fetch_model.sh prints";
  const Json golden = parse_json(read_text_file(KVS_GOLDEN_DIR "/opticks1024_caches.json", 1 << 20), "golden");
  const std::vector<std::vector<std::int32_t>> documents{golden["tokens"].get<std::vector<std::int32_t>>()};
  const auto source = ModelSource::open(path);
  const auto backend = make_backend("cpu", DType::kF32);
  const Model model(*source, *backend);
  Decoder decoder(model);
  const char* cases = std::getenv("KVS_CASES");
  const bool all = cases != nullptr && std::string_view(cases) == "all";
  std::set<std::pair<std::string, std::string>> seen;
  for (const Json& expected : golden["cases"]) {
    const auto settings = expected["settings"].get<std::vector<std::string>>();
    const std::string first = settings.empty() ? "" : settings[0].substr(0, settings[0].find('='));
    if (!seen.emplace(expected["method"], first).second && !all) continue;
    const Evaluation found = evaluate(
        decoder, documents, {.make = [&] { return test::cache_of(model.config(), expected["method"], settings); }});
    // Rounding moves these by 1e-5; a few bits a value amplify it (docs/stores.md), which `within` allows for.
    EXPECT_NEAR(found.sum.perplexity() / expected["ppl"].get<double>(), 1, expected.value("within", 5e-4))
        << expected.dump();
  }
}

}  // namespace
}  // namespace kvs
