// SPDX-License-Identifier: Apache-2.0
#include "results/ablation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>

#include "core/exponential.h"
#include "core/index_runs.h"

namespace kvs::inline results {
namespace {

/// Formats ascending indices in the form of --layers: 0-4,6.
std::string index_ranges(const std::vector<std::size_t>& indices) {
  std::string text;
  for (const auto& [first, last] : index_runs(indices)) {
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last > first) text += '-' + std::to_string(last);
  }
  return text;
}

/// Writes the chunks with the largest Δ, and the number of chunks with |Δ| below 0.1 %.
void write_extremes(const AblationResult& ablation, std::ostream& text) {
  struct Cell {
    double delta;
    std::size_t layer, chunk;
  };
  std::vector<Cell> cells;
  std::size_t harmless = 0;
  for (std::size_t n = 0; n < ablation.layers.size(); ++n)
    for (std::size_t chunk = 0; chunk < ablation.chunks; ++chunk) {
      cells.push_back({ablation.delta[n][chunk], ablation.layers[n], chunk});
      harmless += std::abs(ablation.delta[n][chunk]) < 0.001 ? 1 : 0;
    }
  std::ranges::sort(cells, std::greater{}, &Cell::delta);
  text << "  chunks that matter most:";
  for (std::size_t n = 0; n < std::min<std::size_t>(3, cells.size()); ++n)
    text << (n > 0 ? "," : "") << " layer " << cells[n].layer << " chunk " << cells[n].chunk << " (" << std::showpos
         << 100.0L * cells[n].delta << std::noshowpos << " %)";  // long double: delta may be the largest double
  text << "\n  chunks whose loss changes perplexity by less than 0.1 %: " << harmless << " of " << cells.size() << '\n';
}

/// Writes the number of passes of a race and all undecided chunks.
void write_race(const FaedkvResult& found, std::ostream& text) {
  constexpr std::size_t kLineWidth = 110;
  const AblationResult& ablation = found.ablation;
  std::size_t open = 0;
  std::vector<std::string> layers;
  for (std::size_t n = 0; n < ablation.layers.size(); ++n) {
    const auto& undecided = (*ablation.undecided)[n];
    open += undecided.size();
    if (!undecided.empty())
      layers.push_back("layer " + std::to_string(ablation.layers[n]) + ": " + index_ranges(undecided));
  }
  text << "  passes: " << found.passes << " of the full table's " << found.full_passes << "; " << open << " of "
       << ablation.layers.size() * ablation.chunks << " undecided at the threshold" << (open > 0 ? ":" : "");
  std::size_t used = kLineWidth;
  for (const std::string& layer : layers) {
    const bool wrap = used + layer.size() + 2 > kLineWidth;
    text << (wrap ? "\n    " : "; ") << layer;
    used = wrap ? layer.size() + 4 : used + layer.size() + 2;
  }
  text << '\n';
}

}  // namespace

void AblationResult::check(const AblationResult& result, const JsonCursor& json) {
  const auto check_map = [&](const char* name, const auto& map) {
    const JsonCursor rows = json.at(name);
    if (map.size() != result.layers.size())
      rows.fail("a row for each of " + std::to_string(result.layers.size()) + " layers");
    for (std::size_t n = 0; n < map.size(); ++n)
      if (map[n].size() != result.chunks)
        rows.at(n).fail("a value for each of " + std::to_string(result.chunks) + " chunks");
  };
  check_map("delta", result.delta);
  check_map("interval", result.interval);
}

std::string to_text(const FaedkvResult& found) {
  const auto& [ablation, quality, kept, passes, full_passes] = found;
  std::ostringstream text;
  text.precision(4);
  text << "faedkv: perplexity " << exponential_with_error(ablation.nll_base, ablation.nll_error) << ", with the best "
       << kept.front().size() << " of " << ablation.chunks << " chunks per layer "
       << exponential_with_error(quality.nll_mean, quality.nll_error) << " (" << ablation.protocol << ")\n";
  write_extremes(ablation, text);
  if (ablation.undecided) write_race(found, text);
  return text.str();
}

std::vector<double> scaled_to_unit(std::span<const double> delta) {
  const auto [least, most] = std::ranges::minmax(delta);
  std::vector<double> scaled(delta.begin(), delta.end());
  for (double& value : scaled) value = most > least ? (value - least) / (most - least) : 0;
  return scaled;
}

}  // namespace kvs::inline results
