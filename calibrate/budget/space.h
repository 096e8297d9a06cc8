#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "calibrate/budget/grid.h"
#include "calibrate/common/cache_size.h"
#include "core/error.h"
#include "model/config.h"

namespace kvs {

/// Tokens that the layers with a sliding window hold of a document, summed over them.
std::size_t windowed_tokens(const ModelConfig& model, std::size_t tokens);

/// The settings of one method under one budget. Settings that it gives have a value for every parameter.
class BudgetSpace {
 public:
  /// @param model   which must outlive this;  @param tokens  of a document
  /// @param bytes   of all layers, at most;   @param fixed   what every setting has in common
  /// @throws Error kUsage if `fixed` gives the size, which the bytes set, or no number that it is reckoned from
  BudgetSpace(const Method& method, const ModelConfig& model, std::size_t tokens, std::size_t bytes, Json fixed);

  const Method& method() const noexcept { return method_; }
  const BudgetGrid& grid() const noexcept { return grid_; }
  const ModelConfig& model() const noexcept { return model_; }
  std::size_t tokens() const noexcept { return tokens_; }
  std::size_t bytes() const noexcept { return bytes_; }
  const BudgetRoom& room() const noexcept { return room_; }
  CacheSizes& sizes() noexcept { return sizes_; }

  /// The grid's settings, each with the greatest size that the budget allows; those that reach it, each once.
  /// @throws Error kUsage if none does, naming the one that comes nearest; as make_cache() if none is one of the method
  std::vector<Json> candidates();
  /// The grid's place of one of candidates().
  std::size_t place(std::size_t candidate) const { return places_[candidate]; }
  /// The settings at a place of the grid, whose grid is as long for every budget and document; nothing if they do not
  /// reach the budget.
  std::optional<Json> at(std::size_t place) { return fitted(grid_.settings(room_)[place], bytes_); }
  /// The first of the grid's standards that reaches the budget.
  std::optional<Json> standard();
  /// One of candidates() at another size: the settings at its place in the grid of a budget of `share` times the bytes,
  /// fitted to it. Nothing if they do not reach it.
  std::optional<Json> scaled(std::size_t candidate, double share);
  /// All of the grid's settings, whatever their size, of a method that has none to choose.
  std::vector<Json> unsized() const;

  /// Whether a parameter is given.
  bool is_given(const std::string& parameter) const { return fixed_.contains(parameter); }
  Cache cache(const Json& settings) const;
  std::unique_ptr<LayerCache> layer_cache(const Json& settings, std::size_t layer) const;

 private:
  /// @throws Error kUsage as the constructor
  void check_given() const;
  /// With what is given in place of what `settings` has.
  Json with_fixed(Json settings) const;
  void measure_room();
  void measure_room(const Json& whole);
  Parameters parameters(const Json& settings) const;
  Json resolved(const Json& settings) const;
  std::optional<Json> fitted(const Json& settings, std::size_t bytes);
  [[noreturn]] void refuse(const std::vector<Json>& settings);

  const Method& method_;
  const ModelConfig& model_;
  std::size_t tokens_, bytes_;
  Json fixed_;
  CacheShape shape_;
  CacheSizes sizes_;
  BudgetGrid grid_;
  BudgetRoom room_;
  std::vector<std::size_t> places_;  // [candidate] in the grid
  std::optional<Error> refusal_;
};

}  // namespace kvs
