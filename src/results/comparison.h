// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/divergence.h"
#include "results/head.h"
#include "results/pareto_chart.h"
#include "results/task_answers.h"

namespace kvs::inline results {

/// The unit of an interval's samples.
enum class Samples { kDocuments, kParts };
constexpr std::array<std::string_view, 2> json_names(Samples) { return {"documents", "parts"}; }

/// A mean ratio with its 95 % interval; the interval is null for one sample.
struct SampledRatio {
  double mean = 1;
  draw::Interval interval = {};
  Samples over = Samples::kDocuments;

  static void fields(auto& ratio, auto&& field) {
    field("mean", ratio.mean)("interval", ratio.interval)("over", ratio.over);
  }
  static void check(const SampledRatio& ratio, const JsonCursor& json);
  /// is_above(): returns true if the interval lies above 1. is_clear(): returns true if the interval excludes 1.
  bool is_above() const { return interval && interval->first > 1; }
  bool is_clear() const { return is_above() || (interval && interval->second < 1); }
};

/// The losses of one configuration relative to another configuration, on the documents that both were scored on.
struct RelativeLoss {
  std::size_t documents = 0;
  SampledRatio ppl, kl;

  static void fields(auto& loss, auto&& field) { field("documents", loss.documents)("ppl", loss.ppl)("kl", loss.kl); }
};

/// The results of a cache on the questions of a task.
struct Retrieval {
  std::string task;
  double accuracy = 0, log_likelihood = 0;  // nats per answer token
  std::size_t questions = 0;
  std::optional<LikelihoodDifference> difference = {};  // from the full cache

  static void fields(auto& retrieval, auto&& field) {
    field("task", retrieval.task)("accuracy", retrieval.accuracy)("log_likelihood", retrieval.log_likelihood)(
        "questions", retrieval.questions);
    field.absent_or("difference", retrieval.difference);
  }
};

/// The size and the losses of a configuration's cache on the documents that it was scored on.
struct ScoredLoss {
  /// Perplexity divided by the full cache's perplexity.
  struct Ratio {
    draw::Interval interval = {};  // 95 %
    Samples over = Samples::kDocuments;
    std::optional<double> ppl = {};  // null if it overflows a double
    double nll_difference = 0;

    static void fields(auto& ratio, auto&& field) {
      field("interval", ratio.interval)("over", ratio.over)("ppl", ratio.ppl)("nll_difference", ratio.nll_difference);
    }
    static void check(const Ratio& ratio, const JsonCursor& json);
    /// The relative change of perplexity and its interval.
    std::optional<double> change() const { return ppl ? std::optional(*ppl - 1) : std::nullopt; }
    draw::Interval change_interval() const {
      return interval ? draw::Interval(std::pair(interval->first - 1, interval->second - 1)) : std::nullopt;
    }
  };
  double bytes_ratio = 0;  // bytes divided by the full cache's bytes
  std::size_t tokens_scored = 0;
  std::optional<double> ppl = {};  // null if it overflows a double
  double nll_mean = 0, kl = 0, top1 = 0;
  Ratio ratio = {};
  std::optional<DivergenceTail> tail = {};  // absent in files of older versions

  /// Returns true for a cache that is not to be used (docs/recommend.md).
  bool is_unsafe() const noexcept { return kl > kUnsafeKl || top1 < kUnsafeTop1; }
  static void fields(auto& loss, auto&& field) {
    field("bytes_ratio", loss.bytes_ratio)("tokens_scored", loss.tokens_scored)("ppl", loss.ppl)(
        "nll_mean", loss.nll_mean)("kl", loss.kl)("top1", loss.top1)("ratio", loss.ratio);
    field.absent_or("tail", loss.tail);
  }
};

/// One configuration of a cache at one budget.
struct ComparedConfiguration {
  std::string label, method;
  std::string form = {};                 // what a reader can do with the bytes; absent in files of older versions
  std::optional<std::string> type = {};  // storage type of the rows
  double budget = 0;                     // as a share of the full cache's bytes
  Json settings = Json::object();
  std::optional<std::string> config = {};
  bool calibrated = false;
  std::size_t shared_bytes = 0;           // bytes shared by all sequences
  std::vector<std::string> engines = {};  // that execute it; absent in files of older versions
  std::size_t documents = 0;              // number of documents that it was scored on
  bool stopped = false, pareto_front = false;
  std::optional<Retrieval> retrieval = {};
  std::optional<std::string> error = {};  // the reason for missing scores
  std::optional<double> needs = {};       // smallest possible share of the bytes, if it exceeds the budget
  std::optional<ScoredLoss> loss = {};
  std::optional<RelativeLoss> over_standard = {};  // calibrated settings relative to the paper's settings
  std::optional<RelativeLoss> over_best = {};  // relative to the configuration of least divergence at the same budget

  static void fields(auto& one, auto&& field) {
    field("label", one.label)("method", one.method)("type", one.type)("budget", one.budget)("settings", one.settings)(
        "config", one.config)("calibrated", one.calibrated)("shared_bytes", one.shared_bytes)(
        "documents", one.documents)("stopped", one.stopped)("pareto_front", one.pareto_front, "front")(
        "retrieval", one.retrieval)("error", one.error)("needs", one.needs);
    field.newer("form", one.form);
    field.newer("engines", one.engines);
    field.inlined("bytes_ratio", one.loss);
    field("over_standard", one.over_standard)("over_best", one.over_best);
  }
  static void check(const ComparedConfiguration& one, const JsonCursor& json);
};

/// The best configuration of a budget (docs/compare.md).
struct BestChoice {
  /// The divergence relative to the configuration that the verdict names.
  struct Evidence {
    SampledRatio ratio;
    std::size_t relative_to = 0;

