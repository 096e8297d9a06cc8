// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/recommendation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "calibrate/compare/choices.h"

namespace kvs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Scored {
  const char* label;
  double bytes, kl, top1;
  bool front = true;
};

ComparisonResult comparison_of(const std::vector<Scored>& caches) {
  ComparisonResult result{.head = {.model = {.name = "tiny"}}, .documents = 2, .tokens = 32};
  for (const auto& [label, bytes, kl, top1, front] : caches)
    result.configurations.push_back(
        {.label = label,
         .method = "full",
         .settings = {{"type", label}},
         .documents = 2,
         .pareto_front = front,
         .loss = ScoredLoss{.bytes_ratio = bytes,
                            .tokens_scored = 62,
                            .kl = kl,
                            .top1 = top1,
                            .ratio = {.ppl = 1 + kl},
                            .tail = DivergenceTail{.p99 = 10 * kl, .p999 = 15 * kl, .largest = {20 * kl, 1, 7, 3}}}});
  return result;
}

const std::vector<Scored> kLlama{{"q8_0", 0.53, 0.0002, 0.99},
                                 {"q5_1", 0.375, 0.013, 0.93, false},
                                 {"q5_0", 0.34, 0.012, 0.93},
                                 {"q4_0", 0.28, 0.06, 0.86},
                                 {"iq4_nl", 0.27, 0.2, 0.7}};

class Recommendations : public ::testing::Test {
 protected:
  Recommendations() {
    model_.layer.assign(1, {.attention = {.query_heads = 1, .kv_heads = 1, .head_dim = 32}, .feed_forward = {}});
    model_.context = 64;
  }
  Recommendation recommended(const std::vector<Scored>& caches, std::optional<double> max_share, double max_kl = 0) {
    return recommend(comparison_of(caches), {&engine_of("llama.cpp", ""), 64, max_share, max_kl}, model_, chosen_);
  }
  static std::vector<std::string> labels_of(const std::vector<Recommendation::Cache>& caches) {
    std::vector<std::string> labels;
    labels.reserve(caches.size());
    for (const Recommendation::Cache& cache : caches) labels.push_back(cache.label);
    return labels;
  }

  ModelConfig model_;
  std::optional<std::size_t> chosen_;
};

TEST_F(Recommendations, AreTheFewestBytesWithinADivergence) {
  const Recommendation one = recommended(kLlama, {}, 0.02);
  EXPECT_EQ(chosen_, 2U);
  EXPECT_EQ(one.chosen->label, "q5_0");
  EXPECT_DOUBLE_EQ(one.chosen->bytes, 0.34 * 2 * 2 * 32 * 64);
  EXPECT_EQ(one.safer->label, "q8_0");  // q5_1 is not on the front
  EXPECT_FALSE(one.smaller);            // q4_0 is not safe
  EXPECT_THAT(labels_of(one.unsafe), ElementsAre("q4_0", "iq4_nl"));
}

TEST_F(Recommendations, AreTheLeastDivergenceWithinABudget) {
  const Recommendation one = recommended(kLlama, 0.38);
  EXPECT_EQ(one.chosen->label, "q5_0");
  EXPECT_DOUBLE_EQ(*one.max_bytes, 0.38 * one.full_bytes);
  EXPECT_EQ(recommended(kLlama, 0.9).chosen->label, "q8_0");
  EXPECT_EQ(recommended(kLlama, 0.9).smaller->label, "q5_0");
}

TEST_F(Recommendations, StayAt16BitsIfNothingIsWithinTheDivergence) {
  const Recommendation one = recommended(kLlama, {}, 1e-5);
  EXPECT_FALSE(chosen_ || one.chosen);
  EXPECT_EQ(one.safer->label, "q8_0");
  EXPECT_THAT(to_text(one),
              AllOf(HasSubstr("Stay at 16 bits: no cache of llama.cpp has a KL divergence of at most 1e-05"),
                    HasSubstr("measured on 2 documents of 32 tokens"), HasSubstr("least KL      q8_0"),
                    Not(HasSubstr("next safer"))));
}

