// SPDX-License-Identifier: Apache-2.0
#include "calibrate/faedkv/ablation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "io/record.h"
#include "model/work.h"
#include "ranks/watch.h"
#include "turns/turns.h"

namespace kvs::inline calibrate {
namespace {

/// Checks that a record is a unit of the run. @throws Error kInput
void check_unit(const JsonCursor& unit, const AblationPlan& plan, std::size_t documents) {
  (void)record_size(unit.at("document"), 0, documents - 1);
  if (unit.has("base")) return (void)record_nll(unit.at("base"), plan.setup.scored());
  const std::size_t chunks = record_size(unit.at("chunks")), layer = record_size(unit.at("layer"));
  if (std::ranges::find(plan.chunk_counts, chunks) == plan.chunk_counts.end())
    unit.at("chunks").fail("a number of chunks of this run");
  if (std::ranges::find(plan.layers, layer) == plan.layers.end()) unit.at("layer").fail("a layer of this run");
  const std::size_t ablated = plan.race ? record_indices(unit.at("ablated"), chunks).size() : chunks;
  const JsonCursor nll = unit.at("nll");
  (void)record_reals(nll, ablated);
  for (std::size_t n = 0; n < ablated; ++n) (void)record_nll(nll.at(n), plan.setup.scored());
}

/// The chunks to ablate in one document: [layer · chunk count].
using Choice = std::vector<std::vector<std::size_t>>;

std::size_t passes_of(const Choice& choice) {
  std::size_t passes = 0;
  for (const auto& chunks : choice) passes += chunks.size();
  return passes;
}

std::vector<std::size_t> all_below(std::size_t count) {
  std::vector<std::size_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

Choice every_chunk(const AblationPlan& plan) {
  Choice choice;
  for (std::size_t n = 0; n < plan.layers.size(); ++n)
    for (const std::size_t count : plan.chunk_counts) choice.push_back(all_below(count));
  return choice;
}

/// Returns the state of every chunk of every layer and count after the documents `before`: [layer · chunk count].
std::vector<ChunkRace> judge(const AblationPlan& plan, const AblationTable& table,
                             std::span<const std::size_t> before) {
  const std::size_t counts = plan.chunk_counts.size();
  std::vector<ChunkRace> races(plan.layers.size() * counts);
  for (std::size_t k = 0; k < counts; ++k) {
    const auto judged = judge_layers(plan, table.sums(plan.chunk_counts[k], before));
    for (std::size_t n = 0; n < judged.size(); ++n) races[n * counts + k] = judged[n];
  }
  return races;
}

}  // namespace

ChunkGrid AblationPlan::grid_of(std::size_t chunks) const {
  ChunkGrid other = grid;
  other.chunks = chunks;
  return other;
}

std::size_t AblationPlan::variants() const noexcept {
  return layers.size() * std::accumulate(chunk_counts.begin(), chunk_counts.end(), std::size_t{0});
}

std::size_t AblationPlan::max_passes(std::size_t documents) const noexcept {
  const std::size_t all = variants() * documents;
  return race ? std::min(race->passes, all) : all;
}

void AblationTable::store(const Json& unit) {
  const auto document = unit.at("document").get<std::size_t>();
  if (unit.contains("base")) {
    base_[document] = unit.at("base").get<double>();
    return;
  }
  const auto chunks = unit.at("chunks").get<std::size_t>();
  const auto nll = unit.at("nll").get<std::vector<double>>();
  const auto ablated =
      unit.contains("ablated") ? unit.at("ablated").get<std::vector<std::size_t>>() : all_below(chunks);
  auto& sums = sums_[{document, unit.at("layer").get<std::size_t>(), chunks}];
  sums.resize(chunks);
  passes_ += nll.size();
  for (std::size_t n = 0; n < nll.size(); ++n) sums[ablated.at(n)] = nll[n];
}

bool AblationTable::has(std::size_t document, std::size_t layer, std::size_t chunks) const {
  return sums_.contains({document, layer, chunks});
}

AblationSums AblationTable::sums(std::size_t chunks) const {
  std::vector<std::size_t> documents;
  for (const auto& [document, base] : base_) documents.push_back(document);
  return sums(chunks, documents);
}

AblationSums AblationTable::sums(std::size_t chunks, std::span<const std::size_t> documents) const {
  std::vector<std::size_t> ascending(documents.begin(), documents.end());
  std::ranges::sort(ascending);
  AblationSums sums{plan_->setup.scored(), {}, {}};
  for (const std::size_t document : ascending) {
    sums.base.push_back(base_.at(document));
    auto& layers = sums.ablated.emplace_back();
    for (const std::size_t layer : plan_->layers) {
      const auto unit = sums_.find({document, layer, chunks});
      layers.push_back(unit != sums_.end() ? unit->second : std::vector<std::optional<double>>(chunks));
    }
  }
  return sums;
}

std::vector<ChunkRace> judge_layers(const AblationPlan& plan, const AblationSums& sums) {
  std::vector<ChunkRace> races;
  for (std::size_t n = 0; n < plan.layers.size(); ++n) {
    const ChunkLosses losses = sums.losses(n);
    races.push_back(judge_chunks(losses, kept_count(plan.keep, losses.size()), plan.race->confidence));
  }
  return races;
}

std::vector<std::vector<std::size_t>> choose_chunks(const AblationPlan& plan, const AblationSums& sums) {
  std::vector<ChunkRace> races;
  if (plan.race) races = judge_layers(plan, sums);
  std::vector<std::vector<std::size_t>> chosen;
  for (const auto& delta : ablation_result(sums).delta) {
    const std::size_t kept = kept_count(plan.keep, delta.size());
    chosen.push_back(plan.race ? kept_chunks(races[chosen.size()], delta, kept) : most_important(delta, kept));
  }
  return chosen;
}

namespace {

class AblationRun {
 public:
  AblationRun(AblationForward& forward, const AblationPlan& plan, std::span<const std::vector<std::int32_t>> documents,
              Ranks& ranks, Journal* journal)
      : forward_(forward),
        own_{forward.another(), {}},
        plan_(plan),
        documents_(documents),
        ranks_(ranks),
        journal_(journal),
        before_(plan),
        table_(plan) {
    for (std::size_t n = 0; journal != nullptr && n < journal->records().size(); ++n)
      check_unit(journal->record(n), plan, documents.size());
    const Json units = ranks.broadcast(journal == nullptr ? Json::array() : Json(journal->records()));
    for (const Json& unit : units) before_.store(unit);
    table_ = before_;
  }
  AblationTable& table() { return table_; }

