// SPDX-License-Identifier: Apache-2.0
#include "results/cost.h"

#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"

namespace kvs::inline report {
namespace {

Markup table_markup(const CostTable& of) {
  std::vector<Table::Column> columns;
  for (const std::string& name : of.columns)
    columns.push_back({name.find('=') == std::string::npos ? capitalised(name) : name});
  Table table(of.title, columns);
  for (const auto& row : of.rows) {
    std::vector<Cell> cells;
    for (const CostTable::Cell& cell : row) cells.emplace_back(cell.page, cell.value);
    table.row(cells);
  }
  return table.markup();
}

}  // namespace

Section cost_section(const ReportInputs& inputs) {
  Section section{"cost", "Cost", {}, {}};
  for (const Output* output : inputs.of(OutputKind::kCost)) {
    const auto cost = from_json<CostResult>(output->root());
    Markup tables;
    for (const CostTable& table : cost_tables(cost)) tables += table_markup(table);
    section.body += heading(cost.geometry.name) +
                    paragraph("By the papers' arithmetic. The full cache takes " + shown_count(cost.bytes_per_token) +
                              " bytes a token at 16 bits.") +
                    element("div", {{"class", "tables"}}, tables);
  }
  return section;
}

}  // namespace kvs::inline report
