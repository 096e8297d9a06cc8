// SPDX-License-Identifier: Apache-2.0
#include "results/spectrum.h"

#include <algorithm>
#include <sstream>

namespace kvs::inline results {
namespace {

void check_length(const JsonCursor& list, std::size_t length, const char* of_what) {
  if (list.array_size() != length) list.fail(std::to_string(length) + " " + of_what);
}

/// Checks that each head has one share for each percentage.
void check_heads(const SpectrumResult& of, const SpectrumResult::Table& table, const JsonCursor& json) {
  check_length(json.at("heads"), of.layers.size(), "layers");
  for (std::size_t layer = 0; layer < table.heads.size(); ++layer) {
    const JsonCursor shares = json.at("heads").at(layer).at("low_share");
    check_length(shares, table.heads[layer].flatness.size(), "heads");
    for (std::size_t head = 0; head < shares.array_size(); ++head)
      check_length(shares.at(head), of.low_percents.size(), "percentages");
  }
  const JsonCursor shares = json.at("layers").at("low_share");
  for (std::size_t layer = 0; layer < shares.array_size(); ++layer)
    check_length(shares.at(layer), of.low_percents.size(), "percentages");
}

void check_tokens(const SpectrumResult& of, const SpectrumResult::Tokens& tokens, const JsonCursor& json) {
  check_heads(of, tokens.with_dc, json.at("with_dc"));
  check_heads(of, tokens.without_dc, json.at("without_dc"));
  for (std::size_t layer = 0; layer < of.layers.size(); ++layer)
    check_length(json.at("without_dc").at("heads").at(layer).at("low_share"),
                 tokens.with_dc.heads[layer].low_share.size(), "heads");
  if (tokens.chunk_share) {
    check_length(json.at("chunk_share"), of.layers.size(), "layers");
    for (std::size_t layer = 0; layer < of.layers.size(); ++layer)
      check_length(json.at("chunk_share").at(layer), tokens.chunk_share->front().size(), "chunks");
  }
  if (!tokens.curve) return;
  check_length(json.at("curve").at("power"), of.layers.size(), "layers");
  for (std::size_t layer = 0; layer < of.layers.size(); ++layer)
    check_length(json.at("curve").at("power").at(layer), tokens.curve->bins.size(), "bands");
}

void check_steps(const JsonCursor& steps, std::size_t layers) {
  for (const char* step : {"mean", "channels", "head", "layer", "tokens"})
    if (steps.has(step)) check_length(steps.at(step), layers, "layers");
}

void check_gains(const JsonCursor& gains, std::size_t layers) {
  check_length(gains.at("joint"), layers, "layers");
  for (const StateKind state : kStateKinds) {
    if (!gains.has(name_of(state))) continue;
    check_steps(gains.at(name_of(state)).at("layers"), layers);
    if (gains.at(name_of(state)).has("weighted"))
      check_steps(gains.at(name_of(state)).at("weighted").at("layers"), layers);
  }
}

}  // namespace

std::size_t SpectrumResult::tenth() const {
  return static_cast<std::size_t>(std::ranges::find(low_percents, 10.0) - low_percents.begin());
}

void SpectrumResult::check(const SpectrumResult& of, const JsonCursor& json) {
  if (of.layers.empty()) json.at("layers").fail("at least one layer");
  if (of.tenth() == of.low_percents.size()) json.at("low_percents").fail("a list with 10");
  for (const StateKind state : kStateKinds)
    if (of.states[state])
      check_tokens(of, of.states[state]->all_tokens, json.at("states").at(name_of(state)).at("all_tokens"));
  if (!of.coding_gain || !of.coding_gain->measured) return;
  for (const char* gains : {"mean_removed", "mean_kept"})
    check_gains(json.at("coding_gain").at(gains), of.layers.size());
}

double low_tenth(const SpectrumResult& result, const SpectrumResult::Table& table) {
  double mean = 0;
  for (const std::vector<double>& shares : table.layers.low_share)
    mean += shares[result.tenth()] / static_cast<double>(table.layers.low_share.size());
  return mean;
}

std::string to_text(const SpectrumResult& result) {
  std::ostringstream text;
  text.precision(3);
  text << "spectrum: " << result.documents << " documents of " << result.tokens << " tokens, "
       << (result.transform == "dct" ? "DCT" : "DFT") << ", without the first " << result.sinks << " tokens\n";
  for (const StateKind state : kStateKinds) {
    if (!result.states[state] || !result.states[state]->without_sinks) continue;
    const SpectrumResult::Table& table = result.states[state]->without_sinks->with_dc;
    double coefficients = 0;
    for (const std::size_t bins : table.layers.bins_for_energy)
      coefficients += static_cast<double>(bins) / static_cast<double>(result.layers.size());
    text << "  " << name_of(state) << ": lowest 10 % of bins hold " << 100 * low_tenth(result, table)
         << " % of the energy; 95 % takes " << coefficients << " of " << table.bins << " bins (means over layers)\n";
  }
  return text.str() + (result.coding_gain ? to_text(*result.coding_gain) : "");
}

}  // namespace kvs::inline results
