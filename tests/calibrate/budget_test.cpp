// SPDX-License-Identifier: Apache-2.0
// Calibrations to a byte budget on a random model; their results are compared with the budget and with whole runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "calibrate/budget/calibration.h"
#include "calibrate/budget/lattice.h"
#include "calibrate/budget/report.h"
#include "calibrate/budget/space.h"
#include "calibrate/registry.h"
#include "eval/evaluation.h"
#include "model/cache_shape.h"
#include "states/live_source.h"
#include "tests/eval/tiny_model.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kBudgetTokens = 48;

struct BudgetCase {
  BudgetCase() {
    for (std::size_t n = 0; n < 6; ++n) {
      documents.push_back(TinyModel::tokens(kBudgetTokens));
      std::ranges::rotate(documents.back(), documents.back().begin() + static_cast<std::ptrdiff_t>(7 * n));
    }
  }
  BudgetText text() const { return {std::span(documents).first(4), std::span(documents).last(2)}; }
  CacheSizes sizes(const char* method) const { return {*find_method(method), shape, kBudgetTokens}; }
  BudgetPlan half(Json fixed = Json::object(), std::size_t rounds = 0) const {
    return {sizes("full").full() / 2, std::move(fixed), rounds};
  }
  BudgetCalibration calibrate(const char* method, const BudgetPlan& plan, Journal* journal = nullptr) {
    return calibrate_to_budget(
        *tiny.decoder, method, plan, text(),
        [&](std::size_t done, std::size_t most) {
          ++measurements;
          EXPECT_LE(done, most);
        },
        journal);
  }
  /// Mean NLLs of the held-out documents, from whole runs.
  std::vector<double> evaluated(const char* method, const Json& settings) {
    const auto make = [&] {
      Parameters parameters({{settings, "", ErrorCode::kUsage}}, tiny.model->config().layers());
      return make_cache(*find_method(method), parameters, shape);
    };
    const Evaluation found = evaluate(*tiny.decoder, text().held, {.make = make});
    std::vector<double> means;
    for (const double nll : found.sum.per_document)
      means.push_back(nll * static_cast<double>(text().held.size()) / static_cast<double>(found.sum.scored));
    return means;
  }

  TinyModel tiny;
  CacheShape shape = cache_shape(tiny.model->config());
  std::vector<std::vector<std::int32_t>> documents;
  std::size_t measurements = 0;
};

// A prefix of 36 of 48 tokens has no space for the paper's 22 chunks, or for its 50 recent tokens.
TEST(BudgetCalibration, MeasuresTheRoomOfShortDocumentsThatThePaperHasNoSettingFor) {
  BudgetCase at;
  const std::size_t bytes = at.sizes("full").full() * 13 / 20;
  BudgetSpace space(*find_method("faedkv"), at.tiny.model->config(), kBudgetTokens, bytes, Json::object());
  for (const Json& settings : space.candidates()) {
    EXPECT_EQ(settings.at("prefix"), 36);
    EXPECT_LE(at.sizes("faedkv").total(settings), bytes);
  }
}

TEST(BudgetCalibration, GivesSettingsThatReachTheBudgetAndSaysWhatTheyDo) {
  BudgetCase at;
  for (const char* method : {"freqkv", "lagkv", "faedkv", "streaming"}) {
    const BudgetPlan plan =
        at.half(std::string_view(method) == "faedkv" ? Json{{"prefix", 40}, {"recent", 4}, {"sinks", 2}, {"chunks", 6}}
                                                     : Json::object());
    const BudgetCalibration found = at.calibrate(method, plan);
    double least = std::numeric_limits<double>::infinity();
    for (const BudgetContender& contender : found.contenders) {
      EXPECT_LE(contender.bytes, plan.bytes) << method;
      EXPECT_EQ(contender.bytes, at.sizes(method).total(contender.settings)) << method;
      EXPECT_THAT(contender.nll,
                  ::testing::Pointwise(::testing::DoubleNear(2e-6), at.evaluated(method, contender.settings)))
          << method << ' ' << contender.settings;
      least = std::min(least, paired_mean(contender.nll).mean);
    }
    // The chosen setting is the best, or a plainer one that the documents do not distinguish from it.
    const BudgetContender& chosen = found.contenders.front();
    const auto best = std::ranges::find(found.contenders, found.least, &BudgetContender::name);
    ASSERT_NE(best, found.contenders.end()) << method;
    EXPECT_EQ(paired_mean(best->nll).mean, least) << method;
    if (chosen.name != found.least) {
      EXPECT_LE(paired_difference(chosen.nll, best->nll).interval->first, 0) << method;
    }
    EXPECT_EQ(found.difference_from(found.contenders.front().name), std::nullopt);
  }
}

