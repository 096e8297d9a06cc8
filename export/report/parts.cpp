#include "export/report/parts.h"

#include "export/report/numbers.h"

namespace kvs {

Markup figure(const Markup& drawings, const Markup& caption, const std::string& command, bool wide) {
  return element("figure", {{"class", wide ? "wide-figure" : ""}},
                 element("div", {{"class", "drawings"}}, drawings) +
                     element("figcaption", element("p", caption) + command_block(command)));
}

Markup command_block(const std::string& command) {
  if (command.empty()) return {};
  return element("details", {{"class", "command"}},
                 element("summary", "Command") + element("pre", {{"tabindex", "0"}}, element("code", command)));
}

Markup folded(const std::string& summary, const Markup& content) {
  return element("details", element("summary", summary) + content);
}

std::optional<std::pair<double, double>> interval_of(const JsonCursor& of) {
  if (!of.has("interval")) return {};
  const JsonCursor interval = of.at("interval");
  return std::pair(interval.at(std::size_t{0}).real(), interval.at(1).real());
}

std::optional<std::pair<double, double>> ratio_interval(const JsonCursor& ratio) {
  const auto interval = interval_of(ratio);
  return interval ? std::optional(std::pair(interval->first - 1, interval->second - 1)) : std::nullopt;
}

std::string zero_note(const std::optional<std::pair<double, double>>& interval) {
  return interval && interval->first <= 0 && interval->second >= 0 ? " (not told from 0)" : "";
}

std::vector<double> reals(const JsonCursor& list) {
  std::vector<double> values;
  for (std::size_t n = 0; n < list.array_size(); ++n) values.push_back(list.at(n).real());
  return values;
}

std::vector<std::size_t> indices(const JsonCursor& list) {
  constexpr std::uint64_t kMost = 1 << 24;
  std::vector<std::size_t> values;
  for (std::size_t n = 0; n < list.array_size(); ++n) values.push_back(list.at(n).unsigned_integer(kMost));
  return values;
}

}  // namespace kvs