TEST_F(Recommendations, StayAt16BitsForWhatWasMeasuredIfTheTimeEnded) {
  ComparisonResult comparison = comparison_of(kLlama);
  for (ComparedConfiguration& one : std::span(comparison.configurations).first(4)) {
    one.documents = 0;
    one.loss.reset();
    one.error = kNoTimeToScore;
  }
  const Engine& engine = engine_of("llama.cpp", "");
  EXPECT_THAT(to_text(recommend(comparison, {&engine, 64, {}, 0.02}, model_, chosen_)),
              HasSubstr("Stay at 16 bits: no measured cache of llama.cpp has a KL divergence of at most 0.02"));
  EXPECT_THAT(to_text(recommend(comparison, {&engine, 64, 0.2, 0.02}, model_, chosen_)),
              HasSubstr("Stay at 16 bits: no measured cache of llama.cpp is within 0.00164 MB.\n"));
  comparison.configurations.resize(4);
  EXPECT_EQ(to_text(recommend(comparison, {&engine, 64, {}, 0.02}, model_, chosen_)),
            "tiny in llama.cpp (0c1e570, 2026-09)\n"
            "No recommendation: within the time limit no cache of llama.cpp was measured.\n"
            "  not measured in the time limit: q8_0, q5_1, q5_0, q4_0\n");
}

TEST_F(Recommendations, NameNoSaferCacheThatIsNotToBeUsed) {
  const Recommendation one = recommended({{"fp8", 0.5, 0.06, 0.8}}, {}, 0.02);
  EXPECT_FALSE(one.chosen || one.safer);
  EXPECT_THAT(labels_of(one.unsafe), ElementsAre("fp8"));
}

TEST_F(Recommendations, SayWhyTheModelHasNoCache) {
  ComparisonResult comparison = comparison_of(kLlama);
  for (ComparedConfiguration& one : comparison.configurations) {
    one.loss.reset();
    one.error = "q8_0: found a head_dim of 16";
  }
  const Recommendation one = recommend(comparison, {&engine_of("llama.cpp", ""), 64, {}, 0.02}, model_, chosen_);
  EXPECT_THAT(to_text(one), AllOf(HasSubstr("no cache of llama.cpp can be measured on this model: q8_0: found a "
                                            "head_dim of 16\n"),
                                  Not(HasSubstr("top 1"))));
}

TEST(Budgets, AreReachedByTheirOwnConfigurations) {
  const std::vector<Configuration> configurations{
      {.label = "h2o + q8_0", .method = "h2o", .budget = 0.125, .error = "needs 21 %", .needs = 0.21},
      {.label = "h2o + q8_0", .method = "h2o", .budget = 0.25},
      {.label = "q4_0", .method = "full", .budget = 0.375, .share = 0.28}};
  EXPECT_NO_THROW(require_reachable(configurations, "30%", 0.3));  // the nearest of all has no settings at its budget
  EXPECT_NO_THROW(require_reachable(configurations, "25%", 0.25));
  try {
    require_reachable(configurations, "20%", 0.2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "--budget: found 20%, which no cache of the engine reaches; the nearest is h2o + q8_0 with 21 %");
  }
}

TEST_F(Recommendations, SayInWordsWhatTheyCost) {
  Recommendation one = recommended(kLlama, {}, 0.02);
  one.use = EngineUse{.engine = "llama.cpp", .flags = "-ctk q5_0 -ctv q5_0", .notes = {"a note"}};
  EXPECT_THAT(to_text(one),
              AllOf(HasSubstr("Use q5_0: 0.00279 MB at 64 tokens, 34.0 % of 0.00819 MB (fewest bytes with a KL "
                              "divergence of at most 0.02 nats a token)."),
                    HasSubstr("the largest is 0.240 at token 7 of document 1"),
                    HasSubstr("llama.cpp: -ctk q5_0 -ctv q5_0\n    a note"),
                    HasSubstr("the text is too short for a context of 64 tokens"), HasSubstr("do not use    q4_0"),
                    Not(HasSubstr("next smaller"))));
  const Json json = to_json(one);
  EXPECT_EQ(dump_json(to_json(from_json<Recommendation>({json, "recommendation.json"}))), dump_json(json));
}

