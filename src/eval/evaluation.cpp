// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluation.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "model/passes_together.h"
#include "model/work.h"
#include "ranks/one_process.h"
#include "turns/turns.h"

namespace kvs::inline eval {
namespace {

/// Tokens of a document whose prediction is scored: [first, last).
struct Scored {
  std::size_t first, last;
};

Scored scored_tokens(std::size_t tokens, std::size_t prefix, const EvaluationPlan& plan) {
  const std::size_t last = tokens - 1, first = plan.last == 0 ? 0 : last - std::min(plan.last, last);
  if (plan.first) return {*plan.first, last};
  if (prefix >= last)
    throw Error(ErrorCode::kData, "prefix",
                "found a prefix of " + std::to_string(prefix) + " tokens in documents of " + std::to_string(tokens) +
                    ", expected at least two tokens after it");
  return {std::max(first, prefix), last};
}

/// Returns the successor of each of `count` tokens from `first` on; -1 if it is not scored.
std::vector<std::int32_t> successors(std::span<const std::int32_t> tokens, std::size_t first, std::size_t count,
                                     const Scored& scored) {
  std::vector<std::int32_t> targets(count, -1);
  for (std::size_t t = std::max(first, scored.first); t < std::min(first + count, scored.last); ++t)
    targets[t - first] = tokens[t + 1];
  return targets;
}

/// Contiguous parts of the scored tokens, equal in size up to one token.
class ScoredParts {
 public:
  ScoredParts(const Scored& scored, std::size_t parts)
      : scored_(scored), count_(std::clamp<std::size_t>(parts, 1, scored.last - scored.first)), sums_(count_) {}

  /// Adds the losses of a token. Tokens come in order.
  void add(std::size_t token, const PartLoss& loss) {
    while (bound(part_ + 1) <= token) ++part_;
    PartLoss& sum = sums_[part_];
    sum.nll += loss.nll;
    sum.full_nll += loss.full_nll;
    sum.kl += loss.kl;
  }
  std::vector<PartLoss> means() const {
    std::vector<PartLoss> means = sums_;
    for (std::size_t n = 0; n < count_; ++n) {
      const auto tokens = static_cast<double>(bound(n + 1) - bound(n));
      means[n] = {means[n].nll / tokens, means[n].full_nll / tokens, means[n].kl / tokens};
    }
    return means;
  }

 private:
  std::size_t bound(std::size_t part) const { return scored_.first + part * (scored_.last - scored_.first) / count_; }