  /// Measures all of `choice` in the documents, one after the other. A rank also processes layers of a document in
  /// order.
  /// @param made  called with the passes of each finished unit
  void run(std::span<const std::size_t> order, const Choice& choice, const std::function<void(std::size_t)>& made) {
    const std::size_t units = choice.size() + 1;  // the last one is the base
    const auto measure = [&](std::size_t unit) { return measured(own_, order[unit / units], unit % units, choice); };
    const auto take = [&](std::size_t unit, const Json& record) {
      if (!record.is_null()) {
        if (journal_ != nullptr) journal_->append(record);
        table_.store(record);
      }
      if (unit % units < choice.size()) made(choice[unit % units].size());
    };
    if (!plan_.race && ranks_.alone() && forward_.together() > 1) return measure_in_turns(order, choice, take);
    const Units all{.last = order.size() * units, .per_document = units};
    if (!plan_.race)
      return ranks_.share(
          all, [&](std::size_t unit) { return UnitResult{measure(unit)}; },
          [&](std::size_t unit, const UnitResult& result) { take(unit, result.record); });
    const std::vector<Json> records = ranks_.share_with_all(all, measure, take);
    for (const Json& record : records)
      if (!ranks_.is_root() && !record.is_null()) table_.store(record);
  }

 private:
  /// Passes over one document at a time.
  struct Passes {
    AblationForward forward;
    std::optional<std::size_t> begun;  // document of `forward`
  };

  /// Measures documents in turns, each with passes of its own, so that streamed layers are read once for all of them.
  void measure_in_turns(std::span<const std::size_t> order, const Choice& choice,
                        const std::function<void(std::size_t, const Json&)>& take) {
    const std::size_t units = choice.size() + 1;
    std::vector<std::vector<Json>> records(order.size());
    const auto measure = [&](std::size_t at) {
      Passes passes{forward_.another(), {}};
      for (std::size_t n = 0; n < units; ++n) records[at].push_back(measured(passes, order[at], n, choice));
    };
    run_in_groups(0, order.size(), forward_.together(), measure, [&](std::size_t at) {
      for (std::size_t n = 0; n < units; ++n) take(at * units + n, records[at][n]);
      records[at].clear();
    });
  }
  /// Returns null if a previous run has measured it.
  Json measured(Passes& passes, std::size_t document, std::size_t n, const Choice& choice) const {
    if (n == choice.size()) {
      if (before_.has_base(document)) return nullptr;
      begin(passes, document);
      passes.begun.reset();
      return {{"document", document}, {"base", passes.forward.base()}};
    }
    const std::size_t layer = plan_.layers[n / plan_.chunk_counts.size()],
                      chunks = plan_.chunk_counts[n % plan_.chunk_counts.size()];
    if (choice[n].empty() || before_.has(document, layer, chunks)) return nullptr;
    begin(passes, document);
    const std::vector<double> gains = ablation_gains(plan_.grid_of(chunks), choice[n]);
    Json unit{{"document", document}, {"layer", layer}, {"chunks", chunks}};
    if (plan_.race) unit["ablated"] = choice[n];
    unit["nll"] = passes.forward.variants(layer, {gains, {choice[n].size(), gains.size() / choice[n].size()}});
    return unit;
  }
  void begin(Passes& passes, std::size_t document) const {
    if (passes.begun == document) return;
    note_document(document);
    passes.forward.begin(documents_[document]);
    passes.begun = document;
  }

