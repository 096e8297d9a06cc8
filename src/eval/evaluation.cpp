#include "eval/evaluation.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>

#include "core/error.h"
#include "ranks/one_process.h"

namespace kvs {
namespace {

double sum_of(std::span<const float> nll) { return std::accumulate(nll.begin(), nll.end(), 0.0); }

/// Tokens of a document after which a prediction is scored: [first, last).
struct Scored {
  std::size_t first, last;
};

Scored scored_tokens(std::size_t tokens, std::size_t prefix, const EvaluationPlan& plan) {
  const std::size_t last = tokens - 1, first = plan.last == 0 ? 0 : last - std::min(plan.last, last);
  if (prefix >= last)
    throw Error(ErrorCode::kData, "prefix",
                "found a prefix of " + std::to_string(prefix) + " tokens in documents of " + std::to_string(tokens) +
                    ", expected at least two tokens after it");
  return {std::max(first, prefix), last};
}

/// The successor of each of `count` tokens from `first` on; -1 where it is not scored.
std::vector<std::int32_t> successors(std::span<const std::int32_t> tokens, std::size_t first, std::size_t count,
                                     const Scored& scored) {
  std::vector<std::int32_t> targets(count, -1);
  for (std::size_t t = std::max(first, scored.first); t < std::min(first + count, scored.last); ++t)
    targets[t - first] = tokens[t + 1];
  return targets;
}

Json bytes_json(const CacheBytes& bytes) { return {bytes.stored, bytes.used, bytes.spare}; }
CacheBytes bytes_from(const Json& json) {
  return {json.at(0).get<std::size_t>(), json.at(1).get<std::size_t>(), json.at(2).get<std::size_t>()};
}

}  // namespace

Evaluation& Evaluation::operator+=(const Evaluation& next) {
  sum += next.sum;
  cache += next.cache;
  if (!next.full) return *this;
  if (!full) full.emplace();
  full->sum += next.full->sum;
  full->divergence += next.full->divergence;
  full->seconds += next.full->seconds;
  return *this;
}

ReferencePass reference_pass(Decoder& decoder, std::span<const std::int32_t> tokens, std::size_t prefix,
                             const EvaluationPlan& plan) {
  using Clock = std::chrono::steady_clock;
  const Scored scored = scored_tokens(tokens.size(), prefix, plan);
  ReferencePass pass;
  const auto start = Clock::now();
  pass.hidden = decoder.embed(tokens);
  decoder.advance(pass.hidden, decoder.model().config().layers);
  pass.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  pass.sum.add(sum_of(decoder.nll(pass.hidden, successors(tokens, 0, tokens.size(), scored))),
               scored.last - scored.first);
  return pass;
}

Evaluation evaluate_document(Decoder& decoder, std::span<const std::int32_t> tokens, const EvaluationPlan& plan,
                             const ReferencePass* reference) {
  Evaluation result;
  Cache cache = plan.make();
  const std::size_t prefix = cache.prefix().tokens;
  const Scored scored = scored_tokens(tokens.size(), prefix, plan);
  std::optional<ReferencePass> own;
  if (plan.compare && reference == nullptr) reference = &own.emplace(reference_pass(decoder, tokens, prefix, plan));
  if (reference != nullptr) result.full = {reference->sum, {}, reference->seconds};
  double nll = 0;
  result.cache =
      run_cached(decoder, cache, tokens, {.decode = plan.decode}, [&](const ResidualStream& group, std::size_t first) {
        const std::size_t from = std::max(first, scored.first), to = std::min(first + group.tokens(), scored.last);
        if (from >= to) return;
        nll += sum_of(decoder.nll(group, successors(tokens, first, group.tokens(), scored)));
        if (reference != nullptr)
          result.full->divergence += divergence(decoder, reference->hidden, group, {first, from, to});
      });
  result.sum.add(nll, scored.last - scored.first);
  return result;
}

Json to_record(const Evaluation& document) {
  const CacheReport& cache = document.cache;
  Json record{{"nll", document.sum.nll},
              {"scored", document.sum.scored},
              {"peak", bytes_json(cache.peak)},
              {"end", bytes_json(cache.end)},
              {"compressions", cache.compressions},
              {"tokens", cache.tokens},
              {"decoded", cache.decoded},
              {"seconds", {cache.seconds, cache.decode_seconds, cache.compression_seconds}}};
  if (document.full) {
    const auto& [sum, divergence, seconds] = *document.full;
    record["full"] = {{"nll", sum.nll},
                      {"kl", divergence.kl},
                      {"agreed", divergence.agreed},
                      {"tokens", divergence.tokens},
                      {"seconds", seconds}};
  }
  return record;
}

Evaluation evaluation_from(const Json& record) {
  Evaluation document;
  const auto scored = record.at("scored").get<std::size_t>();
  document.sum.add(record.at("nll").get<double>(), scored);
  const auto seconds = record.at("seconds").get<std::vector<double>>();
  document.cache = {.peak = bytes_from(record.at("peak")),
                    .end = bytes_from(record.at("end")),
                    .compressions = record.at("compressions").get<std::size_t>(),
                    .tokens = record.at("tokens").get<std::size_t>(),
                    .decoded = record.at("decoded").get<std::size_t>(),
                    .seconds = seconds.at(0),
                    .decode_seconds = seconds.at(1),
                    .compression_seconds = seconds.at(2)};
  if (record.contains("full")) {
    const Json& full = record.at("full");
    document.full.emplace();
    document.full->sum.add(full.at("nll").get<double>(), scored);
    document.full->divergence = {full.at("kl").get<double>(), full.at("agreed").get<std::size_t>(),
                                 full.at("tokens").get<std::size_t>()};
    document.full->seconds = full.at("seconds").get<double>();
  }
  return document;
}

Evaluation evaluate(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents, const EvaluationPlan& plan,
                    const std::function<void(std::size_t)>& done, Journal* journal, Ranks* ranks) {
  const auto alone = make_one_process();
  if (ranks == nullptr) ranks = alone.get();
  Evaluation result;
  const auto add = [&](std::size_t document, const Json& record) {
    result += evaluation_from(record);
    if (done) done(document + 1);
  };
  const auto first = ranks->tell(Json(journal == nullptr ? 0 : journal->records().size())).get<std::size_t>();
  if (journal != nullptr)
    for (std::size_t n = 0; n < first; ++n) add(n, journal->records()[n]);
  ranks->share(
      {.first = first, .last = documents.size()},
      [&](std::size_t n) { return UnitResult{to_record(evaluate_document(decoder, documents[n], plan))}; },
      [&](std::size_t n, const UnitResult& document) {
        if (journal != nullptr) journal->append(document.record);
        add(n, document.record);
      });
  return result;
}

}  // namespace kvs