  Scored scored_;
  std::size_t count_, part_ = 0;
  std::vector<PartLoss> sums_;
};

}  // namespace

FullReference& FullReference::operator+=(const FullReference& next) {
  sum += next.sum;
  divergence.append(next.divergence, kl_per_document.size());
  kl_per_document.insert(kl_per_document.end(), next.kl_per_document.begin(), next.kl_per_document.end());
  agreed_per_document.insert(agreed_per_document.end(), next.agreed_per_document.begin(),
                             next.agreed_per_document.end());
  seconds += next.seconds;
  return *this;
}

Evaluation& Evaluation::operator+=(const Evaluation& next) {
  sum += next.sum;
  cache += next.cache;
  if (!next.full) return *this;
  if (!full) full.emplace();
  *full += *next.full;
  parts.insert(parts.end(), next.parts.begin(), next.parts.end());
  return *this;
}

ReferencePass reference_pass(Decoder& decoder, std::span<const std::int32_t> tokens, std::size_t prefix,
                             const EvaluationPlan& plan) {
  const Scored scored = scored_tokens(tokens.size(), prefix, plan);
  ReferencePass pass;
  const double start = turn_seconds();
  pass.hidden = decoder.embed(tokens, 0, plan.length);
  decoder.advance(pass.hidden, decoder.model().config().layers());
  pass.seconds = turn_seconds() - start;
  pass.nll = decoder.nll(pass.hidden, successors(tokens, 0, tokens.size(), scored));
  TokenSums sums;
  sums.add(pass.nll);
  pass.sum.add(sums, scored.last - scored.first);
  return pass;
}

void keep_logits(Decoder& decoder, std::size_t prefix, const EvaluationPlan& plan, ReferencePass& pass) {
  const Scored scored = scored_tokens(pass.nll.size(), prefix, plan);
  pass.logits = kept_logits(decoder, pass.hidden, scored.first, scored.last);
}

Evaluation evaluate_document(Decoder& decoder, std::span<const std::int32_t> tokens, const EvaluationPlan& plan,
                             const ReferencePass* reference) {
  Evaluation result;
  Cache cache = plan.make();
  const std::size_t prefix = cache.prefix().tokens;
  const Scored scored = scored_tokens(tokens.size(), prefix, plan);
  std::optional<ReferencePass> own;
  if (plan.compare && reference == nullptr) reference = &own.emplace(reference_pass(decoder, tokens, prefix, plan));
  if (reference != nullptr) result.full = {.sum = reference->sum, .divergence = {}, .seconds = reference->seconds};
  const bool parted = plan.parts > 0 && reference != nullptr;
  ScoredParts parts(scored, parted ? plan.parts : 1);
  TokenSums sums;
  const RunCuts cuts{
      .decode = plan.decode, .positions = plan.length == 0 ? 0 : cache.positions(plan.length), .start = plan.start};
  result.cache = run_cached(decoder, cache, tokens, cuts, [&](const ResidualStream& group, std::size_t first) {
    const std::size_t from = std::max(first, scored.first), to = std::min(first + group.tokens(), scored.last);
    if (from >= to) return;
    const std::vector<float> of_tokens = decoder.nll(group, successors(tokens, first, group.tokens(), scored));
    sums.add(of_tokens);
    if (reference == nullptr) return;
    const std::vector<TokenDivergence> found = token_divergences(decoder, reference->hidden, group, {first, from, to},
                                                                 reference->logits ? &*reference->logits : nullptr);
    for (std::size_t t = from; t < to; ++t) {
      const PartLoss loss{of_tokens[t - first], reference->nll[t], found[t - from].kl};
      result.full->divergence.add(found[t - from], {.position = t + 1, .token = tokens[t + 1]},
                                  loss.nll - loss.full_nll);
      parts.add(t, loss);
      if (plan.each) plan.each(t, loss);
    }
  });
  result.sum.add(sums, scored.last - scored.first);
  if (parted) result.parts.push_back(parts.means());
  if (result.full) {
    result.full->kl_per_document = {result.full->divergence.kl};
    result.full->agreed_per_document = {static_cast<double>(result.full->divergence.agreed)};
  }
  return result;
}

double evaluation_flops(const EvaluationPlan& plan, const ModelConfig& model, std::size_t tokens) {
  return (plan.compare ? 2 : 1) * forward_flops(model, static_cast<double>(tokens));
}

namespace {

/// @param documents  number of the run's documents;  @param compared  the run also evaluates the full cache
JsonCursor replayed(const Journal& journal, std::size_t n, std::size_t documents, bool compared) {
  JsonCursor record = journal.record(n);
  if (n >= documents) record.fail("no more than " + std::to_string(documents) + " documents");
  if (record.has("full") != compared)
    record.fail(compared ? "a record with the full cache" : "a record without the full cache");
  return record;
}

/// Checks that a record has the numbers that the plan asks for. @param tokens  of the document
void check_document(const JsonCursor& record, const Evaluation& document, const EvaluationPlan& plan,
                    std::size_t tokens) {
  const std::size_t scored = document.sum.scored;
  if (scored >= tokens) record.at("scored").fail("fewer than the document's " + std::to_string(tokens) + " tokens");
  if (!document.full) return;
  if (document.full->divergence.tokens != scored) record.at("full").at("tokens").fail(std::to_string(scored));
  if (plan.parts == 0) return;
  const std::size_t parts = std::min(plan.parts, scored);
  if (record.at("parts").array_size() != parts) record.at("parts").fail(std::to_string(parts) + " parts");
}

}  // namespace

Evaluation evaluate(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents, const EvaluationPlan& plan,
                    const std::function<void(std::size_t)>& done, Journal* journal, Ranks* ranks) {
  const auto alone = make_one_process();
  if (ranks == nullptr) ranks = alone.get();
  Evaluation result;
  const auto add = [&](std::size_t document, const JsonCursor& record) {
    const Evaluation found = evaluation_from(record);
    check_document(record, found, plan, documents[document].size());
    result += found;
    if (done) done(document + 1);
  };
  const auto first = ranks->broadcast(Json(journal == nullptr ? 0 : journal->records().size())).get<std::size_t>();
  if (journal != nullptr)
    for (std::size_t n = 0; n < first; ++n) add(n, replayed(*journal, n, documents.size(), plan.compare));
  ranks->share(
      {.first = first,
       .last = documents.size(),
       .together = documents.empty() ? 1 : passes_together(decoder.model(), documents.front().size())},
      [&](std::size_t n) { return UnitResult{to_record(evaluate_document(decoder, documents[n], plan))}; },
      [&](std::size_t n, const UnitResult& document) {
        if (journal != nullptr) journal->append(document.record);
        add(n, JsonCursor(document.record, "document"));
      });
  return result;
}

}  // namespace kvs::inline eval
