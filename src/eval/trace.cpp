// SPDX-License-Identifier: Apache-2.0
#include "eval/trace.h"

#include <algorithm>
#include <string>

#include "io/json_fields.h"
#include "io/record.h"
#include "model/passes_together.h"
#include "model/work.h"
#include "turns/turns.h"

namespace kvs::inline eval {
namespace {

constexpr std::size_t kTraceParts = 32;

Json continuation_json(const Continuation& made) { return {{"ids", made.ids}, {"ended", made.ended}}; }

Continuation continuation_from(const JsonCursor& record, const ContinuationPlan& plan, std::size_t vocabulary) {
  Continuation made{.ids = {}, .ended = record.at("ended").boolean()};
  const JsonCursor ids = record.at("ids");
  const std::size_t count = ids.array_size();
  if (count == 0 || count > plan.count) ids.fail("1 to " + std::to_string(plan.count) + " ids");
  made.ids.reserve(count);
  for (std::size_t n = 0; n < count; ++n)
    made.ids.push_back(static_cast<std::int32_t>(ids.at(n).integer(0, static_cast<std::int64_t>(vocabulary) - 1)));
  return made;
}

Json outcome_json(const TraceOutcome& outcome) {
  return {{"trace", continuation_json(outcome.trace)},
          {"own", continuation_json(outcome.own)},
          {"scored", to_record(outcome.scored)}};
}

TraceOutcome outcome_from(const JsonCursor& record, const TracePlan& plan, std::size_t vocabulary) {
  TraceOutcome outcome{.trace = continuation_from(record.at("trace"), plan.continuation, vocabulary),
                       .own = continuation_from(record.at("own"), plan.continuation, vocabulary),
                       .scored = evaluation_from(record.at("scored"))};
  const JsonCursor scored = record.at("scored");
  require_record(scored.at("scored"), outcome.trace.ids.size());
  require_record(scored.at("full").at("tokens"), outcome.trace.ids.size());
  const auto ends = trace_parts(plan.continuation.count);
  const auto parts = static_cast<std::size_t>(std::ranges::lower_bound(ends, outcome.trace.ids.size()) - ends.begin());
  if (scored.at("parts").array_size() != parts + 1) scored.at("parts").fail(std::to_string(parts + 1) + " parts");
  return outcome;
}

/// The prompts of one batch, and their traces if they are known.
struct TraceBatch {
  std::span<const TokenIds> prompts;
  std::span<const Continuation> traces;
  std::size_t first = 0;  // prompts before them
};

Json run_batch(Decoder& decoder, const TraceBatch& batch, const TracePlan& plan) {
  const double start = turn_seconds();
  const std::vector<Continuation> traces =
      batch.traces.empty() ? continue_prompts(decoder, batch.prompts, batch.first, plan.make_full, plan.continuation)
                           : std::vector<Continuation>(batch.traces.begin(), batch.traces.end());
  const double made = turn_seconds();
  std::vector<Continuation> own = continue_prompts(decoder, batch.prompts, batch.first, plan.make, plan.continuation);
  const double continued = turn_seconds();
  Json outcomes = Json::array();
  for (std::size_t n = 0; n < batch.prompts.size(); ++n)
    outcomes.push_back(
        outcome_json({traces[n], std::move(own[n]), evaluate_trace(decoder, batch.prompts[n], traces[n].ids, plan)}));
  return {{"prompts", std::move(outcomes)}, {"seconds", {made - start, continued - made}}};
}

/// Adds the outcomes of a batch. @param prompts  the number of its prompts
void add_batch(const JsonCursor& record, std::size_t prompts, const TracePlan& plan, std::size_t vocabulary,
               TraceRun& run) {
  const JsonCursor outcomes = record.at("prompts");
  if (outcomes.array_size() != prompts) outcomes.fail(std::to_string(prompts) + " prompts");
  for (std::size_t n = 0; n < prompts; ++n) run.outcomes.push_back(outcome_from(outcomes.at(n), plan, vocabulary));
  const std::vector<double> seconds = record_reals(record.at("seconds"), 2);
  run.trace_seconds += seconds[0];
  run.own_seconds += seconds[1];
}

}  // namespace

std::vector<std::size_t> trace_parts(std::size_t count) {
  const std::size_t parts = std::min(kTraceParts, count);
  std::vector<std::size_t> ends(parts);
  for (std::size_t n = 0; n < parts; ++n) ends[n] = (n + 1) * count / parts;
  return ends;
}

Evaluation evaluate_trace(Decoder& decoder, const TokenIds& prompt, const TokenIds& ids, const TracePlan& plan) {
  TokenIds tokens = prompt;
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  const auto ends = trace_parts(plan.continuation.count);
  std::vector<PartLoss> parts(1);
  std::size_t in_part = 0;
  const auto end_part = [&] {
    const auto count = static_cast<double>(in_part);
    parts.back() = {parts.back().nll / count, parts.back().full_nll / count, parts.back().kl / count};
    in_part = 0;
  };
  const auto add = [&](std::size_t token, const PartLoss& loss) {
    if (token + 1 - prompt.size() == ends[parts.size() - 1]) {
      end_part();
      parts.emplace_back();
    }
    PartLoss& sum = parts.back();
    sum.nll += loss.nll;
    sum.full_nll += loss.full_nll;
    sum.kl += loss.kl;
    ++in_part;
  };
  Evaluation scored = evaluate_document(decoder, tokens,
                                        {.make = [&] { return plan.make(prompt); },
                                         .compare = true,
                                         .first = prompt.size() - 1,
                                         .length = plan.continuation.length,
                                         .each = add});
  end_part();
  scored.parts.push_back(std::move(parts));
  return scored;
}

std::size_t trace_batch(const ModelConfig& model, std::size_t length) {
  constexpr std::size_t kMost = 16, kMostBytes = std::size_t{2} << 30;
  if (!takes_batches(model)) return 1;
  return std::clamp<std::size_t>(kMostBytes / std::max<std::size_t>(model.cache_values(length) * sizeof(float), 1), 1,
                                 kMost);
}

TraceRun run_traces(Decoder& decoder, std::span<const TokenIds> prompts, std::span<const Continuation> traces,
                    const TracePlan& plan, const std::function<void(std::size_t)>& done, Journal* journal,
                    Ranks& ranks) {
  const ModelConfig& model = decoder.model().config();
  const std::size_t batches = (prompts.size() + plan.together - 1) / plan.together;
  const auto batch_at = [&](std::size_t n) {
    const std::size_t first = n * plan.together, count = std::min(plan.together, prompts.size() - first);
    return TraceBatch{prompts.subspan(first, count), traces.empty() ? traces : traces.subspan(first, count), first};
  };
  TraceRun run;
  const auto add = [&](std::size_t n, const JsonCursor& record) {
    add_batch(record, batch_at(n).prompts.size(), plan, model.vocabulary, run);
    if (done) done(run.outcomes.size());
  };
  const auto first = ranks.broadcast(Json(journal == nullptr ? 0 : journal->records().size())).get<std::size_t>();
  if (journal != nullptr) {
    for (std::size_t n = 0; n < first; ++n) {
      const JsonCursor record = journal->record(n);
      if (n >= batches) record.fail("no more than " + std::to_string(batches) + " batches");
      add(n, record);
    }
  }
  ranks.share(
      {.first = first,
       .last = batches,
       .together = passes_together(decoder.model(), plan.together * plan.continuation.length)},
      [&](std::size_t n) { return UnitResult{run_batch(decoder, batch_at(n), plan)}; },
      [&](std::size_t n, const UnitResult& batch) {
        if (journal != nullptr) journal->append(batch.record);
        add(n, JsonCursor(batch.record, "batch"));
      });
  return run;
}

double trace_flops(const ModelConfig& model, std::size_t length) {
  return 4 * forward_flops(model, static_cast<double>(length));
}

}  // namespace kvs::inline eval
