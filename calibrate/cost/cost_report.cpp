#include "calibrate/cost/cost_report.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <set>
#include <sstream>

#include "calibrate/elitekv/elite_allocation.h"
#include "calibrate/elitekv/jlrd.h"

namespace kvs {
namespace {

// The settings of the papers' tables.
constexpr std::array kGammas{0.25, 0.5, 0.75};
constexpr double kFlopsGamma = 0.5;
constexpr std::array kLagRatios{0.5, 0.25, 0.125};
constexpr std::size_t kLagSinks = 16;
constexpr std::array kEliteRatios{0.5, 0.34375, 0.28125, 0.25, 0.21875, 0.125};
constexpr std::array kSpectrumShares{0.5, 0.25, 0.125};

constexpr double kTera = 1e12;

std::string percent(double share) {
  std::ostringstream out;
  out << 100 * share << " %";
  return out.str();
}

Json freqkv_json(const ModelConfig& model, const CostPlan& plan) {
  Json rows = Json::array();
  const SlotOptions half{.cache_size = plan.cache_size, .gamma = kFlopsGamma};
  for (const std::size_t tokens : plan.tokens) {
    const auto length = static_cast<double>(tokens);
    const double dropping = prefill_flops(model, tokens, attention_pairs(half, tokens)) / kTera;
    const double transforms = transform_flops(model, half, tokens) / kTera;
    Json counts = Json::array();
    for (const double gamma : kGammas)
      counts.push_back(compressions({.cache_size = plan.cache_size, .gamma = gamma}, tokens));
    rows.push_back({{"tokens", tokens},
                    {"full_tflops", prefill_flops(model, tokens, length * length) / kTera},
                    {"dropping_tflops", dropping},
                    {"freqkv_tflops", dropping + transforms},
                    {"transform_tflops", transforms},
                    {"compressions", counts}});
  }
  return {{"cache_size", half.cache_size},
          {"sinks", half.sinks},
          {"gamma", kFlopsGamma},
          {"gammas", kGammas},
          {"rows", rows}};
}

Json lagkv_json(const CostPlan& plan) {
  Json rows = Json::array();
  for (const std::size_t tokens : plan.tokens)
    for (const std::size_t lag : plan.lags) {
      Json held = Json::array();
      for (const double ratio : kLagRatios) held.push_back(lagkv_tokens(tokens, kLagSinks, lag, ratio));
      rows.push_back({{"tokens", tokens}, {"lag", lag}, {"held", held}});
    }
  return {{"sinks", kLagSinks}, {"ratios", kLagRatios}, {"rows", rows}};
}

Json elitekv_json(const ModelConfig& model) {
  const EliteShape shape{model.d_model, model.kv_heads, model.head_dim, model.chunks()};
  Json rows = Json::array(), bounds = Json::array();
  for (const double ratio : kEliteRatios) {
    Json pairs = Json::array();
    for (const auto& [r, d_ckv] : elite_allocations(shape, ratio, false)) pairs.push_back({r, d_ckv});
    rows.push_back({{"ratio", ratio}, {"count", pairs.size()}, {"pairs", pairs}});
  }
  for (const std::size_t r : std::set{shape.chunks / 4, 3 * shape.chunks / 8, shape.chunks / 2, shape.chunks})
    bounds.push_back({{"r", r}, {"d_ckv", no_extra_parameters_rank(model.d_model, model.kv_heads, model.head_dim, r)}});
  return {{"values_per_token_and_layer", 2 * model.kv_heads * model.head_dim}, {"rows", rows}, {"bounds", bounds}};
}

Json faedkv_json(const CostPlan& plan) {
  const SpectrumSize spectrum;
  Json rows = Json::array();
  for (const std::size_t tokens : plan.tokens) {
    if (tokens <= spectrum.sinks + spectrum.recent) continue;
    Json bins = Json::array(), ratios = Json::array();
    for (const double share : kSpectrumShares) {
      bins.push_back(spectrum.kept_bins(tokens, share));
      ratios.push_back(static_cast<double>(spectrum.size(tokens, share)) / static_cast<double>(tokens));
    }
    rows.push_back(
        {{"tokens", tokens}, {"bins", spectrum.kept_bins(tokens, 1)}, {"kept_bins", bins}, {"bytes_ratio", ratios}});
  }
  return {{"sinks", spectrum.sinks},
          {"recent", spectrum.recent},
          {"chunks", spectrum.chunks},
          {"shares", kSpectrumShares},
          {"rows", rows}};
}

/// A table's cells, set right, each column as wide as its widest.
class Table {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const {
    std::vector<std::size_t> widths;
    for (const auto& cells : rows_)
      for (std::size_t n = 0; n < cells.size(); ++n) {
        if (n == widths.size()) widths.push_back(0);
        widths[n] = std::max(widths[n], shown(cells[n]));
      }
    std::string out;
    for (const auto& cells : rows_) {
      for (std::size_t n = 0; n < cells.size(); ++n)
        out += std::string(widths[n] - shown(cells[n]) + 2, ' ') + cells[n];
      out += '\n';
    }
    return out;
  }

