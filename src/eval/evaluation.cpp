#include "eval/evaluation.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/error.h"
#include "io/record.h"
#include "model/passes_together.h"
#include "model/work.h"
#include "ranks/one_process.h"
#include "turns/turns.h"

namespace kvs::inline eval {
namespace {

double sum_of(std::span<const float> nll) { return std::accumulate(nll.begin(), nll.end(), 0.0); }
double squares_of(std::span<const float> nll) {
  return std::accumulate(nll.begin(), nll.end(), 0.0,
                         [](double sum, float value) { return sum + static_cast<double>(value) * value; });
}

/// Tokens of a document whose prediction is scored: [first, last).
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

  /// Returns the end of the part that holds a token.
  std::size_t end_of(std::size_t token) const { return bound(part_of(token) + 1); }
  /// Adds the losses of tokens [from, to), which belong to one part.
  void add(std::size_t from, std::size_t to, std::span<const float> nll, std::span<const float> full, double kl) {
    PartLoss& sum = sums_[part_of(from)];
    sum.nll += sum_of(nll.first(to - from));
    sum.full_nll += sum_of(full.first(to - from));
    sum.kl += kl;
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
  std::size_t part_of(std::size_t token) const {
    std::size_t part = 0;
    while (bound(part + 1) <= token) ++part;
    return part;
  }

  Scored scored_;
  std::size_t count_;
  std::vector<PartLoss> sums_;
};

Json parts_json(std::span<const PartLoss> parts) {
  Json list = Json::array();
  for (const PartLoss& part : parts) list.push_back({part.nll, part.full_nll, part.kl});
  return list;
}
std::vector<PartLoss> parts_from(const JsonCursor& list) {
  std::vector<PartLoss> parts;
  for (std::size_t n = 0; n < list.array_size(); ++n) {
    const std::vector<double> part = record_reals(list.at(n), 3);
    parts.push_back({part[0], part[1], part[2]});
  }
  return parts;
}

Json bytes_json(const CacheBytes& bytes) { return {bytes.stored, bytes.used, bytes.spare}; }
CacheBytes bytes_from(const JsonCursor& list) {
  if (list.array_size() != 3) list.fail("3 counts");
  return {record_size(list.at(std::size_t{0})), record_size(list.at(1)), record_size(list.at(2))};
}

}  // namespace

Evaluation& Evaluation::operator+=(const Evaluation& next) {
  sum += next.sum;
  cache += next.cache;
  if (!next.full) return *this;
  if (!full) full.emplace();
  full->sum += next.full->sum;
  full->divergence += next.full->divergence;
  full->kl_per_document.insert(full->kl_per_document.end(), next.full->kl_per_document.begin(),
                               next.full->kl_per_document.end());
  full->seconds += next.full->seconds;
  parts.insert(parts.end(), next.parts.begin(), next.parts.end());
  return *this;
}

ReferencePass reference_pass(Decoder& decoder, std::span<const std::int32_t> tokens, std::size_t prefix,
                             const EvaluationPlan& plan) {
  const Scored scored = scored_tokens(tokens.size(), prefix, plan);
  ReferencePass pass;
  const double start = turn_seconds();
  pass.hidden = decoder.embed(tokens);
  decoder.advance(pass.hidden, decoder.model().config().layers());
  pass.seconds = turn_seconds() - start;
  pass.nll = decoder.nll(pass.hidden, successors(tokens, 0, tokens.size(), scored));
  pass.sum.add(sum_of(pass.nll), scored.last - scored.first, squares_of(pass.nll));
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
  if (reference != nullptr) result.full = {reference->sum, {}, {}, reference->seconds};
  const bool parted = plan.parts > 0 && reference != nullptr;
  ScoredParts parts(scored, parted ? plan.parts : 1);
  double nll = 0, squares = 0;
  result.cache =
      run_cached(decoder, cache, tokens, {.decode = plan.decode}, [&](const ResidualStream& group, std::size_t first) {
        const std::size_t from = std::max(first, scored.first), to = std::min(first + group.tokens(), scored.last);
        if (from >= to) return;
        const std::vector<float> of_tokens = decoder.nll(group, successors(tokens, first, group.tokens(), scored));
        nll += sum_of(of_tokens);
        squares += squares_of(of_tokens);
        if (reference == nullptr) return;
        for (std::size_t at = from, end = to; at < to; at = end) {
          end = parted ? std::min(to, parts.end_of(at)) : to;
          const Divergence found = divergence(decoder, reference->hidden, group, {first, at, end});
          if (parted)
            parts.add(at, end, std::span(of_tokens).subspan(at - first), std::span(reference->nll).subspan(at),
                      found.kl);
          result.full->divergence += found;
        }
      });
  result.sum.add(nll, scored.last - scored.first, squares);
  if (parted) result.parts.push_back(parts.means());
  if (result.full) result.full->kl_per_document = {result.full->divergence.kl};
  return result;
}

double evaluation_flops(const EvaluationPlan& plan, const ModelConfig& model, std::size_t tokens) {
  return (plan.compare ? 2 : 1) * forward_flops(model, static_cast<double>(tokens));
}

Json to_record(const Evaluation& document) {
  const CacheReport& cache = document.cache;
  Json record{{"nll", document.sum.nll},
              {"squares", document.sum.squares},
              {"scored", document.sum.scored},
              {"peak", bytes_json(cache.peak)},
              {"end", bytes_json(cache.end)},
              {"compressions", cache.compressions},
              {"tokens", cache.tokens},
              {"decoded", cache.decoded},
              {"seconds", {cache.seconds, cache.decode_seconds, cache.compression_seconds}}};
  if (document.full) {
    const auto& [sum, divergence, per_document, seconds] = *document.full;
    record["full"] = {{"nll", sum.nll},
                      {"squares", sum.squares},
                      {"kl", divergence.kl},
                      {"kl_squares", divergence.squares},
                      {"agreed", divergence.agreed},
                      {"tokens", divergence.tokens},
                      {"seconds", seconds}};
  }
  if (!document.parts.empty()) record["parts"] = parts_json(document.parts.front());
  return record;
}

Evaluation evaluation_from(const JsonCursor& record) {
  Evaluation document;
  const std::size_t scored = record_size(record.at("scored"), 1);
  document.sum.add(record_real(record.at("nll")), scored, record_real(record.at("squares")));
  const std::vector<double> seconds = record_reals(record.at("seconds"), 3);
  document.cache = {.peak = bytes_from(record.at("peak")),
                    .end = bytes_from(record.at("end")),
                    .compressions = record_size(record.at("compressions")),
                    .tokens = record_size(record.at("tokens")),
                    .decoded = record_size(record.at("decoded")),
                    .seconds = seconds[0],
                    .decode_seconds = seconds[1],
                    .compression_seconds = seconds[2]};
  if (record.has("full")) {
    const JsonCursor full = record.at("full");
    document.full.emplace();
    document.full->sum.add(record_real(full.at("nll")), scored, record_real(full.at("squares")));
    document.full->divergence = {record_real(full.at("kl")), record_size(full.at("agreed")),
                                 record_size(full.at("tokens"), 1), record_real(full.at("kl_squares"))};
    document.full->kl_per_document = {document.full->divergence.kl};
    document.full->seconds = record_real(full.at("seconds"));
  }
  if (record.has("parts")) document.parts.push_back(parts_from(record.at("parts")));
  return document;
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

}  // namespace

Evaluation evaluate(Decoder& decoder, std::span<const std::vector<std::int32_t>> documents, const EvaluationPlan& plan,
                    const std::function<void(std::size_t)>& done, Journal* journal, Ranks* ranks) {
  const auto alone = make_one_process();
  if (ranks == nullptr) ranks = alone.get();
  Evaluation result;
  const auto add = [&](std::size_t document, const JsonCursor& record) {
    result += evaluation_from(record);
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