TEST(BudgetCalibration, LetsLayersTradeUnderTheSameBudget) {
  BudgetCase at;
  for (const char* method : {"freqkv", "lagkv", "streaming"}) {
    const BudgetCalibration found = at.calibrate(method, at.half(Json::object(), 1));
    const auto layers = std::ranges::find(found.contenders, "layers", &BudgetContender::name);
    ASSERT_NE(layers, found.contenders.end());
    EXPECT_LE(layers->bytes, at.half().bytes) << method;
    EXPECT_THAT(layers->nll, ::testing::Pointwise(::testing::DoubleNear(2e-6), at.evaluated(method, layers->settings)));
  }
}

/// Types of an engine for a budget, with one round of trades.
struct OfferCase : BudgetCase {
  BudgetContender by_layer(TypesByLayer how, std::vector<Json> types, double share) {
    const auto full = static_cast<double>(sizes("full").full());
    const BudgetPlan plan{static_cast<std::size_t>(share * full), Json::object(), 1,
                          OfferedTypes{std::move(types), how}};
    const BudgetCalibration found = calibrate("full", plan);
    EXPECT_EQ(found.contenders.size(), 2U);  // nothing is standard for an engine
    const auto layers = std::ranges::find(found.contenders, "layers", &BudgetContender::name);
    EXPECT_LE(layers->bytes, plan.bytes);
    EXPECT_EQ(layers->bytes, sizes("full").total(layers->settings));
    EXPECT_THAT(layers->nll, ::testing::Pointwise(::testing::DoubleNear(2e-6), evaluated("full", layers->settings)));
    return *layers;
  }
  const Json f16{{"type", "f16"}}, fp8{{"type", "fp8"}};
};

// Three eighths of the layers' bytes are left over fp8 in all four layers: 16 bits in three.
TEST(BudgetCalibration, LeavesLayersAt16BitsWithinTheBudget) {
  OfferCase at;
  const Json settings = at.by_layer(TypesByLayer::kSkipped, {at.f16, at.fp8}, 0.9).settings;
  EXPECT_EQ(settings.at("type"), "fp8");
  EXPECT_EQ(settings.at("type_skip_layers").size(), 3U) << settings;
}

TEST(BudgetCalibration, GivesTheFirstAndTheLastLayersTypesOfTheirOwn) {
  OfferCase at;
  const Json types = at.by_layer(TypesByLayer::kEnds, {at.f16, at.fp8}, 0.9).settings.at("type");
  ASSERT_EQ(types.size(), 4U);
  EXPECT_EQ(types.at(1), types.at(2)) << types;  // of four layers the middle has two
  EXPECT_EQ(std::ranges::count(types, Json("f16")), 3) << types;
}

// Four bits lose so much that each layer at 16 bits gains.
TEST(BudgetCalibration, GivesEachLayerATypeOfItsOwn) {
  OfferCase at;
  const Json types =
      at.by_layer(TypesByLayer::kAny, {at.f16, {{"type", "int4_per_token_head"}}}, 0.75).settings.at("type");
  ASSERT_TRUE(types.is_array()) << types;
  EXPECT_GE(std::ranges::count(types, Json("f16")), 1) << types;
}

/// Layers with a γ proposed by their spectra, on two longer documents.
struct ProposalCase : BudgetCase {
  static constexpr std::size_t kLonger = 4;

