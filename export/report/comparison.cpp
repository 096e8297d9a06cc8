// SPDX-License-Identifier: Apache-2.0
#include "export/report/comparison.h"

#include <functional>
#include <map>

#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/settings.h"

namespace kvs::inline report {

std::string documents_of(const ComparisonResult& result, std::size_t scored) {
  return (scored < result.documents ? shown_count(scored) + " of " : "") + counted(result.documents, "document");
}

std::vector<ComparedList> alike(const ComparisonResult& result) {
  std::map<std::size_t, ComparedList, std::greater<>> groups;
  for (const ComparedConfiguration& one : result.configurations) groups[one.documents].push_back(&one);
  std::vector<ComparedList> all;
  all.reserve(groups.size());
  for (auto& [documents, configurations] : groups) all.push_back(std::move(configurations));
  return all;
}

std::optional<double> speed_of(const ComparedConfiguration& one, const std::optional<ComparisonSpeeds>& speeds) {
  if (speeds)
    for (const ComparisonSpeeds::Speed& timed : speeds->configurations)
      if (timed.label == one.label && timed.budget == one.budget) return timed.decode_tokens_per_second;
  return std::nullopt;
}

std::string settings_of(const ComparedConfiguration& one) {
  std::string words = settings_text(one.settings);
  if (one.type && one.type != "none" && words.find("type") == std::string::npos)
    words += (words.empty() ? "" : " \u00B7 ") + std::string("type\u00A0") + *one.type;
  return words;
}

std::string loss_words(const ComparedConfiguration& one) {
  const ScoredLoss::Ratio& ratio = one.loss->ratio;
  return change_words(*ratio.change(), ratio.change_interval(), ratio.over == Samples::kParts);
}

}  // namespace kvs::inline report
