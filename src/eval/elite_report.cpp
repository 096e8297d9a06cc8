#include "eval/elite_report.h"

#include <algorithm>
#include <functional>
#include <sstream>
#include <vector>

namespace kvs {

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
  text << "elitekv: " << config.r << " of " << owners.size() << " chunks rotated in each of " << heads
       << " heads; most often chunk";
  for (std::size_t n = 0; n < std::min<std::size_t>(4, order.size()); ++n)
    text << (n > 0 ? ", " : " ") << order[n] << " (" << 100 * owners[order[n]] / heads << " % of heads)";
  text << '\n';
  for (const EliteTrial& trial : config.trials)
    text << "  r = " << trial.r << ", d_ckv = " << trial.d_ckv << ": perplexity " << trial.ppl / trial.ppl_full
         << " of the full cache's on what was held out\n";
  if (config.rank) {
    const std::size_t values = 2 * config.r * model.kv_heads + *config.rank, full = 2 * model.kv_heads * model.head_dim;
    text << "  cache of a layer: " << values << " of " << full << " values per token ("
         << 100.0 * static_cast<double>(values) / static_cast<double>(full) << " %)\n";
  }
  return text.str();
}

}  // namespace kvs