  AblationForward& forward_;
  Passes own_;  // of documents one after the other
  const AblationPlan& plan_;
  std::span<const std::vector<std::int32_t>> documents_;
  Ranks& ranks_;
  Journal* journal_;
  AblationTable before_, table_;  // of the previous run; of both
};

}  // namespace

AblationTable ablate(AblationForward& forward, const AblationPlan& plan,
                     std::span<const std::vector<std::int32_t>> documents, Ranks& ranks, Journal* journal,
                     const AblationProgress& progress) {
  AblationRun run(forward, plan, documents, ranks, journal);
  const std::size_t count = documents.size();
  const auto order = plan.race ? shuffled_documents(count, plan.race->seed) : all_below(count);
  std::size_t done = 0, most = plan.max_passes(count);
  const auto made = [&](std::size_t passes) { progress(done += passes, most); };
  Choice choice = every_chunk(plan);
  if (!plan.race) {
    run.run(order, choice, made);
    return std::move(run.table());
  }
  std::size_t planned = 0;  // passes planned so far, as for `done` on rank 0
  for (std::size_t n = 0; n < count; ++n) {
    if (n >= min_documents(count)) {
      const auto races = judge(plan, run.table(), std::span(order).first(n));
      choice = open_chunks(races, choice, plan.variants());
      const std::size_t open = passes_of(choice), documents_left = count - n;
      most = std::min(most, planned + open * documents_left);
      choice = open_chunks(races, choice, chunks_to_go_on(open, documents_left, most - planned));
    }
    run.run(std::span(order).subspan(n, 1), choice, made);
    planned += passes_of(choice);
  }
  return std::move(run.table());
}

KeptLosses kept_losses(AblationForward& forward, const AblationPlan& plan, const AblationTable& table,
                       std::span<const std::vector<std::int32_t>> documents, Ranks& ranks) {
  std::vector<double> gains;  // [chunk count, (keys, values), layer, bin]
  if (ranks.is_root())
    for (const std::size_t count : plan.chunk_counts) {
      std::vector<double> of_layers;
      for (const auto& chunks : choose_chunks(plan, table.sums(count)))
        std::ranges::copy(gains_keeping(plan.grid_of(count), chunks), std::back_inserter(of_layers));
      for (int state = 0; state < 2; ++state) std::ranges::copy(of_layers, std::back_inserter(gains));
    }
  gains = std::move(ranks.broadcast(UnitResult{Json(), {std::move(gains)}}).sums.front());
  const std::size_t counts = plan.chunk_counts.size(), layers = plan.layers.size();
  const std::array<std::size_t, 4> shape{counts, 2, layers, gains.size() / (counts * 2 * layers)};
  const bool is_one = documents.size() == 1;
  KeptLosses losses{std::vector<PerplexitySum>(counts)};
  ranks.share(
      {.last = documents.size(), .together = forward.together()},
      [&](std::size_t n) {
        std::vector<double> squares;
        AblationForward passes = forward.another();
        passes.begin(documents[n]);
        std::vector<double> sums = passes.filtered(plan.layers, {gains, shape}, &squares);
        if (is_one) {
          passes.begin(documents[n]);
          sums.push_back(passes.base(&squares));
        }
        return UnitResult{Json(), {std::move(sums), std::move(squares)}};
      },
      [&](std::size_t, const UnitResult& document) {
        const auto &sums = document.sums.at(0), &squares = document.sums.at(1);
        const std::size_t scored = plan.setup.scored();
        for (std::size_t n = 0; n < counts; ++n) losses.kept[n].add(sums[n], scored, squares[n]);
        if (is_one) losses.base_error = standard_error(std::array{sums[counts]}, scored, squares[counts]);
      });
  return losses;
}

double ablation_flops(const AblationPlan& plan, const ModelConfig& model, std::size_t documents) {
  const double scored = static_cast<double>(plan.setup.tokens - plan.setup.first_scored());
  const auto past = static_cast<double>(plan.setup.first_scored());
  double layers = 0;
  for (const std::size_t layer : plan.layers)
    layers +=
        static_cast<double>(model.layers() - layer) * layer_flops(model, scored, past) + head_flops(model, scored);
  return static_cast<double>(plan.max_passes(documents)) * layers / static_cast<double>(plan.layers.size()) +
         static_cast<double>(2 * documents) * forward_flops(model, static_cast<double>(plan.setup.tokens));
}

}  // namespace kvs::inline calibrate
