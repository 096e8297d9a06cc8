#include "eval/budget/calibration.h"

#include <algorithm>
#include <utility>

#include "calibrate/halving.h"
#include "core/error.h"
#include "eval/budget/by_layer.h"
#include "policy/document_cache.h"
#include "policy/methods.h"
#include "ranks/one_process.h"
#include "ranks/watch.h"

namespace kvs {
namespace {

using Documents = std::span<const std::vector<std::int32_t>>;

const CacheMethod& method_of(std::string_view name) {
  const CacheMethod* const method = find_cache_method(name);
  if (method == nullptr)
    throw Error(ErrorCode::kUsage, "method", "found '" + std::string(name) + "', expected a cache method");
  return *method;
}

/// Joint losses take many passes and compare what is close: a quarter of the documents.
Documents layer_documents(Documents measured) { return measured.first((measured.size() + 3) / 4); }

ResidualStream run_with(Decoder& decoder, const BudgetSpace& space, std::span<const std::int32_t> document,
                        const Json& settings) {
  Cache cache = for_documents(space.cache(settings));
  ResidualStream hidden = decoder.embed(document, 0, cache.positions(document.size()));
  decoder.advance(hidden, space.model().layers, nullptr, &cache);
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
      return of.divergence(run_with(decoder, space, of.tokens(), candidates[round[n].candidate]));
    });
  };
  return halve(candidates.size(), losses.size(), measure);
}

/// Mean NLL of each document. @param run  a pass over one
std::vector<double> held_nll(Decoder& decoder, Documents held, std::size_t prefix, LossLog& log,
                             const std::function<ResidualStream(std::span<const std::int32_t>)>& run) {
  return log.each(held.size(), [&](std::size_t n) { return DocumentLoss(decoder, held[n], prefix).nll(run(held[n])); });
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
  BudgetSpace space(method_of(method), decoder.model().config(), text.measured.front().size(), plan.bytes, plan.fixed);
  const std::vector<Json> candidates = space.candidates();
  LossLog log(done, most_losses(space.model(), method, plan, text), journal, ranks == nullptr ? *alone : *ranks);
  BudgetCalibration found;
  const std::size_t prefix = space.cache(candidates.front()).prefix().tokens;
  const auto ranked = screened(decoder, space, candidates, text, prefix, log);
  for (const HalvedCandidate& one : ranked)
    found.trials.push_back({candidates[one.candidate], space.place(one.candidate), one.losses.size(), one.mean()});
  const std::size_t best = ranked.front().candidate;
  found.contenders.push_back({"uniform", candidates[best]});  // which wins where layers trade nothing
  if (plan.rounds > 0)
    found.contenders.push_back({"layers", settings_by_layer(space, decoder, best, plan.rounds,
                                                            layer_documents(text.measured), text.states, log)});
  if (auto standard = space.standard()) found.contenders.push_back({"standard", std::move(*standard)});
  for (BudgetContender& contender : found.contenders) {
    contender.bytes = space.sizes().total(contender.settings);
    contender.nll = held_nll(decoder, text.held, prefix, log, [&](std::span<const std::int32_t> document) {
      return run_with(decoder, space, document, contender.settings);
    });
  }
  found.full_nll = held_nll(decoder, text.held, prefix, log, [&](std::span<const std::int32_t> document) {
    ResidualStream hidden = decoder.embed(document);
    decoder.advance(hidden, decoder.model().config().layers);
    return hidden;
  });
  if (!text.held.empty())
    std::ranges::stable_sort(found.contenders, {},
                             [](const BudgetContender& one) { return paired_mean(one.nll).mean; });
  found.measured = log.measured();
  return found;
}

std::size_t most_losses(const ModelConfig& model, std::string_view method, const BudgetPlan& plan,
                        const BudgetText& text) {
  constexpr std::size_t kContenders = 4;  // with the full cache
  const std::size_t tokens = text.measured.front().size(),
                    settings = budget_grid(method).settings({tokens, tokens}).size(),
                    joint = plan.rounds > 0 ? by_layer_losses(model, plan.rounds) : 0;
  return halving_losses(settings, text.measured.size()) + joint * layer_documents(text.measured).size() +
         kContenders * text.held.size();
}

}  // namespace kvs