TEST_F(Recommendations, LeaveOutWhatWasScoredOnFewerDocumentsForLackOfTime) {
  ComparisonResult comparison = comparison_of(kLlama);
  comparison.configurations[2].documents = 1;
  comparison.configurations[3].documents = 0;
  comparison.configurations[3].loss.reset();
  comparison.configurations[3].error = kNoTimeToScore;
  const Recommendation one = recommend(comparison, {&engine_of("llama.cpp", ""), 64, {}, 0.02}, model_, chosen_);
  EXPECT_EQ(one.chosen->label, "q5_1");
  EXPECT_THAT(to_text(one),
              AllOf(HasSubstr("(fewest bytes of the measured caches with a KL divergence of at most 0.02"),
                    HasSubstr("\n  not measured in the time limit: q4_0\n"),
                    HasSubstr("\n  measured on fewer documents, not candidates: q5_0\n")));
}

TEST_F(Recommendations, CountsCachesOfOneName) {
  Recommendation one;
  one.unmeasured = {"streaming", "h2o", "streaming", "tova", "streaming", "h2o"};
  EXPECT_THAT(to_text(one), HasSubstr("\n  not measured in the time limit: streaming (3), h2o (2), tova\n"));
}

TEST_F(Recommendations, LeaveOutWhatWasStopped) {
  ComparisonResult comparison = comparison_of(kLlama);
  comparison.configurations[2].stopped = true;
  const Recommendation one = recommend(comparison, {&engine_of("llama.cpp", ""), 64, {}, 0.02}, model_, chosen_);
  EXPECT_EQ(one.chosen->label, "q5_1");
}

TEST_F(Recommendations, OfEqualBytesAreTheLeastDivergence) {
  const std::vector<Scored> caches{{"q4_0", 0.28, 0.07, 0.95, false}, {"iq4_nl", 0.28, 0.06, 0.95}};
  EXPECT_EQ(recommended(caches, {}, 0.2).chosen->label, "iq4_nl");
}

TEST_F(Recommendations, SayThatABudgetAllowsNoSafeCache) {
  const Recommendation one = recommended(kLlama, 0.3);
  EXPECT_EQ(one.chosen->label, "q4_0");
  EXPECT_THAT(to_text(one), AllOf(HasSubstr(".\n  not safe: less than 90 % equal first choices; the next safer "
                                            "cache is q5_0\n"),
                                  Not(HasSubstr("tokens are few"))));
  EXPECT_THAT(to_text(recommended(kLlama, 0.27)),
              HasSubstr("not safe: KL divergence above 0.1 nats a token and less than 90 % equal first choices"));
  EXPECT_THAT(to_text(recommended(kLlama, 0.38)), Not(HasSubstr("not safe")));
}

TEST_F(Recommendations, StateTheBytesOfMethodsAtTheMeasuredLength) {
  const Recommendation one =
      recommend(comparison_of(kLlama), {&engine_of("transformers-kvspectrum", ""), 64, {}, 0.02}, model_, chosen_);
  EXPECT_EQ(one.sized, 32U);
  EXPECT_DOUBLE_EQ(one.chosen->bytes, 0.34 * 2 * 2 * 32 * 32);
}

TEST_F(Recommendations, SayThatFewTokensProveLittle) {
  ComparisonResult comparison = comparison_of(kLlama);
  DivergenceTail& tail = *comparison.configurations[2].loss->tail;
  tail.top1_interval = {0.91, 0.95};
  const RecommendationGoal goal{&engine_of("llama.cpp", ""), 64, {}, 0.02};
  EXPECT_THAT(to_text(recommend(comparison, goal, model_, chosen_)), Not(HasSubstr("are few")));
  tail.top1_interval = {0.8, 0.99};
  EXPECT_THAT(to_text(recommend(comparison, goal, model_, chosen_)),
              HasSubstr("62 tokens are few: the interval of equal first choices includes shares below 90.0 %"));
}

}  // namespace
}  // namespace kvs
