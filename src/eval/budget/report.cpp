#include "eval/budget/report.h"

#include <cmath>
#include <sstream>

#include "export/config.h"

namespace kvs {
namespace {

double perplexity(const std::vector<double>& nll) { return std::exp(paired_mean(nll).mean); }

double bytes_per_token(const BudgetCalibration& found, std::size_t tokens) {
  return static_cast<double>(found.contenders.front().bytes) / static_cast<double>(tokens);
}

}  // namespace

Json budget_json(const BudgetCalibration& found) {
  Json contenders = Json::array(), trials = Json::array();
  for (const BudgetContender& one : found.contenders) {
    Json& entry = contenders.emplace_back(Json{{"name", one.name}, {"bytes", one.bytes}, {"parameters", one.settings}});
    if (!one.nll.empty()) entry["ppl"] = perplexity(one.nll);
    if (const auto difference = found.difference_from(one.name)) entry.update(difference_json(*difference));
  }
  for (const BudgetTrial& trial : found.trials)
    trials.push_back(
        {{"parameters", trial.settings}, {"documents", trial.documents}, {"divergence", trial.divergence}});
  return {{"winner", found.contenders.front().name},
          {"held_documents", found.full_nll.size()},
          {"contenders", std::move(contenders)},
          {"trials", std::move(trials)},
          {"measured", found.measured}};
}

Json budget_quality(const BudgetCalibration& found, std::size_t tokens) {
  if (found.full_nll.empty()) return Json::object();
  return {{"text", "documents held out"},
          {"ppl", perplexity(found.contenders.front().nll)},
          {"ppl_full", perplexity(found.full_nll)},
          {"bytes_per_token", bytes_per_token(found, tokens)}};
}

std::string budget_summary(const BudgetCalibration& found, std::size_t tokens, std::size_t full_bytes) {
  const BudgetContender& winner = found.contenders.front();
  std::ostringstream text;
  text.precision(3);
  text << winner.name << " with " << std::lround(bytes_per_token(found, tokens)) << " B a token ("
       << 100 * static_cast<double>(winner.bytes) / static_cast<double>(full_bytes) << " %)";
  if (found.full_nll.empty()) return text.str() + '\n';
  text.precision(4);
  text << ", perplexity " << perplexity(winner.nll) << " on what was held out (full cache "
       << perplexity(found.full_nll) << ')';
  for (const BudgetContender& other : found.contenders)
    if (const auto difference = found.difference_from(other.name))
      text << "; against " << other.name << ' ' << difference_text(*difference);
  return text.str() + '\n';
}

}  // namespace kvs
