// SPDX-License-Identifier: Apache-2.0
#include "results/cost.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "draw/numbers.h"

namespace kvs::inline results {
namespace {

using Cell = CostTable::Cell;

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

std::string percent(double share) {
  std::ostringstream out;
  out << 100 * share << " %";
  return out.str();
}

Cell count(std::size_t value) { return {std::to_string(value), draw::shown_count(value), static_cast<double>(value)}; }
Cell tera(double value, int digits = 2) { return {fixed(value, digits), draw::shown(value, 4), value}; }
Cell share(double value) { return {percent(value), draw::shown_percent(value, 4), value}; }
Cell tenths(double value) { return {fixed(100 * value, 1) + " %", draw::shown_tenths(value), value}; }
Cell pair(const CostResult::Elitekv::Pair& of) {
  const std::string words = "(" + std::to_string(of.first) + ", " + std::to_string(of.second) + ")";
  return {words, words, static_cast<double>(of.first)};
}

CostTable freqkv_table(const CostResult::Freqkv& of) {
  CostTable table{"FreqKV: TFLOPs of a prefill at γ = " + draw::shown_short(of.gamma) +
                      ", and compressions; cache of " + std::to_string(of.cache_size) + ", " +
                      std::to_string(of.sinks) + " sinks",
                  {"tokens", "full", "dropping", "FreqKV", "of these DCT"},
                  {}};
  for (const double gamma : of.gammas) table.columns.push_back("γ = " + draw::shown_short(gamma));
  for (const auto& row : of.rows) {
    table.rows.push_back({count(row.tokens), tera(row.full_tflops), tera(row.dropping_tflops), tera(row.freqkv_tflops),
                          tera(row.transform_tflops, 4)});
    std::ranges::transform(row.compressions, std::back_inserter(table.rows.back()), count);
  }
  return table;
}

CostTable lagkv_table(const CostResult::Lagkv& of) {
  CostTable table{"LagKV: tokens held, " + std::to_string(of.sinks) + " sinks", {"tokens", "L"}, {}};
  for (const double ratio : of.ratios) table.columns.push_back("r = " + draw::shown_short(ratio));
  for (const auto& row : of.rows) {
    table.rows.push_back({count(row.tokens), count(row.lag)});
    std::ranges::transform(row.held, std::back_inserter(table.rows.back()), count);
  }
  return table;
}

CostTable elitekv_table(const CostResult::Elitekv& of) {
  CostTable table{"EliteKV: feasible pairs of the " + std::to_string(of.values_per_token_and_layer) +
                      " values of a token and layer",
                  {"cache", "pairs", "first (r, d_ckv)", "last"},
                  {}};
  for (const auto& row : of.rows) {
    const bool none = row.pairs.empty();
    table.rows.push_back({share(row.ratio), count(row.count), none ? Cell{"–", "–"} : pair(row.pairs.front()),
                          none ? Cell{"–", "–"} : pair(row.pairs.back())});
  }
  return table;
}

CostTable faedkv_table(const CostResult::Faedkv& of) {
  CostTable table{"FAEDKV: bins of a prefix's spectrum, and its share of the full cache; " + std::to_string(of.chunks) +
                      " chunks, " + std::to_string(of.sinks) + " sinks, " + std::to_string(of.recent) +
                      " recent tokens",
                  {"tokens", "bins"},
                  {}};
  for (const double kept : of.shares) table.columns.insert(table.columns.end(), {percent(kept) + " of them", "bytes"});
  for (const auto& row : of.rows) {
    auto& cells = table.rows.emplace_back(std::vector{count(row.tokens), count(row.bins)});
    for (std::size_t n = 0; n < std::min(row.kept_bins.size(), row.bytes_ratio.size()); ++n) {
      cells.push_back(count(row.kept_bins[n]));
      cells.push_back(tenths(row.bytes_ratio[n]));
    }
  }
  return table;
}

/// Returns the width in characters, not in bytes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// Formats the title and the cells. Columns are right-aligned and as wide as their widest cell.
std::string table_text(const CostTable& table) {
  std::vector<std::vector<std::string>> lines{table.columns};
  for (const auto& row : table.rows) {
    auto& line = lines.emplace_back();
    std::ranges::transform(row, std::back_inserter(line), &Cell::text);
  }
  std::vector<std::size_t> widths(table.columns.size());
  for (const auto& line : lines)
    for (std::size_t n = 0; n < line.size(); ++n) widths[n] = std::max(widths[n], width_of(line[n]));
  std::string text = table.title + '\n';
  for (const auto& line : lines) {
    for (std::size_t n = 0; n < line.size(); ++n) text += std::string(widths[n] - width_of(line[n]) + 2, ' ') + line[n];
    text += '\n';
  }
  return text;
}

}  // namespace

std::vector<CostTable> cost_tables(const CostResult& of) {
  return {freqkv_table(of.freqkv), lagkv_table(of.lagkv), elitekv_table(of.elitekv), faedkv_table(of.faedkv)};
}

std::string to_text(const CostResult& of) {
  const std::vector<CostTable> tables = cost_tables(of);
  std::string bounds;
  for (const auto& [r, d_ckv] : of.elitekv.bounds)
    bounds += (bounds.empty() ? " " : ", ") + std::to_string(d_ckv) + " at r = " + std::to_string(r);
  return of.geometry.name + ": " + std::to_string(of.bytes_per_token) + " bytes of cache a token in f16, " +
         fixed(of.products_per_token / 1e9, 3) + " G multiply-adds a token\n\n" + table_text(tables[0]) + '\n' +
         table_text(tables[1]) + '\n' + table_text(tables[2]) + "  largest d_ckv without extra parameters:" + bounds +
         "\n\n" + table_text(tables[3]);
}

}  // namespace kvs::inline results