  ProposalCase() {
    documents.assign(2, TinyModel::tokens(kLonger * kBudgetTokens));
    std::ranges::reverse(documents[0]);
  }
  BudgetCalibration calibrated(StateSource* source, Json fixed = Json::object(), Journal* journal = nullptr) {
    fixed["recent"] = 48;
    fixed["sinks"] = 4;
    const BudgetPlan plan{kLonger * sizes("full").full() * 5 / 8, std::move(fixed), 1};  // 120 slots
    BudgetText two{std::span(documents).first(1), std::span(documents).last(1)};
    two.states = source;
    BudgetCalibration found = calibrate_to_budget(*tiny.decoder, "freqkv", plan, two, {}, journal);
    for (const BudgetContender& one : found.contenders) EXPECT_LE(one.bytes, plan.bytes) << one.name;
    return found;
  }

  LiveSource states{*tiny.decoder, {documents[0]}};
};

// A γ by layer is an additional step that costs no bytes, unless a γ is given.
TEST(BudgetCalibration, LetsLayersTryWhatTheirSpectraPropose) {
  ProposalCase at;
  EXPECT_GT(at.calibrated(&at.states).measured, at.calibrated(nullptr).measured);
  const Json given{{"gamma", 0.9}};
  EXPECT_EQ(at.calibrated(&at.states, given).measured, at.calibrated(nullptr, given).measured);
}

TEST(BudgetCalibration, GoesOnWithTheProposalsThatItsJournalHolds) {
  ProposalCase at;
  const test::TemporaryDirectory folder;
  const auto path = folder.path() / "j";
  Journal first = Journal::create(path, Json::object());
  const BudgetCalibration whole = at.calibrated(&at.states, {}, &first);
  const std::vector<Json> records = Journal::read(path).records;
  const auto is_proposal = [](const Json& record) { return record.front().is_array(); };
  const auto proposal = std::ranges::find_if(records, is_proposal);
  ASSERT_NE(proposal, records.end());
  EXPECT_EQ(std::ranges::count_if(records, is_proposal), 1);
  const auto partial = folder.path() / "partial";
  {
    Journal half = Journal::create(partial, Json::object());
    for (auto record = records.begin(); record <= proposal + 3; ++record) half.append(*record);
  }
  Journal begun = Journal::resume(partial, Json::object());
  LiveSource others(*at.tiny.decoder, {at.documents[1]});  // like another machine's rounding, but larger
  const BudgetCalibration resumed = at.calibrated(&others, {}, &begun);
  EXPECT_EQ(Journal::read(partial).records, records);
  EXPECT_EQ(resumed.settings(), whole.settings());
}

TEST(BudgetCalibration, GoesOnWithAJournal) {
  BudgetCase at;
  const test::TemporaryDirectory folder;
  const BudgetPlan plan = at.half(Json::object(), 1);
  const auto path = folder.path() / "j";
  Journal first = Journal::create(path, Json::object());
  const BudgetCalibration whole = at.calibrate("lagkv", plan, &first);
  // A run that was killed after some records: its journal is the first part of this journal.
  const auto partial = folder.path() / "partial";
  const std::vector<Json> records = Journal::read(path).records;
  {
    Journal half = Journal::create(partial, Json::object());
    for (std::size_t n = 0; n < records.size() / 2; ++n) half.append(records[n]);
  }
  Journal begun = Journal::resume(partial, Json::object());
  const BudgetCalibration resumed = at.calibrate("lagkv", plan, &begun);
  EXPECT_EQ(Journal::read(partial).records, records);
  EXPECT_EQ(resumed.settings(), whole.settings());
  EXPECT_EQ(resumed.measured, whole.measured);
}

