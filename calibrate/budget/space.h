// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "calibrate/budget/grid.h"
#include "calibrate/budget/offer.h"
#include "calibrate/common/cache_size.h"
#include "core/error.h"
#include "model/config.h"

namespace kvs::inline calibrate {

/// Returns the number of tokens of a document in layers with a sliding window, summed over these layers.
std::size_t windowed_tokens(const ModelConfig& model, std::size_t tokens);

/// The settings of one method under one budget. Returned settings have a value for every parameter.
class BudgetSpace {
 public:
  /// @param model   must outlive this;  @param tokens  of a document
  /// @param bytes   maximum for all layers;  @param fixed   values common to all settings
  /// @param offered  the settings to try instead of the method's grid; nullopt: the grid
  /// @throws Error kUsage if `fixed` gives the size, which the bytes determine, or an invalid value for its computation
  BudgetSpace(const Method& method, const ModelConfig& model, std::size_t tokens, std::size_t bytes, Json fixed,
              std::optional<OfferedTypes> offered = std::nullopt);

  const Method& method() const noexcept { return method_; }
  const BudgetGrid& grid() const noexcept { return grid_; }
  const ModelConfig& model() const noexcept { return model_; }
  std::size_t tokens() const noexcept { return tokens_; }
  std::size_t bytes() const noexcept { return bytes_; }
  const BudgetRoom& room() const noexcept { return room_; }
  CacheSizes& sizes() noexcept { return sizes_; }

  /// Returns the grid's settings that fit the budget, each with the largest size that it allows, without repetitions.
  /// @throws Error kUsage if none fits, naming the closest one; like make_cache() if the method accepts none
  std::vector<Json> candidates();
  /// Index in the grid of one of candidates().
  std::size_t grid_index(std::size_t candidate) const { return grid_indices_[candidate]; }
  /// Returns the settings at an index of the grid; grids of all budgets and documents have the same length. nullopt if
  /// they do not fit the budget.
  std::optional<Json> at(std::size_t grid_index) { return fitted(tried(room_)[grid_index], bytes_); }
  /// Returns the first of the grid's default settings that fits the budget; nullopt for offered settings.
  std::optional<Json> standard();
  /// Returns one of candidates() at another size. These are the settings at its index in the grid of a budget of
  /// `share` times the bytes, fitted to that budget. Returns nullopt if they do not fit it.
  std::optional<Json> scaled(std::size_t candidate, double share);
  /// Returns all of the grid's settings, independent of size, for a method without a size to choose.
  std::vector<Json> unsized() const;
  bool is_offered() const noexcept { return offered_.has_value(); }
  /// Returns how types may differ between layers.
  TypesByLayer types_by_layer() const noexcept { return offered_ ? offered_->by_layer : TypesByLayer::kAny; }

  /// Returns true if a parameter is given.
  bool is_given(const std::string& parameter) const { return fixed_.contains(parameter); }
  Parameters parameters(const Json& settings) const;
  Cache cache(const Json& settings) const;
  std::unique_ptr<LayerCache> layer_cache(const Json& settings, std::size_t layer) const;

 private:
  /// @throws Error kUsage like the constructor
  void check_given() const;
  /// Returns `settings` with the given values in place of its own.
  Json with_fixed(Json settings) const;
  /// Returns the settings to try: those that are offered, else the grid's for a room.
  std::vector<Json> tried(const BudgetRoom& room) const;
  void measure_room();
  void measure_room(const Json& whole);
  Json resolved(const Json& settings) const;
  std::optional<Json> fitted(const Json& settings, std::size_t bytes);
  [[noreturn]] void refuse(const std::vector<Json>& settings);

  const Method& method_;
  const ModelConfig& model_;
  std::size_t tokens_, bytes_;
  Json fixed_;
  std::optional<OfferedTypes> offered_;
  CacheShape shape_;
  CacheSizes sizes_;
  BudgetGrid grid_;
  BudgetRoom room_;
  std::vector<std::size_t> grid_indices_;  // [candidate]
  std::optional<Error> refusal_;
};

}  // namespace kvs::inline calibrate
