// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <sstream>
#include <vector>

#include "calibrate/config/config.h"
#include "core/exponential.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::size_t kLossColumns = 23;

/// Returns a right-aligned perplexity. "±" has two bytes.
std::string loss_column(double nll, double error) {
  const std::string words = std::isfinite(nll) ? exponential_with_error(nll, error, 5) : "NaN or infinity";
  const std::size_t letters = words.size() - (words.find("±") == std::string::npos ? 0 : 1);
  return std::string(kLossColumns - std::min(kLossColumns, letters), ' ') + words;
}

std::string ratio_words(double nll, double nll_full) {
  return std::isfinite(nll) ? exponential_text(nll - nll_full, 5) : "";
}

/// Returns the trials, one per line.
std::string trial_table(const EliteConfig& config, const ModelConfig& model) {
  const std::size_t replaced = config.layers.size() * 2 * model.kv_heads() * model.head_dim() * model.d_model;
  std::array<char, 160> line{};
  std::string table = "  on what was held out, W_k and W_v having " + std::to_string(replaced) + " parameters:\n" +
                      "             r  d_ckv   parameters                       perplexity  over the full cache's\n";
  for (const EliteTrial& trial : config.trials) {
    const double share = 100 * static_cast<double>(trial.parameters) / static_cast<double>(replaced);
    std::snprintf(line.data(), line.size(), "    %s  %4zu  %5zu  %11zu (%5.1f %%)  %s  %12s\n",
                  trial.joint ? "J-LRD" : "S-LRD", trial.r, trial.d_ckv, trial.parameters, share,
                  loss_column(trial.nll, trial.nll_error).c_str(), ratio_words(trial.nll, trial.nll_full).c_str());
    table += line.data();
  }
  if (!config.gqa) return table;
  std::snprintf(line.data(), line.size(), "    GQA, KV heads: %-4zu %20s %s  %12s\n", config.gqa->heads, "",
                loss_column(config.gqa->nll, config.gqa->nll_error).c_str(),
                ratio_words(config.gqa->nll, config.trials.front().nll_full).c_str());
  return table + line.data();
}

}  // namespace

std::string elite_summary(const EliteConfig& config, const ModelConfig& model) {
  std::vector<std::size_t> owners(model.chunks());
  std::size_t heads = 0;
  for (const auto& row : config.picks)
    for (const ElitePicks& head : row) {
      ++heads;
      for (const std::size_t chunk : head.chunks) ++owners[chunk];
    }
  std::vector<std::size_t> order(owners.size());
  for (std::size_t n = 0; n < order.size(); ++n) order[n] = n;
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t chunk) { return owners[chunk]; });
  std::ostringstream text;
  text.precision(3);
  std::size_t least = owners.size(), most = 0;
  for (const auto& row : config.picks) {
    least = std::min(least, row.front().chunks.size());
    most = std::max(most, row.front().chunks.size());
  }
  text << "elitekv: " << (least < most ? std::to_string(least) + " to " : "") << most << " of " << owners.size()
       << " chunks rotated in each of " << heads << " heads; most often chunk";
  for (std::size_t n = 0; n < std::min<std::size_t>(4, order.size()); ++n)
    text << (n > 0 ? ", " : " ") << order[n] << " (" << 100 * owners[order[n]] / heads << " % of heads)";
  text << '\n';
  if (!config.trials.empty()) text << trial_table(config, model) << "  " << trials_verdict(config) << '\n';
  if (const auto& allocation = config.allocation)
    text << "  sizes by layer against the same for all: " << difference_text(allocation->difference)
         << " of perplexity on what was held out; chosen: "
         << (allocation->layers_won ? "layers" : "the same for all, the plainer") << '\n';
  if (config.rank) {
    const EliteShape shape{model.d_model, model.kv_heads(), model.head_dim(), model.chunks()};
    const std::size_t full = 2 * model.kv_heads() * model.head_dim();
    double values = 0;
    for (std::size_t n = 0; n < config.layers.size(); ++n)
      values += static_cast<double>(config.size_of(n).values(shape)) / static_cast<double>(config.layers.size());
    text << "  cache of a layer: " << std::lround(values) << " of " << full << " values per token ("
         << 100.0 * values / static_cast<double>(full) << " %)\n";
  }
  return text.str();
}

}  // namespace kvs::inline calibrate
