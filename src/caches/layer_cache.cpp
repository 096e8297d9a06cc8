// SPDX-License-Identifier: Apache-2.0
#include "caches/layer_cache.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "caches/chosen_rows.h"

namespace kvs::inline caches {
namespace {

void wait_for(DeviceMemory& device) {
  BackendTensor<float, 1> one(device, {1});
  const float zero = 0;
  device.upload(one.view().data(), &zero, sizeof zero);
  (void)download(device, one.view());
}

}  // namespace

void rotate_at(const LayerStates& states, std::size_t first) {
  states.backend.rope(states.q, states.rope, first, RopeDirection::kForward, {});
  states.backend.rope(states.k, states.rope, first, RopeDirection::kForward, {});
  const auto& [query_gain, key_gain, epsilon] = states.norm;
  if (!query_gain.empty()) states.backend.norm_heads(states.q, query_gain, epsilon);
  if (!key_gain.empty()) states.backend.norm_heads(states.k, key_gain, epsilon);
}

void turn_later(LayerStates& states) {
  if (states.norm.key_gain.empty()) return;
  states.backend.norm_heads(states.k, states.turned_norm.key_gain, states.norm.epsilon);
  states.norm = {.query_gain = states.turned_norm.query_gain, .epsilon = states.norm.epsilon};
}

void attend_rows(const LayerStates& states, const PastKv& past, const Operand& out, BackendView<float, 2> mass) {
  if (!states.reads_output && mass.empty()) return;
  if (!states.chosen.empty()) return attend_chosen(states, past, out);
  states.backend.attention({.q = states.q,
                            .k = states.k,
                            .v = states.v,
                            .past = past,
                            .scale = states.scale,
                            .window = states.window,
                            .chunk = states.chunk,
                            .first_position = states.chunk > 0 ? states.first_position - past.count() : 0,
                            .softcap = states.softcap,
                            .mass = mass,
                            .sinks = states.sinks},
                           out);
}

std::vector<float> attend_rows_with_mass(const LayerStates& states, const PastKv& past, const Operand& out) {
  const BackendTensor<float, 2> mass(states.backend, {states.k.extent(1), past.count() + 1});
  attend_rows(states, past, out, mass.view());
  return download(states.backend, mass.view());
}

CacheBytes& CacheBytes::operator+=(const CacheBytes& other) noexcept {
  stored += other.stored;
  used += other.used;
  spare += other.spare;
  return *this;
}

void LayerCache::compression(Backend& backend, const std::function<void()>& work) {
  wait_for(backend);
  const auto start = std::chrono::steady_clock::now();
  work();
  wait_for(backend);
  compression_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ++compressions_;
}

void Cache::begin_prefix() {
  for (const auto& layer : layers_)
    if (layer) layer->begin_prefix(prefix_.tokens);
}

void Cache::end_prefix(Backend& backend) {
  for (const auto& layer : layers_)
    if (layer) layer->end_prefix(backend);
}

std::optional<std::vector<FullStart>> Cache::full_start() const {
  std::vector<FullStart> starts;
  for (const auto& layer : layers_) {
    std::optional<FullStart> start = layer ? layer->full_start(prefix_.whole ? prefix_.tokens : 0) : std::nullopt;
    if (!start) return std::nullopt;
    starts.push_back(std::move(*start));
  }
  const std::size_t least = std::ranges::min(starts, {}, &FullStart::tokens).tokens;
  for (FullStart& start : starts) start.tokens = prefix_.whole ? std::min(least, prefix_.tokens) : least;
  return starts;
}

std::size_t Cache::max_tokens_per_call() const noexcept {
  std::size_t least = LayerCache::kUnlimited;
  for (const auto& layer : layers_)
    if (layer) least = std::min(least, layer->max_tokens_per_call());
  return least;
}

CacheBytes Cache::bytes() const noexcept {
  CacheBytes sum;
  for (const auto& layer : layers_)
    if (layer) sum += layer->bytes();
  return sum;
}

std::size_t Cache::recurrent_bytes() const noexcept {
  std::size_t sum = 0;
  for (const auto& [layer, state] : recurrent_) sum += state.bytes();
  return sum;
}

CacheBytes Cache::peak() const noexcept {
  CacheBytes sum;
  for (const auto& layer : layers_)
    if (layer) sum += layer->peak();
  return sum;
}

std::size_t Cache::positions(std::size_t tokens) const noexcept {
  std::size_t most = 0;
  for (const auto& layer : layers_)
    if (layer) most = std::max(most, layer->positions(tokens));
  return most;
}

std::size_t Cache::compressions() const noexcept {
  std::size_t most = 0;
  for (const auto& layer : layers_)
    if (layer) most = std::max(most, layer->compressions());
  return most;
}

double Cache::compression_seconds() const noexcept {
  double sum = 0;
  for (const auto& layer : layers_)
    if (layer) sum += layer->compression_seconds();
  return sum;
}

}  // namespace kvs::inline caches
