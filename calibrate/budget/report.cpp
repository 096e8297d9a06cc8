// SPDX-License-Identifier: Apache-2.0
#include "calibrate/budget/report.h"

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "calibrate/common/engine_pairs.h"
#include "calibrate/config/config.h"
#include "core/exponential.h"
#include "eval/document_loss.h"

namespace kvs::inline calibrate {
namespace {

double mean_nll(const std::vector<double>& nll) { return paired_mean(nll).mean; }

/// The settings chosen by calibrations that a text names.
constexpr std::array<std::string_view, 16> kChosen{
    "type",  "type_k", "type_v", "type_skip_layers", "cache_size", "ratio",        "lag", "sinks", "recent",
    "gamma", "chunks", "kept",   "kept_k",           "kept_v",     "value_weight", "band"};

/// Returns a value in words: "q4_0", "0.25", or "12 × q4_0, 18 × q8_0" for a list by layer.
std::string value_words(const Json& value) {
  if (!value.is_array()) return value.is_string() ? value.get<std::string>() : value.dump();
  std::map<std::string, std::size_t> counts;
  for (const Json& one : value) ++counts[one.is_string() ? one.get<std::string>() : one.dump()];
  constexpr std::size_t kMaxNamed = 4;
  if (counts.size() > kMaxNamed) return "by layer";
  std::string words;
  for (const auto& [word, count] : counts) words += (words.empty() ? "" : ", ") + std::to_string(count) + " × " + word;
  return words;
}

/// Returns "16 bits in layers 0, 5" for numbers of layers; "" for none.
std::string skipped_words(const Json& layers) {
  std::string words;
  for (const Json& layer : layers) words += (words.empty() ? "16 bits in layers " : ", ") + layer.dump();
  return words;
}

/// Returns settings in words: "K q8_0, V q4_0", "fp8, 16 bits in layers 0, 5", "ratio 0.25, lag 64, sinks 16".
std::string settings_words(const Json& settings) {
  std::string words;
  for (const std::string_view name : kChosen) {
    const auto found = settings.find(name);
    if (found == settings.end() || found->is_null() || *found == "type" || *found == "none") continue;
    if (name == "type_skip_layers") {
      const std::string skipped = skipped_words(*found);
      words += (words.empty() || skipped.empty() ? "" : ", ") + skipped;
      continue;
    }
    const std::string title = name == "type"     ? ""
                              : name == "type_k" ? "K "
                              : name == "type_v" ? "V "
                                                 : std::string(name) + ' ';
    const bool lists_chunks =
        name.starts_with("kept") && found->is_array() && !found->empty() && found->front().is_number();
    words += (words.empty() ? "" : ", ") + title + (lists_chunks ? std::to_string(found->size()) : value_words(*found));
  }
  return words;
}

/// Returns the settings of the contender `uniform`, or null if there is none.
Json uniform_settings(const BudgetCalibration& found) {
  for (const BudgetContender& one : found.contenders)
    if (one.name == "uniform") return one.settings;
  return {};
}

/// Returns a contender in words: "uniform (K iq4_nl, V q4_0)".
std::string contender_words(const BudgetContender& one) { return one.name + " (" + settings_words(one.settings) + ")"; }

double bytes_per_token(const BudgetCalibration& found, std::size_t tokens) {
  return static_cast<double>(found.contenders.front().bytes) / static_cast<double>(tokens);
}

/// Returns "11520 B a token (50 %)".
std::string size_words(const BudgetContender& one, std::size_t tokens, std::size_t full_bytes) {
  const auto bytes = static_cast<double>(one.bytes);
  std::ostringstream text;
  text.precision(3);
  text << std::lround(bytes / static_cast<double>(tokens)) << " B a token ("
       << 100 * bytes / static_cast<double>(full_bytes) << " %)";
  return text.str();
}

std::string perplexity_words(const BudgetContender& one) {
  return "perplexity " + exponential_with_error(mean_nll(one.nll), one.nll_error);
}

}  // namespace

AllocationResult allocation_result(const BudgetCalibration& found) {
  AllocationResult result{.winner = found.contenders.front().name,
                          .held_documents = found.full_nll.size(),
                          .contenders = {},
                          .trials = {},
                          .measured = found.measured,
                          .verdict = budget_verdict(found)};
  for (const BudgetContender& one : found.contenders) {
    auto& contender = result.contenders.emplace_back(AllocationResult::Contender{one.name, one.bytes, one.settings});
    if (!one.nll.empty()) contender.loss = MeanLoss::of(mean_nll(one.nll), one.nll_error);
    if (const auto difference = found.difference_from(one.name))
      contender.change = {difference->mean, difference->interval};
  }
  for (const BudgetTrial& trial : found.trials) {
    auto& entry =
        result.trials.emplace_back(AllocationResult::Trial{trial.settings, trial.documents, trial.divergence});
    if (!overflows(trial.divergence)) continue;
    entry.divergence.reset();
    entry.error = "found NaN or infinity, expected finite activations";
  }
  if (const auto types = type_pair(found.settings())) result.llama_cpp_cuda = builds_of(cuda_pair(types->k, types->v));
  return result;
}

Json budget_quality(const BudgetCalibration& found, std::size_t tokens) {
  if (found.full_nll.empty()) return Json::object();
  const double nll_full = mean_nll(found.full_nll);
  const BudgetContender& winner = found.contenders.front();
  AllocationQuality quality{.loss = MeanLoss::of(mean_nll(winner.nll), winner.nll_error),
                            .ppl_full = if_finite(std::exp(nll_full)),
                            .nll_full = nll_full,
                            .bytes_per_token = bytes_per_token(found, tokens)};
  return to_json(quality);
}

namespace {

/// Returns the settings passed over in words:
/// " K iq4_nl, V q4_0 diverges less by 0.0004 nats a token (95 %: −0.0002 to 0.001): not distinguishable".
std::string passed_over_words(const BudgetCalibration& found) {
  constexpr double kConfidence = 0.95;
  if (found.passed_over.is_null()) return "";
  const auto [mean, error] = paired_mean(found.passed_over_by);
  const std::size_t documents = found.passed_over_by.size();
  std::ostringstream text;
  text.precision(2);
  text << "; of the same bytes " << settings_words(found.passed_over) << " diverges less, by " << mean
       << " nats a token (";
  if (documents < 2) {
    text << "one document, no interval";
  } else {
    const double width = half_width(documents, kConfidence) * error;
    text << "95 %: " << mean - width << " to " << mean + width;
  }
  text << "), which is not distinguishable, and fewer builds run it";
  return text.str();
}

}  // namespace

std::string budget_verdict(const BudgetCalibration& found) {
  const BudgetContender& winner = found.contenders.front();
  if (found.full_nll.empty()) return winner.name + " chosen: nothing was held out";
  std::string words;
  for (const BudgetContender& other : found.contenders) {
    const auto difference = found.difference_from(other.name);
    if (!difference || other.settings == winner.settings) continue;
    const bool better = difference->interval && difference->interval->second < 0;
    words += (words.empty() ? "" : "; ") + std::string(better ? "better than " : "not distinguishable from ") +
             contender_words(other) + ": " + difference_text(*difference);
  }
  if (words.empty()) words = found.contenders.size() > 1 ? "the others are the same" : "there is no other of its size";
  return winner.name + (found.least == winner.name ? " chosen: " : ", the plainer, chosen: ") + words +
         (winner.settings == uniform_settings(found) ? passed_over_words(found) : "");
}

std::string budget_summary(const BudgetCalibration& found, std::size_t tokens, std::size_t full_bytes) {
  const BudgetContender& winner = found.contenders.front();
  std::string text = contender_words(winner) + ", " + size_words(winner, tokens, full_bytes);
  if (found.full_nll.empty()) return text + '\n';
  text += ", " + perplexity_words(winner) + " on what was held out (full cache " +
          exponential_with_error(mean_nll(found.full_nll), found.full_nll_error) +
          (found.full_nll.size() == 1 ? "; errors over the tokens of one document)" : ")");
  text += "\n  " + budget_verdict(found) + '\n';
  for (const BudgetContender& other : found.contenders)
    if (other.settings != winner.settings)
      text += "  " + contender_words(other) + ": " + size_words(other, tokens, full_bytes) + ", " +
              perplexity_words(other) + '\n';
  if (const auto types = type_pair(found.settings())) text += "  " + cuda_pair_text(types->k, types->v) + '\n';
  return text;
}

}  // namespace kvs::inline calibrate