TEST(BudgetCalibration, GivesOneHeldDocumentErrorsOverItsTokens) {
  BudgetCase at;
  const BudgetText one{at.text().measured, at.text().held.first(1)};
  const test::TemporaryDirectory folder;
  const auto calibrate = [&](Journal journal) {
    return calibrate_to_budget(*at.tiny.decoder, "lagkv", at.half(), one, {}, &journal);
  };
  const auto path = folder.path() / "j";
  const BudgetCalibration found = calibrate(Journal::create(path, Json::object()));
  const auto evaluated = [&](const char* method, const Json& settings) {
    const auto make = [&] {
      Parameters parameters({{settings, "", ErrorCode::kUsage}}, at.tiny.model->config().layers());
      return make_cache(*find_method(method), parameters, at.shape);
    };
    return evaluate(*at.tiny.decoder, one.held, {.make = make}).sum.error();
  };
  EXPECT_GT(found.full_nll_error, 0);
  EXPECT_NEAR(found.full_nll_error, evaluated("full", Json::object()), 1e-6);
  for (const BudgetContender& contender : found.contenders)
    EXPECT_NEAR(contender.nll_error, evaluated("lagkv", contender.settings), 1e-6);
  EXPECT_EQ(to_json(allocation_result(found)).at("contenders").at(0).at("nll_error"),
            found.contenders.front().nll_error);
  EXPECT_THAT(
      budget_summary(found, kBudgetTokens, at.sizes("full").full()),
      AllOf(HasSubstr(" ± "), HasSubstr("(full cache "), HasSubstr("; errors over the tokens of one document)")));
  EXPECT_EQ(to_json(allocation_result(calibrate(Journal::resume(path, Json::object())))),
            to_json(allocation_result(found)))
      << "replayed";
}

TEST(BudgetCalibration, RefusesABudgetThatNoSettingReaches) {
  BudgetCase at;
  try {
    at.calibrate("lagkv", {.bytes = at.half().bytes / 10});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr("budget: found "), HasSubstr("5.0 %"),
                                               HasSubstr("expected at least"), HasSubstr("\"lag\":8")));
  }
  EXPECT_EQ(at.measurements, 0U);
  try {
    at.calibrate("lagkv", at.half({{"lags", 3}}));
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("lags"));
  }
}

TEST(BudgetSpace, ThePrefixLeavesRoomForWhatFollows) {
  const BudgetCase at;
  const auto prefix = [&](std::size_t parts) {
    const BudgetSpace space(*find_method("snapkv"), at.tiny.model->config(), kBudgetTokens,
                            at.sizes("full").full() / parts, {{"window", 4}});
    return kBudgetTokens - space.room().later;
  };
  EXPECT_EQ(prefix(2), 48U - 48 / 4);      // a quarter of the document
  EXPECT_EQ(prefix(4), 48U - 48 / 4 / 2);  // half of the budget's rows
}

TEST(BudgetSpace, WindowsTakeTheirBytesFirst) {
  ModelConfig model;
  model.layer.assign(2, {.attention = {.query_heads = 1, .kv_heads = 1, .head_dim = 32}, .feed_forward = {}});
  model.d_model = 32;
  model.context = 64;
  model.layer[0].attention.window = 8;
  constexpr std::size_t kRow = 2 * 32 * 2, kLength = 40;
  EXPECT_EQ(windowed_tokens(model, kLength), 8);
  const BudgetSpace space(*find_method("lagkv"), model, kLength, (8 + kLength / 2) * kRow, Json::object());
  EXPECT_EQ(space.room().rows, kLength / 2);
}

TEST(BudgetSpace, ChunksThatAreGivenStayAndLeaveTheRoomAsItIs) {
  BudgetCase at;
  const auto space_of = [&](Json given) {
    given.update({{"prefix", 40}, {"chunks", 6}});
    return BudgetSpace(*find_method("faedkv"), at.tiny.model->config(), kBudgetTokens, at.half().bytes, given);
  };
  for (const char* const name : {"kept", "kept_v"}) {
    BudgetSpace space = space_of({{name, Json::array({0})}, {"sinks", 2}, {"recent", 4}});
    EXPECT_EQ(space.room().rows, space_of({{"sinks", 2}, {"recent", 4}}).room().rows) << name;
    const std::vector<Json> candidates = space.candidates();
    EXPECT_EQ(candidates.size(), 2U) << name;  // the chunks of the other as sized, and only its lowest chunk
    for (const Json& settings : candidates) EXPECT_EQ(settings.at(name), Json::array({0})) << name;
  }
}

// 22 chunks need 42 tokens of a prefix of 48, and the budget's 32 rows have space for 4 sinks.
TEST(BudgetSpace, LeavesRoomForManyChunksThatAreGiven) {
  const BudgetCase at;
  constexpr std::size_t kLength = 64;
  const Json given{{"chunks", 22}};
  const Method& method = *find_method("faedkv");
  CacheSizes sizes(method, at.shape, kLength);
  BudgetSpace space(method, at.tiny.model->config(), kLength, sizes.full() / 2, given);
  for (const Json& settings : space.candidates()) {
    EXPECT_EQ(settings.at("prefix"), 48);
    EXPECT_LE(sizes.total(settings), sizes.full() / 2);
  }
}

