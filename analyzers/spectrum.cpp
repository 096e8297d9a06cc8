// SPDX-License-Identifier: Apache-2.0
#include "analyzers/spectrum.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/interrupt.h"

namespace kvs::inline analyzers {
namespace {

void add_values(std::span<double> to, std::span<const double> values) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += values[i];
}

}  // namespace

PowerTable::PowerTable(std::vector<std::size_t> heads_by_layer, std::size_t bin_count)
    : layers(heads_by_layer.size()), bins(bin_count), heads(std::move(heads_by_layer)) {
  std::size_t rows = 0;
  for (const std::size_t count : heads) {
    first.push_back(rows);
    rows += count;
  }
  values.resize(rows * bins);
}

std::vector<double> PowerTable::layer_mean(std::size_t layer) const {
  std::vector<double> mean(bins);
  for (std::size_t head = 0; head < heads[layer]; ++head) {
    const std::span<const double> values_of_head = row(layer, head);
    for (std::size_t bin = 0; bin < bins; ++bin) mean[bin] += values_of_head[bin];
  }
  for (double& value : mean) value /= static_cast<double>(heads[layer]);
  return mean;
}

std::vector<std::size_t> SpectrumAccumulator::Settings::heads_by_layer() const {
  std::vector<std::size_t> heads;
  for (const std::size_t layer : layers) heads.push_back(kv_heads.of(layer));
  return heads;
}

SpectrumAccumulator::SpectrumAccumulator(SpectralOps& ops, Settings settings, std::size_t tokens)
    : ops_(&ops), settings_(std::move(settings)), tokens_(tokens) {
  if (tokens <= settings_.sinks) {
    throw Error(ErrorCode::kUsage, "sinks",
                "found " + std::to_string(settings_.sinks) + ", expected fewer than the " + std::to_string(tokens) +
                    " tokens of a document");
  }
  const std::size_t bins = bins_of(settings_.transform, tokens);
  const std::size_t bins_without = bins_of(settings_.transform, tokens - settings_.sinks);
  const std::vector<std::size_t> heads = settings_.heads_by_layer();
  channels_before_.push_back(0);
  for (const std::size_t layer : settings_.layers)
    channels_before_.push_back(channels_before_.back() + settings_.kv_heads.of(layer) * settings_.head_dim.of(layer));
  for (const StateKind state : settings_.states) {
    power_[state] = PowerTable(heads, bins);
    without_sinks_[state] = PowerTable(heads, bins_without);
    constant_[state].assign(channels_before_.back(), 1.0);
  }
}

bool SpectrumAccumulator::add_document(StateSource& source, std::size_t document) {
  if (source.tokens() != tokens_) {
    throw Error(ErrorCode::kInternal, "spectrum", "the source's documents have another number of tokens");
  }
  const StateNeeds needs{.layers = settings_.layers, .states = settings_.states};
  std::size_t visited = 0;
  source.visit(document, needs, [&](const DocumentStates& states) {
    check_interrupt();
    const auto at = std::lower_bound(settings_.layers.begin(), settings_.layers.end(), states.layer);
    if (at == settings_.layers.end() || *at != states.layer) return;
    const auto layer = static_cast<std::size_t>(at - settings_.layers.begin());
    for (const StateKind state : settings_.states) add_state(states, state, layer, source.backend());
    ++visited;
  });
  if (visited == 0 && !settings_.layers.empty()) return false;
  if (visited != settings_.layers.size()) {
    throw Error(
        ErrorCode::kInternal, "spectrum",
        "the source gave " + std::to_string(visited) + " of " + std::to_string(settings_.layers.size()) + " layers");
  }
  ++documents_.front();
  return true;
}

void SpectrumAccumulator::add_state(const DocumentStates& states, StateKind state, std::size_t layer,
                                    DeviceMemory& device) {
  const BackendView<const float, 3> view = states[state];
  const std::size_t kv_heads = settings_.kv_heads.of(states.layer), head_dim = settings_.head_dim.of(states.layer);
  if (view.shape() != std::array<std::size_t, 3>{kv_heads, tokens_, head_dim}) {
    throw Error(ErrorCode::kInternal, "spectrum", std::string(name_of(state)) + " does not have the model's shape");
  }
  std::vector<double> power;
  const auto add_power = [&](PowerTable& table, std::size_t first_token) {
    power.resize(table.rows(layer).size());
    ops_->power(view, settings_.transform, first_token, power);
    const auto bad = std::ranges::find_if_not(power, [](double value) { return std::isfinite(value); });
    if (bad != power.end()) {
      const auto head = static_cast<std::size_t>(bad - power.begin()) / table.bins;
      throw Error(ErrorCode::kData, "document " + std::to_string(states.document),
                  std::string(name_of(state)) + " of layer " + std::to_string(states.layer) + ", head " +
                      std::to_string(head) + " has NaN, infinity or a square above the range of numbers");
    }
    add_values(table.rows(layer), power);
  };
  add_power(power_[state], 0);
  if (settings_.sinks == 0) {
    add_values(without_sinks_[state].rows(layer), power);
  } else {
    add_power(without_sinks_[state], settings_.sinks);
  }
  note_constant_channels(view, state, layer, device);
}

