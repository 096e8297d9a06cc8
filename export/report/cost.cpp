#include "export/report/markup.h"
#include "export/report/parts.h"
#include "export/report/sections.h"
#include "export/report/table.h"

namespace kvs {
namespace {

Cell count_cell(const JsonCursor& of) {
  const std::uint64_t value = of.unsigned_integer();
  return {shown_count(value), static_cast<double>(value)};
}
Cell tera_cell(const JsonCursor& of) { return {shown(of.real(), 4), of.real()}; }

Markup freqkv_table(const JsonCursor& freqkv) {
  std::vector<Table::Column> columns{{"Tokens"}, {"Full"}, {"Dropping"}, {"FreqKV"}, {"of these DCT"}};
  for (const double gamma : reals(freqkv.at("gammas")))
    columns.push_back({"\u03B3\u00A0=\u00A0" + shown_short(gamma), true, "compressions at this share of kept tokens"});
  Table table("FreqKV: TFLOPs of a prefill, and compressions", columns);
  const JsonCursor rows = freqkv.at("rows");
  for (std::size_t n = 0; n < rows.array_size(); ++n) {
    const JsonCursor row = rows.at(n), counts = row.at("compressions");
    std::vector<Cell> cells{count_cell(row.at("tokens"))};
    for (const char* name : {"full_tflops", "dropping_tflops", "freqkv_tflops", "transform_tflops"})
      cells.push_back(tera_cell(row.at(name)));
    for (std::size_t k = 0; k < counts.array_size(); ++k) cells.push_back(count_cell(counts.at(k)));
    table.row(cells);
  }
  return table.markup();
}

Markup lagkv_table(const JsonCursor& lagkv) {
  std::vector<Table::Column> columns{{"Tokens"}, {"L", true, "tokens of a partition"}};
  for (const double ratio : reals(lagkv.at("ratios"))) columns.push_back({"r\u00A0=\u00A0" + shown_short(ratio)});
  Table table("LagKV: tokens held", columns);
  const JsonCursor rows = lagkv.at("rows");
  for (std::size_t n = 0; n < rows.array_size(); ++n) {
    std::vector<Cell> cells{count_cell(rows.at(n).at("tokens")), count_cell(rows.at(n).at("lag"))};
    const JsonCursor held = rows.at(n).at("held");
    for (std::size_t k = 0; k < held.array_size(); ++k) cells.push_back(count_cell(held.at(k)));
    table.row(cells);
  }
  return table.markup();
}

std::string pair_text(const JsonCursor& pair) {
  return shown_count(pair.at(std::size_t{0}).unsigned_integer()) + " and " + shown_count(pair.at(1).unsigned_integer());
}

Markup elitekv_table(const JsonCursor& elitekv) {
  Table table("EliteKV: feasible pairs of rotated chunks and latent values",
              {{"Cache"}, {"Pairs"}, {"First pair", false}, {"Last pair", false}});
  const JsonCursor rows = elitekv.at("rows");
  for (std::size_t n = 0; n < rows.array_size(); ++n) {
    const JsonCursor row = rows.at(n), pairs = row.at("pairs");
    const std::size_t last = pairs.array_size();
    const double ratio = row.at("ratio").real();
    table.row({{shown_percent(ratio, 4), ratio},
               count_cell(row.at("count")),
               last > 0 ? Cell(pair_text(pairs.at(std::size_t{0}))) : Cell::missing(),
               last > 0 ? Cell(pair_text(pairs.at(last - 1))) : Cell::missing()});
  }
  return table.markup();
}

Markup faedkv_table(const JsonCursor& faedkv) {
  std::vector<Table::Column> columns{{"Tokens"}, {"Bins"}};
  for (const double share : reals(faedkv.at("shares"))) {
    columns.push_back({shown_percent(share) + " of them"});
    columns.push_back({"Bytes", true, "of the full cache"});
  }
  Table table("FAEDKV: bins of a prefix's spectrum, and their bytes", columns);
  const JsonCursor rows = faedkv.at("rows");
  for (std::size_t n = 0; n < rows.array_size(); ++n) {
    const JsonCursor row = rows.at(n), kept = row.at("kept_bins"), bytes = row.at("bytes_ratio");
    std::vector<Cell> cells{count_cell(row.at("tokens")), count_cell(row.at("bins"))};
    for (std::size_t k = 0; k < kept.array_size(); ++k) {
      cells.push_back(count_cell(kept.at(k)));
      cells.push_back({shown_tenths(bytes.at(k).real()), bytes.at(k).real()});
    }
    table.row(cells);
  }
  return table.markup();
}

}  // namespace

Section cost_section(const ReportInputs& inputs) {
  Section section{"cost", "Cost", {}, {}};
  for (const Output* output : inputs.of(OutputKind::kCost)) {
    const JsonCursor root = output->root();
    section.body +=
        heading(root.at("geometry").at("name").string()) +
        paragraph("By the papers' arithmetic. The full cache takes " +
                  shown_count(root.at("bytes_per_token").unsigned_integer()) + " bytes a token at 16 bits.") +
        element("div", {{"class", "tables"}},
                freqkv_table(root.at("freqkv")) + lagkv_table(root.at("lagkv")) + elitekv_table(root.at("elitekv")) +
                    faedkv_table(root.at("faedkv")));
  }
  return section;
}

}  // namespace kvs
