// SPDX-License-Identifier: Apache-2.0
#include "export/report/table.h"

#include <algorithm>

#include "core/error.h"
#include "export/report/markup.h"

namespace kvs::inline report {
namespace {

Markup table_cell(const std::string& name, const Cell& of, bool numeric) {
  const std::string style = numeric ? "number" : "words";
  const std::string scope = name == "th" ? "row" : "", key = of.number ? shown_key(*of.number) : "";
  return element(name, {{"scope", scope}, {"class", style}, {"data-sort", key}}, text(of.words));
}

}  // namespace

Cell Cell::missing() { return {"\u2013"}; }

Cell number_cell(double value) { return {shown(value), value}; }
Cell share_cell(double share) { return {shown_tenths(share), share}; }
Cell change_cell(const std::optional<double>& change) {
  return change ? Cell(shown_change(*change), *change) : Cell::missing();
}

Cell interval_cell(const std::optional<std::pair<double, double>>& interval) {
  return interval ? Cell(shown_range(*interval), interval->first) : Cell::missing();
}

Cell bytes_cell(double share, double shared_bytes) {
  std::string words = shown_tenths(share);
  if (shared_bytes > 0) words += " + " + shown(1e-6 * shared_bytes) + "\u00A0MB shared";
  return {words, share};
}

Table::Table(std::string caption, std::vector<Column> columns)
    : caption_(std::move(caption)), columns_(std::move(columns)) {}

void Table::row(const std::vector<Cell>& cells, const std::string& style) {
  if (cells.size() != columns_.size())
    throw Error(ErrorCode::kInput, caption_,
                "found a row of " + counted(cells.size(), "cell") + ", expected " + std::to_string(columns_.size()));
  rows_.push_back({cells, style});
}

std::vector<bool> Table::columns_with_values() const {
  std::vector<bool> shown(columns_.size());
  for (std::size_t n = 0; n < columns_.size(); ++n)
    shown[n] = std::ranges::any_of(rows_, [&](const Row& row) { return !row.cells[n].is_missing(); });
  return shown;
}

Markup Table::heads(const std::vector<bool>& shown) const {
  Markup heads;
  for (std::size_t n = 0; n < columns_.size(); ++n) {
    if (!shown[n]) continue;
    const Column& column = columns_[n];
    const std::string style = column.numeric ? "number" : "words";
    const Markup name =
        column.hint.empty() ? text(column.name) : element("abbr", {{"title", column.hint}}, text(column.name));
    heads += rows_.size() < 2 ? element("th", {{"scope", "col"}, {"class", style}}, name)
                              : element("th", {{"scope", "col"}, {"class", style}, {"aria-sort", "none"}},
                                        element("button", {{"type", "button"}}, name));
  }
  return element("thead", element("tr", heads));
}

Markup Table::body(const std::vector<bool>& shown) const {
  Markup body;
  for (const auto& [cells, style] : rows_) {
    Markup content;
    for (std::size_t n = 0; n < cells.size(); ++n)
      if (shown[n]) content += table_cell(n == 0 ? "th" : "td", cells[n], columns_[n].numeric);
    body += element("tr", {{"class", style}}, content);
  }
  return element("tbody", body);
}

Markup Table::markup() const {
  const std::vector<bool> shown = columns_with_values();
  // Wide tables scroll in their own box. tabindex allows scrolling with the keyboard.
  return element("div", {{"class", "table"}, {"tabindex", "0"}, {"role", "region"}, {"aria-label", caption_}},
                 element("table", element("caption", caption_) + heads(shown) + body(shown)));
}

}  // namespace kvs::inline report
