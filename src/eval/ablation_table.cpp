#include "eval/ablation_table.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace kvs {
namespace {

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

/// Where every chunk of every layer and count stands after the documents `before`: [layer · chunk count].
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

bool complete(const AblationPlan& plan, const AblationTable& table, const Choice& choice, std::size_t document) {
  for (std::size_t n = 0; n < choice.size(); ++n)
    if (!choice[n].empty() && !table.has(document, plan.layers[n / plan.chunk_counts.size()],
                                         plan.chunk_counts[n % plan.chunk_counts.size()]))
      return false;
  return table.has_base(document);
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

std::size_t AblationPlan::most_passes(std::size_t documents) const noexcept {
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
  AblationRun(AblationForward& forward, const AblationPlan& plan, Journal& journal)
      : forward_(forward), plan_(plan), journal_(journal), table_(plan) {
    for (const Json& unit : journal.records()) table_.store(unit);
  }
  AblationTable& table() { return table_; }

  /// @param made  is told the passes of each finished unit
  void document(std::size_t document, std::span<const std::int32_t> tokens, const Choice& choice,
                const std::function<void(std::size_t)>& made) {
    if (complete(plan_, table_, choice, document)) return made(passes_of(choice));
    forward_.begin(tokens);
    for (std::size_t n = 0; n < choice.size(); ++n) {
      const std::size_t layer = plan_.layers[n / plan_.chunk_counts.size()],
                        chunks = plan_.chunk_counts[n % plan_.chunk_counts.size()];
      if (!choice[n].empty() && !table_.has(document, layer, chunks)) ablate(document, layer, chunks, choice[n]);
      made(choice[n].size());
    }
    if (!table_.has_base(document)) record({{"document", document}, {"base", forward_.base()}});
  }

 private:
  void ablate(std::size_t document, std::size_t layer, std::size_t chunks, const std::vector<std::size_t>& ablated) {
    const std::vector<double> gains = ablation_gains(plan_.grid_of(chunks), ablated);
    Json unit{{"document", document}, {"layer", layer}, {"chunks", chunks}};
    if (plan_.race) unit["ablated"] = ablated;
    unit["nll"] = forward_.variants(layer, {gains, {ablated.size(), gains.size() / ablated.size()}});
    record(unit);
  }
  void record(const Json& unit) {
    journal_.append(unit);
    table_.store(unit);
  }

  AblationForward& forward_;
  const AblationPlan& plan_;
  Journal& journal_;
  AblationTable table_;
};

}  // namespace

AblationTable ablate(AblationForward& forward, const AblationPlan& plan,
                     std::span<const std::vector<std::int32_t>> documents, Journal& journal,
                     const AblationProgress& progress) {
  AblationRun run(forward, plan, journal);
  const std::size_t count = documents.size();
  const auto order = plan.race ? shuffled_documents(count, plan.race->seed) : all_below(count);
  std::size_t done = 0, most = plan.most_passes(count);
  Choice choice = every_chunk(plan);
  for (std::size_t n = 0; n < count; ++n) {
    if (plan.race && n >= least_documents(count)) {
      const auto races = judge(plan, run.table(), std::span(order).first(n));
      choice = open_chunks(races, choice, plan.variants());
      const std::size_t open = passes_of(choice), documents_left = count - n;
      most = std::min(most, done + open * documents_left);
      choice = open_chunks(races, choice, chunks_to_go_on(open, documents_left, most - done));
    }
    run.document(order[n], documents[order[n]], choice, [&](std::size_t passes) { progress(done += passes, most); });
  }
  return std::move(run.table());
}

std::vector<double> kept_perplexities(AblationForward& forward, const AblationPlan& plan, const AblationTable& table,
                                      std::span<const std::vector<std::int32_t>> documents) {
  std::vector<double> gains;  // [chunk count, (keys, values), layer, bin]
  for (const std::size_t count : plan.chunk_counts) {
    std::vector<double> of_layers;
    for (const auto& chunks : choose_chunks(plan, table.sums(count)))
      std::ranges::copy(gains_keeping(plan.grid_of(count), chunks), std::back_inserter(of_layers));
    for (int state = 0; state < 2; ++state) std::ranges::copy(of_layers, std::back_inserter(gains));
  }
  const std::size_t counts = plan.chunk_counts.size(), layers = plan.layers.size();
  std::vector<double> nll(counts);
  for (const auto& tokens : documents) {
    forward.begin(tokens);
    const auto sums = forward.filtered(plan.layers, {gains, {counts, 2, layers, gains.size() / (counts * 2 * layers)}});
    for (std::size_t n = 0; n < counts; ++n) nll[n] += sums[n];
  }
  for (double& value : nll) value = std::exp(value / static_cast<double>(plan.setup.scored() * documents.size()));
  return nll;
}

}  // namespace kvs
