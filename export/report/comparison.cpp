#include "export/report/comparison.h"

#include <functional>
#include <map>

#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/settings.h"

namespace kvs {

std::string documents_of(const ComparisonResult& result, std::size_t scored) {
  return (scored < result.documents ? shown_count(scored) + " of " : "") + counted(result.documents, "document");
}

std::vector<std::vector<const ComparedCell*>> alike(const ComparisonResult& result) {
  std::map<std::size_t, std::vector<const ComparedCell*>, std::greater<>> groups;
  for (const ComparedCell& cell : result.cells) groups[cell.documents].push_back(&cell);
  std::vector<std::vector<const ComparedCell*>> all;
  all.reserve(groups.size());
  for (auto& [documents, cells] : groups) all.push_back(std::move(cells));
  return all;
}

std::optional<double> speed_of(const ComparedCell& cell, const std::optional<ComparisonSpeeds>& speeds) {
  if (speeds)
    for (const ComparisonSpeeds::Cell& timed : speeds->cells)
      if (timed.label == cell.label && timed.budget == cell.budget) return timed.decode_tokens_per_second;
  return std::nullopt;
}

std::string settings_of(const ComparedCell& cell) {
  std::string words = settings_text(cell.settings);
  if (cell.type && cell.type != "none" && words.find("type") == std::string::npos)
    words += (words.empty() ? "" : " \u00B7 ") + std::string("store\u00A0") + *cell.type;
  return words;
}

std::string loss_words(const ComparedCell& cell) {
  const ScoredLoss::Ratio& ratio = cell.loss->ratio;
  return change_words(*ratio.change(), ratio.change_interval(), ratio.over == Samples::kParts);
}

}  // namespace kvs