TEST(BudgetSpace, RefusesASizeThatIsGiven) {
  const BudgetCase at;
  for (const auto& [method, name] : {std::pair("lagkv", "ratio"), {"freqkv", "cache_size"}}) try {
      const BudgetSpace space(*find_method(method), at.tiny.model->config(), kBudgetTokens, at.half().bytes,
                              {{name, 1}});
      ADD_FAILURE() << method;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_THAT(error.what(), ::testing::HasSubstr(name));
    }
}

TEST(BudgetSpace, CodedRowsAreMore) {
  const BudgetCase at;
  const std::size_t bytes = at.sizes("full").full() / 4;
  const Json types{{"type", "int8_per_token_head"}};
  for (const char* method : {"lagkv", "freqkv"}) {
    const auto rows = [&](const Json& fixed) {
      return BudgetSpace(*find_method(method), at.tiny.model->config(), kBudgetTokens, bytes, fixed).room().rows;
    };
    EXPECT_EQ(rows(Json::object()), kBudgetTokens / 4) << method;
    EXPECT_EQ(rows(types), bytes * kBudgetTokens / at.sizes("full").total(types)) << method;
    EXPECT_GT(rows(types), kBudgetTokens / 4) << method;
  }
}

TEST(BudgetSpace, ScalesACandidateWithItsSize) {
  BudgetCase at;
  BudgetSpace space(*find_method("lagkv"), at.tiny.model->config(), kBudgetTokens, at.half().bytes, Json::object());
  const std::vector<Json> candidates = space.candidates();
  EXPECT_EQ(candidates.back().at("lag"), 24 * 3 / 8);  // lags of 7/16 leave no row for a chosen token
  EXPECT_EQ(space.scaled(candidates.size() - 1, 1), candidates.back());
  const auto larger = space.scaled(candidates.size() - 1, 1.5);
  ASSERT_TRUE(larger);
  EXPECT_EQ(larger->at("lag"), 36 * 3 / 8);
  EXPECT_EQ(space.scaled(candidates.size() - 1, 0.25), std::nullopt);  // two lags of 8 are more
}

TEST(BudgetLattice, StepsFromSizeToSize) {
  const BudgetCase at;
  CacheSizes sizes = at.sizes("streaming");
  const std::vector<std::size_t> layers{0, 2};
  const auto scaled = [&](double share) {
    return sizes.fitted(Json::object(), static_cast<std::size_t>(share * static_cast<double>(sizes.full() / 4)));
  };
  const BudgetLattice lattice = sized_lattice(sizes, scaled, layers);
  ASSERT_EQ(lattice.layers.size(), 2U);
  const auto size_of = [&](std::size_t candidate) {
    return lattice.settings[1][candidate].at("cache_size").get<std::size_t>();
  };
  EXPECT_EQ(size_of(lattice.start), kBudgetTokens / 4);
  std::vector<std::size_t> reached;
  for (const std::size_t step : lattice.layers[1][lattice.start].steps) reached.push_back(size_of(step));
  EXPECT_THAT(reached, ::testing::UnorderedElementsAre(9, 15));  // 12 · 2^(∓1/3)
  const std::size_t row = at.sizes("full").full() / at.tiny.model->config().layers() / kBudgetTokens;
  for (std::size_t candidate = 0; candidate < lattice.settings[1].size(); ++candidate)
    EXPECT_EQ(lattice.layers[1][candidate].size, size_of(candidate) * row);
}

