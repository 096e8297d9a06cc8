// SPDX-License-Identifier: Apache-2.0
#include "calibrate/budget/space.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <utility>

#include "calibrate/registry.h"
#include "core/interrupt.h"
#include "model/cache_shape.h"

namespace kvs::inline calibrate {
namespace {

/// Returns the default prefix of a method that compresses a prefix at its end. The tokens after it are not compressed:
/// a quarter of the document, but at most half of the rows in the budget.
std::size_t standard_prefix(std::size_t tokens, std::size_t rows) {
  constexpr std::size_t kScored = 2;  // at least
  return tokens - std::max(std::min(tokens, kScored), std::min(tokens / 4, rows / 2));
}

/// Returns the tokens, of `tokens`, that a layer without a sliding window can store if layers with a window store
/// theirs in full; these have `windows` of all `all` bytes.
std::size_t rows_within(std::size_t bytes, std::size_t windows, std::size_t all, std::size_t tokens) {
  if (windows == all) windows = 0;  // every layer has a window: all share the bytes
  return std::min(tokens, (bytes - std::min(bytes, windows)) * tokens / (all - windows));
}

/// Returns the bytes of the full caches of layers with a sliding window.
std::size_t windowed_bytes(const CacheShape& shape, std::size_t tokens) {
  std::size_t values = 0;
  for (const LayerShape& layer : shape.layers)
    if (layer.window > 0) values += layer.tokens_read(tokens) * layer.values();
  return values * CacheBytes::kStoredValue;
}

/// Returns true if the method or the model's shape refuses the settings.
bool is_refusal(const Error& error) {
  return error.code() == ErrorCode::kUsage || error.code() == ErrorCode::kUnsupported;
}

}  // namespace

std::size_t windowed_tokens(const ModelConfig& model, std::size_t tokens) {
  std::size_t sum = 0;
  for (std::size_t layer = 0; layer < model.layers(); ++layer)
    if (const std::size_t window = model.window(layer); window > 0 && model.layer[layer].has_cache())
      sum += std::min(window, tokens);
  return sum;
}

BudgetSpace::BudgetSpace(const Method& method, const ModelConfig& model, std::size_t tokens, std::size_t bytes,
                         Json fixed, std::optional<OfferedTypes> offered)
    : method_(method),
      model_(model),
      tokens_(tokens),
      bytes_(bytes),
      fixed_(std::move(fixed)),
      offered_(std::move(offered)),
      shape_(cache_shape(model)),
      sizes_(method_, shape_, tokens),
      grid_(budget_grid(method.name)) {
  refuse_obstacle(obstacle_of(method, model), method.name, model);
  const std::size_t windows = windowed_bytes(shape_, tokens), rows = rows_within(bytes, windows, sizes_.full(), tokens);
  if (method.prefill == Prefill::kWhole && !fixed_.contains("prefix")) fixed_["prefix"] = standard_prefix(tokens, rows);
  check_given();
  room_ = {.tokens = tokens, .rows = rows, .given = fixed_};
  if (method.prefill == Prefill::kWhole) room_.later = tokens - std::min(tokens, room_.count("prefix", tokens));
  measure_room();
}

void BudgetSpace::check_given() const {
  if (method_.settings_for_share == nullptr) return;
  const Json size = method_.settings_for_share(1, tokens_, fixed_);
  for (const auto& [name, value] : size.items())
    if (fixed_.contains(name))
      throw Error(ErrorCode::kUsage, "--set", "found " + name + ", which the budget sets, expected other parameters");
}

/// Uses the first settings that are valid for documents of this length; the paper's may not be.
void BudgetSpace::measure_room() {
  std::vector<Json> settings = offered_ ? std::vector<Json>() : grid_.standards();
  std::ranges::move(tried(room_), std::back_inserter(settings));
  for (const Json& one : settings) try {
      return measure_room(sizes_.largest(with_fixed(one)));
    } catch (const Error& error) {
      if (!is_refusal(error)) throw;
    }
}

void BudgetSpace::measure_room(const Json& whole) {
  const Prefix prefix = cache(whole).prefix();
  const std::vector<std::size_t> layers = sizes_.by_layer(whole);
  if (prefix.whole) room_.later = tokens_ - std::min(tokens_, prefix.tokens);
  std::size_t windows = 0, all = 0;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    all += layers[layer];
    if (model_.window(layer) > 0) windows += layers[layer];
  }
  room_.rows = rows_within(bytes_, windows, all, tokens_);
}

