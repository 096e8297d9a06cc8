#include "policy/layer_cache.h"

#include <algorithm>

namespace kvs {

void rotate_at(const LayerStates& states, std::size_t first) {
  states.backend.rope(states.q, states.rope, first, RopeDirection::kForward, {});
  states.backend.rope(states.k, states.rope, first, RopeDirection::kForward, {});
}

void attend_rows(const LayerStates& states, const KeyRows& past, const Operand& out) {
  states.backend.attention({.q = states.q,
                            .k = states.k,
                            .v = states.v,
                            .past = past,
                            .scale = states.scale,
                            .window = states.window,
                            .softcap = states.softcap},
                           out);
}

CacheBytes& CacheBytes::operator+=(const CacheBytes& other) noexcept {
  stored += other.stored;
  used += other.used;
  spare += other.spare;
  return *this;
}

void Cache::begin_prefix() {
  for (const auto& layer : layers_) layer->begin_prefix();
}

void Cache::end_prefix(Backend& backend) {
  for (const auto& layer : layers_) layer->end_prefix(backend);
}

std::size_t Cache::room() const noexcept {
  std::size_t least = LayerCache::kUnlimited;
  for (const auto& layer : layers_) least = std::min(least, layer->room());
  return least;
}

CacheBytes Cache::bytes() const noexcept {
  CacheBytes sum;
  for (const auto& layer : layers_) sum += layer->bytes();
  return sum;
}

CacheBytes Cache::peak() const noexcept {
  CacheBytes sum;
  for (const auto& layer : layers_) sum += layer->peak();
  return sum;
}

std::size_t Cache::positions(std::size_t tokens) const noexcept {
  std::size_t most = 0;
  for (const auto& layer : layers_) most = std::max(most, layer->positions(tokens));
  return most;
}

std::size_t Cache::compressions() const noexcept {
  std::size_t most = 0;
  for (const auto& layer : layers_) most = std::max(most, layer->compressions());
  return most;
}

}  // namespace kvs
