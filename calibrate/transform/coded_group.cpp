// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/coded_group.h"

#include <algorithm>

#include "calibrate/transform/coder.h"

namespace kvs::inline calibrate {
namespace {

/// Types of outliers and of waiting tokens.
KvTypes outlier_store(std::size_t head_dim) { return {{outlier_format(head_dim)}, {outlier_format(head_dim)}}; }

/// Overwrites tokens of k and v [1, head, token, head_dim] from `first` on.
void put(Backend& backend, const TokenRows::Part& part, const BackendView<float, 4>& k, const BackendView<float, 4>& v,
         std::size_t first, CodedSides sides = CodedSides::kBoth) {
  if (sides != CodedSides::kValues) put_rows(backend, part.k.view(), k, first);
  if (sides != CodedSides::kKeys) put_rows(backend, part.v.view(), v, first);
}

}  // namespace

CodedGroup::CodedGroup(std::shared_ptr<const TransformProducts> products, CodedSides sides,
                       std::shared_ptr<TokenInputs> inputs)
    : products_(std::move(products)),
      sides_(sides),
      inputs_(std::move(inputs)),
      codes_(make_transform_codes(products_)) {
  const KvTypes types = outlier_store(products_->shape.head_dim);
  layers_.resize(products_->layers());
  for (Layer& layer : layers_) {
    layer.outliers = TokenRows(types);
    layer.waiting = TokenRows(types);
  }
}

std::size_t CodedGroup::missing_sinks(std::size_t layer) const noexcept {
  return products_->sinks - std::min(products_->sinks, end(layer));
}

std::size_t CodedGroup::room(std::size_t layer) const noexcept {
  return missing_sinks(layer) + 2 * products_->recent - layers_[layer].waiting.count();
}

CacheBytes CodedGroup::bytes(std::size_t layer) const noexcept {
  CacheBytes bytes = layer == 0 ? codes_->bytes() : CacheBytes();
  const Layer& held = layers_[layer];
  for (const TokenRows* const rows : {&held.sinks, &held.outliers, &held.waiting}) bytes += rows->bytes();
  const std::size_t places = layer == 0 ? held.outliers.count() * sizeof(std::uint32_t) : 0;
  if (layer == 0 && fills_inputs_) bytes += inputs_->bytes();
  return bytes += {.stored = places, .used = places};
}

void CodedGroup::begin(std::size_t layer, const LayerStates& states) {
  window_ = states.window;
  chunk_ = states.chunk;
  if (inputs_ != nullptr && states.layer == 0) {
    fills_inputs_ = true;
    inputs_->add(states);
  }
  layers_[layer].peak = {};
}

void CodedGroup::keep(const LayerStates& states, std::size_t layer) {
  Backend& backend = states.backend;
  Layer& held = layers_[layer];
  const std::size_t tokens = states.tokens(), sinks = std::min(tokens, missing_sinks(layer)), count = tokens - sinks;
  if (sinks > 0) held.sinks.append(backend, states.k, states.v, 0, sinks);
  if (count == 0) return;
  if (products_->recent == 0) {
    const std::size_t position = waiting_from(layer);
    code(backend, {{states.k, states.v}}, sinks);
    return put_coded(backend, layer, position, states.k, states.v, sinks);
  }
  held.waiting.append(backend, states.k, states.v, sinks, count);
  put(backend, held.waiting.copy(backend, held.waiting.count() - count, count), states.k, states.v, sinks);
}

std::optional<TokenRows::Part> CodedGroup::settle(Backend& backend) {
  drop_old(backend);
  for (std::size_t n = 0; n < layers_.size(); ++n)
    if (const CacheBytes now = bytes(n); now.stored > layers_[n].peak.stored) layers_[n].peak = now;
  const std::size_t recent = products_->recent;
  if (recent == 0 || layers_.front().waiting.count() < 2 * recent) return std::nullopt;
  return code_waiting(backend, recent);
}

std::optional<TokenRows::Part> CodedGroup::code_waiting(Backend& backend, std::size_t count) {
  const std::size_t position = waiting_from(0);
  std::vector<TokenRows::Part> older;
  std::vector<TokenStates> states;
  older.reserve(layers_.size());
  states.reserve(layers_.size());
  for (Layer& layer : layers_) {
    const TokenRows::Part& part = older.emplace_back(layer.waiting.copy(backend, 0, count));
    states.push_back({part.k.view(), part.v.view()});
    layer.waiting.drop_front(backend, count);
  }
  code(backend, states, 0);
  if (layers_.size() > 1) return std::nullopt;
  put_coded(backend, 0, position, older.front().k.view(), older.front().v.view(), 0);
  return std::move(older.front());
}

/// Codes tokens from `first` on, which follow the coded ones. @param layers  [layer]
void CodedGroup::code(Backend& backend, const std::vector<TokenStates>& layers, std::size_t first) {
  const std::size_t position = waiting_from(0);
  const RowBuffer::Part inputs = inputs_of(backend, position, layers.front().k.extent(2) - first);
  const std::vector<double> costs = codes_->append(backend, layers, first, inputs.view());
  for (std::size_t token = 0; token < costs.size(); ++token) {
    if (!(costs[token] > threshold(position + token))) continue;
    for (std::size_t n = 0; n < layers_.size(); ++n)
      layers_[n].outliers.append(backend, layers[n].k, layers[n].v, first + token, 1);
    places_.push_back(static_cast<std::uint32_t>(position + token));
  }
}

/// Overwrites tokens of k and v from `first` on with the decoded tokens from `position` on.
void CodedGroup::put_coded(Backend& backend, std::size_t layer, std::size_t position, const BackendView<float, 4>& k,
                           const BackendView<float, 4>& v, std::size_t first) {
  const std::size_t count = k.extent(2) - first;
  const RowBuffer::Part inputs = inputs_of(backend, position, count);
  put(backend, codes_->copy(backend, layer, position - coded_from(layer), count, inputs.view()), k, v, first, sides_);
  for (auto n = static_cast<std::size_t>(std::ranges::lower_bound(places_, static_cast<std::uint32_t>(position)) -
                                         places_.begin());
       n < places_.size(); ++n)
    put(backend, layers_[layer].outliers.copy(backend, n - gone_, 1), k, v, first + places_[n] - position);
}

/// Returns what the tokens from `position` on are predicted from; nothing without a prediction.
RowBuffer::Part CodedGroup::inputs_of(Backend& backend, std::size_t position, std::size_t count) const {
  return inputs_ == nullptr ? RowBuffer::Part() : inputs_->copy(backend, position, count);
}

/// Returns the threshold for the token at `position`, when the tokens before it are coded.
double CodedGroup::threshold(std::size_t position) const {
  const std::size_t held = window_ == 0 ? 0 : window_ + 1;  // the last call's window, and this token
  const std::size_t oldest = std::max(products_->sinks, oldest_read(position, held, chunk_));
  const auto first = std::ranges::lower_bound(places_, static_cast<std::uint32_t>(oldest));
  return outlier_threshold(*products_, position - oldest, static_cast<std::size_t>(places_.end() - first));
}

TokenRows CodedGroup::read(const LayerStates& states, std::size_t layer) {
  Backend& backend = states.backend;
  const auto& [sinks, outliers, waiting, peak] = layers_[layer];
  TokenRows past;
  const std::size_t tokens = end(layer) - start_;
  if (tokens == 0) return past;
  const TokenRows::Part part = empty_part(backend, products_->shape, tokens);
  const auto put_at = [&](const TokenRows::Part& some, std::size_t position) {
    put(backend, some, part.k.view(), part.v.view(), position - start_);
  };
  if (sinks.count() > 0) put_at(sinks.copy(backend, 0, sinks.count()), start_);
  if (codes_->count() > 0) {
    const RowBuffer::Part inputs = inputs_of(backend, coded_from(layer), codes_->count());
    put_at(codes_->copy(backend, layer, 0, codes_->count(), inputs.view()), coded_from(layer));
  }
  if (waiting.count() > 0) put_at(waiting.copy(backend, 0, waiting.count()), waiting_from(layer));
  for (std::size_t n = gone_; n < places_.size(); ++n) put_at(outliers.copy(backend, n - gone_, 1), places_[n]);
  backend.rope(part.k.view(), states.rope, start_, RopeDirection::kForward, {});
  past.append(backend, part.k.view(), part.v.view(), 0, tokens);
  return past;
}

TokenRows::Part CodedGroup::late_rows(const LayerStates& states, std::size_t layer) const {
  Backend& backend = states.backend;
  const auto& [sinks, outliers, waiting, peak] = layers_[layer];
  TokenRows::Part late = empty_part(backend, products_->shape, waiting.count() + sinks.count());
  if (waiting.count() > 0) put(backend, waiting.copy(backend, 0, waiting.count()), late.k.view(), late.v.view(), 0);
  if (sinks.count() > 0) {
    const TokenRows::Part first = sinks.copy(backend, 0, sinks.count());
    backend.rope(first.k.view(), states.rope, start_, RopeDirection::kForward, {});
    backend.rope(first.k.view(), states.rope, end(layer), RopeDirection::kInverse, {});
    put(backend, first, late.k.view(), late.v.view(), waiting.count());
  }
  return late;
}

/// Drops tokens that no later token reads. Waiting tokens are not dropped.
void CodedGroup::drop_old(Backend& backend) {
  const std::size_t tokens = end(0), oldest = tokens == 0 ? 0 : oldest_read(tokens - 1, window_, chunk_);
  if (oldest <= start_) return;
  const std::size_t old = oldest - start_, sinks = std::min(old, layers_.front().sinks.count()),
                    coded = std::min(old - sinks, codes_->count());
  if (coded > 0) codes_->drop_front(backend, coded);
  start_ += sinks + coded;
  std::size_t gone = gone_;
  while (gone < places_.size() && places_[gone] < start_) ++gone;
  for (Layer& layer : layers_) {
    if (sinks > 0) layer.sinks.drop_front(backend, sinks);
    if (gone > gone_) layer.outliers.drop_front(backend, gone - gone_);
  }
  gone_ = gone;
}

}  // namespace kvs::inline calibrate
