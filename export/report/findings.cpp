// SPDX-License-Identifier: Apache-2.0
#include "export/report/sections.h"

namespace kvs::inline report {

Markup findings_list(const std::vector<Section>& sections) {
  Markup groups;
  for (const Section& section : sections) {
    if (section.findings.empty()) continue;
    Markup items;
    for (const std::string& finding : section.findings) items += element("li", finding);
    const Markup link = element("a", {{"href", "#" + section.id}}, text(section.title));
    groups += element("div", {{"class", "findings"}}, element("h3", link) + element("ul", items));
  }
  if (groups.empty()) return element("p", "These results compare nothing: what they hold follows.");
  return groups;
}

}  // namespace kvs::inline report
