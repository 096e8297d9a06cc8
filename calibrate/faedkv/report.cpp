#include "calibrate/faedkv/report.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/exponential.h"
#include "io/finite.h"

namespace kvs {
namespace {

Json interval_json(const AblationResult& result) {
  Json layers = Json::array();
  for (const auto& row : result.interval) {
    Json& chunks = layers.emplace_back(Json::array());
    for (const auto& interval : row)
      chunks.push_back(interval ? Json::array({interval->first, interval->second}) : Json());
  }
  return layers;
}

std::vector<std::size_t> open_in(const ChunkRace& race) {
  std::vector<std::size_t> chunks;
  for (std::size_t chunk = 0; chunk < race.verdict.size(); ++chunk)
    if (race.verdict[chunk] == ChunkVerdict::kOpen) chunks.push_back(chunk);
  return chunks;
}

/// Ascending indices as --layers takes them: 0-4,6.
std::string index_ranges(const std::vector<std::size_t>& indices) {
  std::string text;
  for (std::size_t n = 0; n < indices.size();) {
    std::size_t last = n;
    while (last + 1 < indices.size() && indices[last + 1] == indices[last] + 1) ++last;
    text += (n > 0 ? "," : "") + std::to_string(indices[n]);
    if (last > n) text += '-' + std::to_string(indices[last]);
    n = last + 1;
  }
  return text;
}

/// The chunks that matter most, and how many do not.
void write_extremes(const AblationPlan& plan, const AblationResult& result, std::ostream& text) {
  struct Cell {
    double delta;
    std::size_t layer, chunk;
  };
  std::vector<Cell> cells;
  std::size_t harmless = 0;
  for (std::size_t n = 0; n < plan.layers.size(); ++n)
    for (std::size_t chunk = 0; chunk < plan.grid.chunks; ++chunk) {
      cells.push_back({result.delta[n][chunk], plan.layers[n], chunk});
      harmless += std::abs(result.delta[n][chunk]) < 0.001 ? 1 : 0;
    }
  std::ranges::sort(cells, std::greater{}, &Cell::delta);
  text << "  chunks that matter most:";
  for (std::size_t n = 0; n < std::min<std::size_t>(3, cells.size()); ++n)
    text << (n > 0 ? "," : "") << " layer " << cells[n].layer << " chunk " << cells[n].chunk << " (+"
         << 100.0L * cells[n].delta << " %)";  // which may be the largest double
  text << "\n  chunks whose loss changes perplexity by less than 0.1 %: " << harmless << " of " << cells.size() << '\n';
}

/// What the race spent, and every chunk that it left open.
void write_race(const AblationPlan& plan, const FaedkvFindings& findings, std::ostream& text) {
  constexpr std::size_t kLineWidth = 110;
  std::size_t open = 0, chunks = 0;
  std::vector<std::string> layers;
  for (std::size_t n = 0; n < findings.races.size(); ++n) {
    const auto undecided = open_in(findings.races[n]);
    open += undecided.size();
    chunks += findings.races[n].verdict.size();
    if (undecided.empty()) continue;
    layers.push_back("layer " + std::to_string(plan.layers[n]) + ": " + index_ranges(undecided));
  }
  text << "  passes: " << findings.passes << " of the full table's " << findings.full_passes << "; " << open << " of "
       << chunks << " undecided at the threshold" << (open > 0 ? ":" : "");
  std::size_t used = kLineWidth;
  for (const std::string& layer : layers) {
    const bool wrap = used + layer.size() + 2 > kLineWidth;
    text << (wrap ? "\n    " : "; ") << layer;
    used = wrap ? layer.size() + 4 : used + layer.size() + 2;
  }
  text << '\n';
}

}  // namespace

Json parameters_json(const FaedkvPlan& plan, const FaedkvFindings& findings) {
  return {{"layers", plan.layers},
          {"prefix", plan.setup.prefix},
          {"sinks", plan.sinks},
          {"recent", plan.recent},
          {"chunks", plan.grid.chunks},
          {"kept", findings.kept},
          {"transform", plan.setup.transform == Transform::kDct ? "dct" : "dft"},
          {"spectrum", plan.grid.full_spectrum ? "full" : "half"},
          {"key_space", plan.setup.before_rope ? "k_pre" : "k_post"},
          {"update", "corrected"},
          {"age", "off"}};
}

Json ablation_json(const AblationPlan& plan, const FaedkvFindings& findings) {
  const AblationResult& result = findings.result;
  Json ablation{{"protocol", plan.setup.continuation ? "continuation" : "in-place"},
                {"key_space", plan.setup.before_rope ? "k_pre" : "k_post"},
                {"chunks", plan.grid.chunks},
                {"layers", plan.layers},
                {"scored_per_document", plan.setup.scored()},
                {"ppl_base", finite_or_null(std::exp(result.nll_base))},
                {"nll_base", result.nll_base},
                {"nll_error", result.nll_error},
                {"delta", result.delta},
                {"interval", interval_json(result)}};
  if (!plan.race) return ablation;
  ablation["documents"] = result.documents;
  ablation["confidence"] = plan.race->confidence;
  Json& undecided = ablation["undecided"] = Json::array();
  for (const ChunkRace& race : findings.races) undecided.push_back(open_in(race));
  return ablation;
}

std::string summary(const AblationPlan& plan, const FaedkvFindings& findings) {
  std::ostringstream text;
  text.precision(4);
  text << "faedkv: perplexity " << exponential_with_error(findings.result.nll_base, findings.result.nll_error)
       << ", with the best " << kept_count(plan.keep, plan.grid.chunks) << " of " << plan.grid.chunks
       << " chunks per layer " << exponential_with_error(findings.nll_kept, findings.nll_kept_error) << " ("
       << (plan.setup.continuation ? "continuation" : "in-place") << ")\n";
  write_extremes(plan, findings.result, text);
  if (plan.race) write_race(plan, findings, text);
  return text.str();
}

}  // namespace kvs