// Two tokens suffice to show that nearly every channel varies, so only those are downloaded. A whole head is downloaded
// only for channels that were constant so far; a sound model has none.
void SpectrumAccumulator::note_constant_channels(BackendView<const float, 3> states, StateKind state, std::size_t layer,
                                                 DeviceMemory& device) {
  const auto [heads, tokens, head_dim] = states.shape();
  std::vector<float> host;
  for (std::size_t head = 0; head < heads; ++head) {
    double* const constant = constant_[state].data() + channels_before_[layer] + head * head_dim;
    const float* const data = states.data() + head * tokens * head_dim;
    for (const std::size_t rows : {std::min<std::size_t>(2, tokens), tokens}) {
      if (std::none_of(constant, constant + head_dim, [](double flag) { return flag != 0; })) break;
      host.resize(rows * head_dim);
      device.download(host.data(), data, host.size() * sizeof(float));
      for (std::size_t i = head_dim; i < host.size(); ++i) {
        if (host[i] != host[i % head_dim]) constant[i % head_dim] = 0;
      }
    }
  }
}

std::vector<std::vector<double>*> SpectrumAccumulator::tables() {
  std::vector<std::vector<double>*> all{&documents_};
  for (const StateKind state : settings_.states) {
    all.insert(all.end(), {&power_[state].values, &without_sinks_[state].values, &constant_[state]});
  }
  return all;
}

std::vector<std::span<const double>> SpectrumAccumulator::sums() const {
  std::vector<std::span<const double>> all{documents_};
  for (const StateKind state : settings_.states) {
    all.insert(all.end(), {power_[state].values, without_sinks_[state].values, constant_[state]});
  }
  return all;
}

std::size_t SpectrumAccumulator::bytes() const {
  std::size_t values = 0;
  for (const std::span<const double> table : sums()) values += table.size();
  return values * sizeof(double);
}

void SpectrumAccumulator::check_sizes(std::span<const std::vector<double>> sums) {
  const std::vector<std::vector<double>*> own = tables();
  bool fits = own.size() == sums.size();
  for (std::size_t i = 0; fits && i < own.size(); ++i) fits = own[i]->size() == sums[i].size();
  if (!fits) throw Error(ErrorCode::kInput, "spectrum checkpoint", "its sums do not have this run's sizes");
}

void SpectrumAccumulator::restore(std::span<const std::vector<double>> sums) {
  check_sizes(sums);
  const std::vector<std::vector<double>*> own = tables();
  for (std::size_t i = 0; i < own.size(); ++i) *own[i] = sums[i];
}

std::vector<std::vector<double>> SpectrumAccumulator::take_sums() {
  std::vector<std::vector<double>> all;
  for (std::vector<double>* const table : tables()) all.push_back(std::move(*table));
  return all;
}

void SpectrumAccumulator::add(std::span<const std::vector<double>> sums) {
  check_sizes(sums);
  const std::vector<std::vector<double>*> own = tables();
  for (std::size_t i = 0; i < own.size(); ++i) {
    const bool flags =
        std::ranges::any_of(settings_.states, [&](StateKind state) { return own[i] == &constant_[state]; });
    for (std::size_t n = 0; n < sums[i].size(); ++n)
      (*own[i])[n] = flags ? std::min((*own[i])[n], sums[i][n]) : (*own[i])[n] + sums[i][n];
  }
}

Spectrum SpectrumAccumulator::result() const {
  if (documents() == 0) throw Error(ErrorCode::kData, "spectrum", "found 0 documents, expected at least 1");
  Spectrum spectrum{.transform = settings_.transform,
                    .tokens = tokens_,
                    .sinks = settings_.sinks,
                    .documents = documents(),
                    .layers = settings_.layers,
                    .states = settings_.states,
                    .power = power_,
                    .without_sinks = without_sinks_,
                    .constant_channels = {}};
  for (const StateKind state : settings_.states) {
    for (double& value : spectrum.power[state].values) value /= documents_.front();
    for (double& value : spectrum.without_sinks[state].values) value /= documents_.front();
    for (std::size_t n = 0; n < settings_.layers.size(); ++n) {
      const std::size_t layer = settings_.layers[n], head_dim = settings_.head_dim.of(layer);
      for (std::size_t i = channels_before_[n]; i < channels_before_[n + 1]; ++i) {
        if (constant_[state][i] == 0) continue;
        const std::size_t channel = i - channels_before_[n];
        spectrum.constant_channels.push_back({state, layer, channel / head_dim, channel % head_dim});
      }
    }
  }
  return spectrum;
}

}  // namespace kvs::inline analyzers