    static void fields(auto& evidence, auto&& field) {
      field.inlined(evidence.ratio);
      field("relative_to", evidence.relative_to);
    }
  };
  double budget = 0;
  std::optional<std::size_t> configuration = {}, leader = {};
  std::size_t documents = 0;
  std::vector<std::size_t> alike = {};
  std::optional<Evidence> kl = {};
  std::string verdict = {};
  std::size_t unscored = 0;

  static void fields(auto& choice, auto&& field) {
    field("budget", choice.budget)("configuration", choice.configuration, "cell")("leader", choice.leader)(
        "documents", choice.documents)("alike", choice.alike)("kl", choice.kl)("verdict", choice.verdict)(
        "unscored", choice.unscored);
  }
};

/// The smallest configuration of the front whose loss of perplexity is at most `loss`.
struct SmallestChoice {
  double loss = 0;
  std::optional<std::size_t> configuration = {};
  std::size_t documents = 0;
  std::string verdict = {};

  static void fields(auto& choice, auto&& field) {
    field("loss", choice.loss)("configuration", choice.configuration, "cell")("documents", choice.documents)(
        "verdict", choice.verdict);
  }
};

/// The work that was skipped because the time limit was reached.
struct LeftOut {
  struct Calibration {
    std::string label;
    double budget = 0;

    static void fields(auto& calibration, auto&& field) {
      field("label", calibration.label)("budget", calibration.budget);
    }
  };
  std::vector<Calibration> calibrations = {};
  std::size_t unscored = 0,
              shortened = 0;  // configurations without scores; undominated configurations scored on fewer documents
  std::optional<std::string> verdict = {};

  static void fields(auto& left, auto&& field) {
    field("calibrations", left.calibrations)("unscored", left.unscored)("shortened", left.shortened)("verdict",
                                                                                                     left.verdict);
  }
};

/// The result of `kvcalibrate compare`.
struct ComparisonResult {
  struct Calibration {
    std::vector<std::string> text_sha256;
    std::size_t tokens = 0;                           // tokens of one document
    std::size_t documents = 0;                        // largest number of documents used by any method
    std::size_t given = 0;                            // number of documents in the text
    std::map<std::string, std::size_t> methods = {};  // number of documents used by each method

    static void fields(auto& calibration, auto&& field) {
      field("text_sha256", calibration.text_sha256)("tokens", calibration.tokens)("documents", calibration.documents)(
          "given", calibration.given)("methods", calibration.methods);
    }
  };
  struct FullCache {
    std::optional<double> ppl = {};
    std::optional<Retrieval> retrieval = {};

    static void fields(auto& full, auto&& field) { field("ppl", full.ppl)("retrieval", full.retrieval); }
  };
  ResultHead head = {};
  std::string dtype = {};
  std::int64_t seed = 0;
  std::optional<Calibration> calibration = {};
  std::optional<std::vector<std::string>> calibration_text_sha256 = {};
  InputDigests inputs = {};
  std::size_t documents = 0, prefix = 0, tokens = 0;  // tokens: length of one document
  FullCache full = {};
  std::vector<double> budgets = {};  // descending
  std::vector<ComparedConfiguration> configurations = {};
  std::vector<BestChoice> best = {};
  std::vector<SmallestChoice> smallest = {};
  LeftOut left_out = {};
  bool timed = false;  // true if FILE_speed.json was written with the front's speeds

  static void fields(auto& result, auto&& field) {
    field.inlined(result.head);
    field("dtype", result.dtype)("seed", result.seed)("calibration", result.calibration);
    field.absent_or("calibration_text_sha256", result.calibration_text_sha256);
    field.inlined(result.inputs);
    field("documents", result.documents)("prefix", result.prefix)("tokens", result.tokens)("full", result.full)(
        "budgets", result.budgets)("configurations", result.configurations, "cells")("best", result.best)(
        "smallest", result.smallest)("left_out", result.left_out)("timed", result.timed);
  }
  static void check(const ComparisonResult& result, const JsonCursor& json);
  /// Returns the largest number of documents that any configuration was scored on.
  std::size_t max_documents() const;
};

/// Decoding speeds of a comparison's front: the content of FILE_speed.json.
struct ComparisonSpeeds {
  struct Speed {
    std::string label;
    double budget = 0, decode_tokens_per_second = 0, full_decode_tokens_per_second = 0, ratio = 1;

    static void fields(auto& one, auto&& field) {
      field("label", one.label)("budget", one.budget)("decode_tokens_per_second", one.decode_tokens_per_second)(
          "full_decode_tokens_per_second", one.full_decode_tokens_per_second)("ratio", one.ratio);
    }
  };
  std::string format = "kvspectrum-speeds";
  std::int64_t version = 1;
  std::size_t tokens = 0;
  std::vector<Speed> configurations = {};

  static void fields(auto& speeds, auto&& field) {
    field("format", speeds.format)("version", speeds.version)("tokens", speeds.tokens)("configurations",
                                                                                       speeds.configurations, "cells");
  }
};

/// Returns a line for each configuration ordered by budget and divergence, the best configuration of each budget, the
/// smallest configuration of each loss, and the retrieval results and decoding speeds of the front.
std::string to_text(const ComparisonResult& result, const std::optional<ComparisonSpeeds>& speeds);

/// Returns the configurations as points of bytes and divergence. Omits configurations that were scored on fewer
/// documents than the front.
/// @param tooltip  returns the description of a configuration; may be empty
std::vector<TradePoint> trade_points(const ComparisonResult& result,
                                     const std::function<std::string(const ComparedConfiguration&)>& tooltip = {});
/// @param methods  determines the order in which colours and marks are assigned
draw::Chart comparison_chart(const ComparisonResult& result, std::span<const std::string> methods);

}  // namespace kvs::inline results
