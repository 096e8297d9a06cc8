// SPDX-License-Identifier: Apache-2.0
#include "calibrate/budget/calibration.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

#include "caches/document_cache.h"
#include "calibrate/budget/by_layer.h"
#include "calibrate/budget/halving.h"
#include "calibrate/budget/loss_log.h"
#include "calibrate/registry.h"
#include "core/error.h"
#include "io/record.h"
#include "model/passes_together.h"
#include "ranks/one_process.h"
#include "ranks/watch.h"

namespace kvs::inline calibrate {
namespace {

using Documents = std::span<const std::vector<std::int32_t>>;

const Method& method_of(std::string_view name) {
  const Method* const method = find_method(name);
  if (method == nullptr)
    throw Error(ErrorCode::kUsage, "method", "found '" + std::string(name) + "', expected a cache method");
  return *method;
}

/// Joint losses need many passes and compare similar settings, so they use a quarter of the documents.
Documents layer_documents(Documents measured) { return measured.first((measured.size() + 3) / 4); }

ResidualStream run_with(Decoder& decoder, const BudgetSpace& space, std::span<const std::int32_t> document,
                        const Json& settings) {
  Cache cache = for_documents(space.cache(settings));
  ResidualStream hidden = decoder.embed(document, 0, cache.positions(document.size()));
  decoder.advance(hidden, space.model().layers(), nullptr, &cache);
  return hidden;
}

std::vector<HalvedCandidate> screened(Decoder& decoder, const BudgetSpace& space, const std::vector<Json>& candidates,
                                      const BudgetText& text, std::size_t prefix, LossLog& log) {
  std::vector<DocumentLoss> losses;
  for (std::size_t n = 0; n < text.measured.size(); ++n)
    losses.emplace_back(text.full.empty() ? std::make_shared<FullPass>(decoder, text.measured[n]) : text.full[n],
                        prefix);
  const auto measure = [&](std::span<const CandidateTrial> round) {
    return log.each(round.size(), [&](std::size_t n) {
      note_document(round[n].document);
      DocumentLoss& of = losses[round[n].document];
      (void)of.reference();  // errors of the model itself end the run
      return loss_or_overflow(
          [&] { return of.divergence(run_with(decoder, space, of.tokens(), candidates[round[n].candidate])); });
    });
  };
  std::vector<HalvedCandidate> ranked = successive_halving(candidates.size(), losses.size(), measure);
  if (overflows(ranked.front().mean()))
    throw Error(ErrorCode::kData, space.model().name,
                "found NaN or infinity with every setting of the budget, expected finite activations with one of them");
  return ranked;
}

bool is_clear(const PairedDifference& difference) {
  return difference.interval && (difference.interval->first > 0 || difference.interval->second < 0);
}

/// Returns, of the settings with the best one's bytes that its documents do not distinguish from it, the one with the
/// least demand; on equal demand, the better one.
std::size_t chosen_candidate(const std::vector<HalvedCandidate>& ranked, const std::vector<Json>& candidates,
                             BudgetSpace& space) {
  const HalvedCandidate& best = ranked.front();
  const auto demand = space.grid().demand;
  if (demand == nullptr) return best.candidate;
  const std::size_t bytes = space.sizes().total(candidates[best.candidate]);
  std::size_t chosen = best.candidate;
  for (const HalvedCandidate& one : ranked) {
    if (one.losses.size() != best.losses.size() || space.sizes().total(candidates[one.candidate]) != bytes) continue;
    if (is_clear(paired_difference(one.losses, best.losses))) continue;
    if (demand(candidates[one.candidate]) < demand(candidates[chosen])) chosen = one.candidate;
  }
  return chosen;
}

/// Losses of passes over the held-out documents.
struct HeldOut {
  using Run = std::function<ResidualStream(std::span<const std::int32_t>)>;

  Decoder& decoder;
  Documents documents;
  std::size_t prefix;
  LossLog& log;