TEST(BudgetLattice, StepsToALayersOwnSettingsOfTheSameSizeAndBack) {
  const BudgetCase at;
  CacheSizes sizes = at.sizes("streaming");
  const std::vector<std::size_t> layers{0, 2};
  const auto scaled = [&](double share) {
    return sizes.fitted({{"sinks", 4}}, static_cast<std::size_t>(share * static_cast<double>(sizes.full() / 4)));
  };
  BudgetLattice lattice = sized_lattice(sizes, scaled, layers);
  add_own_values("sinks", std::vector(lattice.settings.front().size(), Json{4, 2}), lattice);  // layers[0] has none
  const auto steps_of = [&](std::size_t n, std::size_t candidate) {
    std::vector<std::pair<int, int>> reached;  // sinks, cache_size
    for (const std::size_t step : lattice.layers[n][candidate].steps)
      reached.emplace_back(lattice.settings[n][step].at("sinks"), lattice.settings[n][step].at("cache_size"));
    return reached;
  };
  using ::testing::UnorderedElementsAre;
  EXPECT_THAT(steps_of(0, lattice.start), UnorderedElementsAre(std::pair(4, 9), std::pair(4, 15)));
  EXPECT_THAT(steps_of(1, lattice.start), UnorderedElementsAre(std::pair(4, 9), std::pair(4, 15), std::pair(2, 12)));
  const std::size_t twin = lattice.layers[1][lattice.start].steps.back();
  Json own = lattice.settings[1][lattice.start];
  own["sinks"] = 2;
  EXPECT_EQ(lattice.settings[1][twin], own);
  EXPECT_EQ(lattice.layers[1][twin].size, lattice.layers[1][lattice.start].size);
  EXPECT_THAT(steps_of(1, twin), UnorderedElementsAre(std::pair(2, 9), std::pair(2, 15), std::pair(4, 12)));
}

TEST(BudgetLattice, StepsOfStoresChangeOneSideToTheNextKind) {
  const CacheShape wide{
      .layers = {{.kv_heads = 1, .head_dim = 32}}};  // a row of q8_0 has 34 bytes, of q4_0 18, of f16 64
  CacheSizes sizes(*find_method("full"), wide, 10);
  std::vector<Json> settings;
  for (const char* k : {"f16", "q8_0", "q4_0"})
    for (const char* v : {"f16", "q8_0", "q4_0"}) settings.push_back({{"type_k", k}, {"type_v", v}});
  const std::vector<std::size_t> layers{0};
  const BudgetLattice lattice = plain_lattice(sizes, settings, 4, layers);
  const LayerCandidate& start = lattice.layers[0][lattice.start];
  EXPECT_EQ(start.size, 10U * (34 + 34));
  EXPECT_THAT(start.steps, ::testing::UnorderedElementsAre(1, 3, 5, 7));
  EXPECT_THAT(lattice.layers[0][0].steps, ::testing::UnorderedElementsAre(1, 3));
}

TEST(BudgetLattice, ALayerOfOneTypeMayStayAt16Bits) {
  const CacheShape deep{.layers = std::vector<LayerShape>(6, {.kv_heads = 1, .head_dim = 64})};
  CacheSizes sizes(*find_method("full"), deep, 10);
  const Json uniform{{"type", "turboquant_4bit_nc"}, {"type_skip_layers", {0, 1, 4, 5}}};
  const std::vector<std::size_t> layers{0, 2, 3};
  const BudgetLattice lattice = skipping_lattice(sizes, uniform, layers);
  EXPECT_EQ(lattice.settings[1][lattice.start], uniform);
  EXPECT_TRUE(lattice.layers[0][0].steps.empty());  // the engine keeps it at 16 bits itself
  EXPECT_THAT(lattice.layers[1][0].steps, ::testing::ElementsAre(1));
  EXPECT_EQ(lattice.layers[1][1].size, 10U * 2 * 64 * 2);
  EXPECT_EQ(lattice.settings[1][1].at("type_skip_layers"), Json({2}));
  EXPECT_EQ(skipping_settings(uniform, layers, {0, 0, 1}).at("type_skip_layers"), Json({0, 1, 3, 4, 5}));
}

TEST(BudgetLattice, SettingsOfLayersAreListsWhereTheyDiffer) {
  const Json same{{"sinks", 4}, {"kept", {0, 1}}}, other{{"sinks", 4}, {"kept", {0}}};
  EXPECT_EQ(by_layer_settings({same, same}), same);
  EXPECT_EQ(by_layer_settings({same, other}), Json::parse(R"({"sinks": 4, "kept": [[0, 1], [0]]})"));
}

}  // namespace
}  // namespace kvs