 private:
  /// Characters, not bytes.
  static std::size_t shown(const std::string& cell) {
    return static_cast<std::size_t>(
        std::ranges::count_if(cell, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  }
  std::vector<std::vector<std::string>> rows_;
};

std::string fixed(const Json& value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value.get<double>();
  return out.str();
}

std::string freqkv_text(const Json& freqkv) {
  Table table;
  std::vector<std::string> head{"tokens", "full", "dropping", "FreqKV", "of these DCT"};
  for (const Json& gamma : freqkv.at("gammas")) head.push_back("γ = " + gamma.dump());
  table.row(head);
  for (const Json& row : freqkv.at("rows")) {
    std::vector<std::string> cells{row.at("tokens").dump()};
    for (const char* name : {"full_tflops", "dropping_tflops", "freqkv_tflops"})
      cells.push_back(fixed(row.at(name), 2));
    cells.push_back(fixed(row.at("transform_tflops"), 4));
    for (const Json& count : row.at("compressions")) cells.push_back(count.dump());
    table.row(cells);
  }
  return "FreqKV: TFLOPs of a prefill at γ = " + freqkv.at("gamma").dump() + ", and compressions; cache of " +
         freqkv.at("cache_size").dump() + ", " + freqkv.at("sinks").dump() + " sinks\n" + table.text();
}

std::string lagkv_text(const Json& lagkv) {
  Table table;
  std::vector<std::string> head{"tokens", "L"};
  for (const Json& ratio : lagkv.at("ratios")) head.push_back("r = " + ratio.dump());
  table.row(head);
  for (const Json& row : lagkv.at("rows")) {
    std::vector<std::string> cells{row.at("tokens").dump(), row.at("lag").dump()};
    for (const Json& held : row.at("held")) cells.push_back(held.dump());
    table.row(cells);
  }
  return "LagKV: tokens held, " + lagkv.at("sinks").dump() + " sinks\n" + table.text();
}

std::string elitekv_text(const Json& elitekv) {
  Table table;
  table.row({"cache", "pairs", "first (r, d_ckv)", "last"});
  const auto pair = [](const Json& of) { return "(" + of.at(0).dump() + ", " + of.at(1).dump() + ")"; };
  for (const Json& row : elitekv.at("rows")) {
    const Json& pairs = row.at("pairs");
    table.row({percent(row.at("ratio")), row.at("count").dump(), pairs.empty() ? "–" : pair(pairs.front()),
               pairs.empty() ? "–" : pair(pairs.back())});
  }
  std::string text = "EliteKV: feasible pairs of the " + elitekv.at("values_per_token_and_layer").dump() +
                     " values of a token and layer\n" + table.text() + "  largest d_ckv without extra parameters:";
  for (const Json& bound : elitekv.at("bounds"))
    text += std::string(&bound == &elitekv.at("bounds").front() ? " " : ", ") + bound.at("d_ckv").dump() +
            " at r = " + bound.at("r").dump();
  return text + '\n';
}

std::string faedkv_text(const Json& faedkv) {
  Table table;
  std::vector<std::string> head{"tokens", "bins"};
  for (const Json& share : faedkv.at("shares")) {
    head.push_back(percent(share) + " of them");
    head.push_back("bytes");
  }
  table.row(head);
  for (const Json& row : faedkv.at("rows")) {
    std::vector<std::string> cells{row.at("tokens").dump(), row.at("bins").dump()};
    for (std::size_t n = 0; n < row.at("kept_bins").size(); ++n) {
      cells.push_back(row.at("kept_bins").at(n).dump());
      cells.push_back(fixed(100 * row.at("bytes_ratio").at(n).get<double>(), 1) + " %");
    }
    table.row(cells);
  }
  return "FAEDKV: bins of a prefix's spectrum, and its share of the full cache; " + faedkv.at("chunks").dump() +
         " chunks, " + faedkv.at("sinks").dump() + " sinks, " + faedkv.at("recent").dump() + " recent tokens\n" +
         table.text();
}

}  // namespace

Json cost_json(const ModelConfig& model, const CostPlan& plan) {
  constexpr std::size_t kBytesPerValue = 2;
  return {{"geometry",
           {{"name", model.name},
            {"layers", model.layers},
            {"d_model", model.d_model},
            {"d_ff", model.d_ff},
            {"query_heads", model.query_heads},
            {"kv_heads", model.kv_heads},
            {"head_dim", model.head_dim},
            {"vocabulary", model.vocabulary}}},
          {"products_per_token", products_per_token(model)},
          {"bytes_per_token", kBytesPerValue * model.cache_values_per_token()},
          {"freqkv", freqkv_json(model, plan)},
          {"lagkv", lagkv_json(plan)},
          {"elitekv", elitekv_json(model)},
          {"faedkv", faedkv_json(plan)}};
}

std::string cost_text(const Json& report) {
  return report.at("geometry").at("name").get<std::string>() + ": " + report.at("bytes_per_token").dump() +
         " bytes of cache a token in f16, " + fixed(report.at("products_per_token").get<double>() / 1e9, 3) +
         " G multiply-adds a token\n\n" + freqkv_text(report.at("freqkv")) + '\n' + lagkv_text(report.at("lagkv")) +
         '\n' + elitekv_text(report.at("elitekv")) + '\n' + faedkv_text(report.at("faedkv"));
}

}  // namespace kvs