  DocumentLoss loss(std::size_t n) const { return {decoder, documents[n], prefix}; }
  /// Returns the mean NLL of each document. @param run  a pass over one document
  std::vector<double> nll(const Run& run) const {
    return log.each(documents.size(), [&](std::size_t n) { return loss(n).nll(run(documents[n])); });
  }
  /// Like nll(), for passes that may overflow f32.
  std::vector<double> nll_or_overflow(const Run& run) const {
    return log.each(documents.size(),
                    [&](std::size_t n) { return loss_or_overflow([&] { return loss(n).nll(run(documents[n])); }); });
  }
  /// Returns the standard error of the mean of `nll`: over documents; of one document, over tokens (another pass).
  double error(const std::vector<double>& nll, const Run& run) const {
    if (nll.empty() || overflows(nll.front())) return 0;
    if (nll.size() > 1) return paired_mean(nll).error;
    const auto check = [](const JsonCursor& record) {
      if (record_reals(record, 1).front() < 0) record.fail("a number of at least 0");
    };
    return log.kept([&](Ranks&) { return Json::array({loss(0).nll_error(run(documents[0]))}); }, check)
        .front()
        .get<double>();
  }
};

/// Puts the plainest contender not distinguished from the best on held-out documents first; sorts the others by loss.
void choose_contender(BudgetCalibration& found) {
  constexpr std::array<std::string_view, 3> kPlainness{"standard", "uniform", "layers"};
  std::erase_if(found.contenders, [](const BudgetContender& one) { return overflows(paired_mean(one.nll).mean); });
  if (found.contenders.empty())
    throw Error(ErrorCode::kData, "documents held out",
                "found NaN or infinity with every setting, expected finite activations with one of them");
  std::ranges::stable_sort(found.contenders, {}, [](const BudgetContender& one) { return paired_mean(one.nll).mean; });
  const std::vector<double> best = found.contenders.front().nll;
  found.least = found.contenders.front().name;
  const auto rank = [&](const BudgetContender& one) {
    return std::ranges::find(kPlainness, one.name) - kPlainness.begin();
  };
  auto chosen = found.contenders.begin();
  for (auto one = chosen + 1; one != found.contenders.end(); ++one)
    if (rank(*one) < rank(*chosen) && !is_clear(paired_difference(one->nll, best))) chosen = one;
  std::rotate(found.contenders.begin(), chosen, chosen + 1);
}

/// Measures the losses of the full cache and of the contenders.
void measure_held(const HeldOut& held, BudgetSpace& space, BudgetCalibration& found) {
  const auto full = [&](std::span<const std::int32_t> document) {
    ResidualStream hidden = held.decoder.embed(document);
    held.decoder.advance(hidden, space.model().layers());
    return hidden;
  };
  found.full_nll = held.nll(full);
  found.full_nll_error = held.error(found.full_nll, full);
  for (BudgetContender& contender : found.contenders) {
    const auto run = [&](std::span<const std::int32_t> document) {
      return run_with(held.decoder, space, document, contender.settings);
    };
    contender.bytes = space.sizes().total(contender.settings);
    contender.nll = held.nll_or_overflow(run);
    contender.nll_error = held.error(contender.nll, run);
  }
}

}  // namespace

std::optional<PairedDifference> BudgetCalibration::difference_from(std::string_view name) const {
  const auto other = std::ranges::find(contenders, name, &BudgetContender::name);
  if (other == contenders.end() || other == contenders.begin() || other->nll.empty()) return std::nullopt;
  return paired_difference(contenders.front().nll, other->nll);
}

BudgetCalibration calibrate_to_budget(Decoder& decoder, std::string_view method, const BudgetPlan& plan,
                                      const BudgetText& text, const std::function<void(std::size_t, std::size_t)>& done,
                                      Journal* journal, Ranks* ranks) {
  const auto alone = make_one_process();
  BudgetSpace space(method_of(method), decoder.model().config(), text.measured.front().size(), plan.bytes, plan.fixed,
                    plan.offered);
  const std::vector<Json> candidates = space.candidates();
  LossLog log(done, max_losses(space.model(), method, plan, text), journal, ranks == nullptr ? *alone : *ranks,
              passes_together(decoder.model(), text.measured.front().size()));
  BudgetCalibration found;
  const std::size_t prefix = space.cache(candidates.front()).prefix().tokens;
  const auto ranked = screened(decoder, space, candidates, text, prefix, log);
  for (const HalvedCandidate& one : ranked)
    found.trials.push_back({candidates[one.candidate], space.grid_index(one.candidate), one.losses.size(), one.mean()});
  const std::size_t best = chosen_candidate(ranked, candidates, space);
  if (best != ranked.front().candidate) {
    found.passed_over = candidates[ranked.front().candidate];
    const auto chosen = std::ranges::find(ranked, best, &HalvedCandidate::candidate);
    std::ranges::transform(chosen->losses, ranked.front().losses, std::back_inserter(found.passed_over_by),
                           std::minus{});
  }
  found.contenders.push_back({"uniform", candidates[best]});  // wins if layers trade nothing
  if (plan.rounds > 0)
    found.contenders.push_back({"layers", settings_by_layer(space, decoder, best, plan.rounds,
                                                            layer_documents(text.measured), text.states, log)});
  if (auto standard = space.standard()) found.contenders.push_back({"standard", std::move(*standard)});
  measure_held({decoder, text.held, prefix, log}, space, found);
  if (!text.held.empty()) choose_contender(found);
  found.measured = log.measured();
  return found;
}

std::size_t max_losses(const ModelConfig& model, std::string_view method, const BudgetPlan& plan,
                       const BudgetText& text) {
  constexpr std::size_t kContenders = 4;  // including the full cache
  const std::size_t tokens = text.measured.front().size(),
                    settings = plan.offered ? plan.offered->settings.size()
                                            : budget_grid(method).settings({tokens, tokens}).size(),
                    joint = plan.rounds > 0
                                ? by_layer_losses(model, plan.rounds,
                                                  plan.offered ? plan.offered->by_layer : TypesByLayer::kAny)
                                : 0;
  return halving_losses(settings, text.measured.size()) + joint * layer_documents(text.measured).size() +
         kContenders * text.held.size();
}

}  // namespace kvs::inline calibrate