Parameters BudgetSpace::parameters(const Json& settings) const {
  return Parameters({{settings, "", ErrorCode::kUsage}}, shape_);
}

Cache BudgetSpace::cache(const Json& settings) const {
  Parameters values = parameters(settings);
  return make_cache(method_, values, shape_);
}

std::unique_ptr<LayerCache> BudgetSpace::layer_cache(const Json& settings, std::size_t layer) const {
  Parameters values = parameters(settings);
  return make_layer_cache(method_, values, layer, shape_);
}

Json BudgetSpace::with_fixed(Json settings) const {
  settings.update(fixed_);
  return settings;
}

std::vector<Json> BudgetSpace::tried(const BudgetRoom& room) const {
  return offered_ ? offered_->settings : grid_.settings(room);
}

Json BudgetSpace::resolved(const Json& settings) const {
  Parameters values = parameters(settings);
  (void)make_cache(method_, values, shape_);
  return values.resolved();
}

/// Also returns nullopt if the method or the model's shape refuses the settings; the first refusal is kept.
std::optional<Json> BudgetSpace::fitted(const Json& settings, std::size_t bytes) {
  check_interrupt();
  try {
    const auto sized = sizes_.fitted(with_fixed(settings), bytes);
    return sized ? std::optional(resolved(*sized)) : std::nullopt;
  } catch (const Error& error) {
    if (!is_refusal(error)) throw;
    if (!refusal_) refusal_ = error;
    return std::nullopt;
  }
}

std::vector<Json> BudgetSpace::candidates() {
  const std::vector<Json> all = tried(room_);
  std::vector<Json> result;
  grid_indices_.clear();
  for (std::size_t n = 0; n < all.size(); ++n) {
    auto one = fitted(all[n], bytes_);
    if (!one || std::ranges::find(result, *one) != result.end()) continue;
    result.push_back(std::move(*one));
    grid_indices_.push_back(n);
  }
  if (result.empty()) refuse(all);
  return result;
}

std::optional<Json> BudgetSpace::standard() {
  if (offered_) return std::nullopt;
  for (const Json& settings : grid_.standards())
    if (auto one = fitted(settings, bytes_)) return one;
  return std::nullopt;
}

std::optional<Json> BudgetSpace::scaled(std::size_t candidate, double share) {
  const auto part = [&](std::size_t whole) { return static_cast<std::size_t>(share * static_cast<double>(whole)); };
  BudgetRoom room = room_;
  room.rows = part(room.rows);
  return fitted(tried(room)[grid_indices_[candidate]], part(bytes_));
}

std::vector<Json> BudgetSpace::unsized() const {
  std::vector<Json> all;
  for (const Json& settings : tried(room_)) try {
      Json one = resolved(with_fixed(settings));
      if (std::ranges::find(all, one) == all.end()) all.push_back(std::move(one));
    } catch (const Error& error) {
      if (!is_refusal(error)) throw;
    }
  return all;
}

void BudgetSpace::refuse(const std::vector<Json>& settings) {
  std::optional<std::pair<std::size_t, Json>> nearest;
  for (const Json& one : settings) try {
      const std::size_t least = sizes_.least(with_fixed(one));
      if (!nearest || least < nearest->first) nearest.emplace(least, with_fixed(one));
    } catch (const Error& error) {
      if (!is_refusal(error)) throw;
    }
  if (!nearest) throw Error(*refusal_);
  const auto described = [&](std::size_t bytes) {
    char share[32];
    std::snprintf(share, sizeof share, "%.1f %%",
                  100 * static_cast<double>(bytes) / static_cast<double>(sizes_.full()));
    return std::to_string(bytes / tokens_) + " B a token (" + share + ")";
  };
  throw Error(ErrorCode::kUsage, "budget",
              "found " + described(bytes_) + ", expected at least " + described(nearest->first) + ", which takes " +
                  nearest->second.dump());
}

}  // namespace kvs::inline calibrate
