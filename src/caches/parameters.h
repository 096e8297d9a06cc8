// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "caches/cache_shape.h"
#include "core/error.h"
#include "io/json.h"

namespace kvs::inline caches {

/// Parses words NAME=VALUE into an object. A value is a number, a word or a comma-separated list of them, in which 4-7
/// is four numbers. Slashes separate lists for each layer.
/// @param where  prefix of error messages
/// @throws Error kUsage for a word of another form or a repeated name.
Json parse_settings(std::span<const std::string> settings, const std::string& where);

/// A source of parameters.
struct ParameterSource {
  Json values;        // an object
  std::string where;  // prefix of a name in messages: "FILE: /parameters/"
  ErrorCode code;     // of errors
};

/// One parameter as declared by its getter call; the schema and --help use it.
struct ParameterSpec {
  enum class Kind { kCount, kReal, kReals, kWord, kIndices };

  std::string name;
  std::string help;  // effect, half a sentence
  Kind kind;
  Json default_value = {};              // null: required
  double least = 0, most = 0;           // for numbers
  std::vector<std::string> words = {};  // kWord
  bool per_layer = true;                // a list gives one value per layer
  std::string_view default_from = {};   // parameter whose value is the default; empty: `default_value`
};

/// A method's parameters. Reading a parameter declares it: one getter call holds its name, a line of help, kind,
/// default and bounds. The help text, the schema, the check of a config and its writer use that declaration.
///
/// `layers` selects the layers that the method is used in (default: all); the others keep everything. A list has a
/// value for each selected layer; any other value is used for every layer.
class Parameters {
 public:
  /// As a default (below the minimum), marks a parameter as required.
  static constexpr std::size_t kRequired = 0;

  /// @param sources  later sources override earlier ones; at least one
  /// @throws Error for `layers`, like the getters
  Parameters(std::vector<ParameterSource> sources, std::size_t layers)
      : Parameters(std::move(sources), layers, all_below(layers)) {}
  /// For the layers with a cache of their own, which are `all` that can be selected.
  Parameters(std::vector<ParameterSource> sources, const CacheShape& shape);
  /// Gives every parameter its default or, without one, its minimum.
  static Parameters description(std::size_t layers);

  /// Number of layers of the model.
  std::size_t layers() const noexcept { return layers_; }
  /// Selects the layer whose values the getters return. @return true if `layers` contains it
  bool select(std::size_t layer);
  /// From now on the getters return the values that all layers share.
  void select_all() noexcept { per_layer_ = false; }

  /// Each getter returns the default for a missing name. @throws Error naming the parameter.
  /// @param more  added to `least` by other parameters
  std::size_t count(std::string_view name, std::string_view help, std::size_t default_value, std::size_t least,
                    std::size_t more = 0);
  double real(std::string_view name, std::string_view help, double default_value, double least, double most);
  /// Reads values for heads: one number for all heads, or one per head. A list gives one value per layer.
  std::vector<double> values(std::string_view name, std::string_view help, double default_value, double least,
                             double most, std::size_t heads);
  bool on_off(std::string_view name, std::string_view help, bool default_value);
  /// Reads numbers below `limit`, independent of the layer: one, a list, or the word none. A list of lists has one list
  /// for each layer.
  /// @param default_from  name of the parameter whose value is the default, if there is one
  std::vector<std::size_t> indices(std::string_view name, std::string_view help, std::vector<std::size_t> default_value,
                                   std::size_t limit, std::string_view default_from = {});
  /// Returns the index of the word in `words`; the default is the first.
  std::size_t choice(std::string_view name, std::string_view help, std::span<const std::string_view> words);

  /// @throws Error with `problem` and the name.
  [[noreturn]] void refuse(std::string_view name, const std::string& problem) const;
  /// @throws Error for the first name that no getter has read.
  void check_known() const;

  /// Declarations of the parameters read, in order.
  const std::vector<ParameterSpec>& specs() const noexcept { return specs_; }
  /// Returns the values read, defaults included: with any method, as `parameters` of a config.
  Json resolved() const;

 private:
  Parameters(std::vector<ParameterSource> sources, std::size_t layers, std::vector<std::size_t> selectable);
  static std::vector<std::size_t> all_below(std::size_t count);
  void note(ParameterSpec spec);
  const Json* find(std::string_view name, bool whole_lists = false) const;
  void give(std::string_view name, Json value);

  std::vector<ParameterSource> sources_;
  std::size_t layers_;
  bool describing_ = false, per_layer_ = true;
  std::vector<std::size_t> chosen_;  // ascending
  std::size_t position_ = 0;         // of the selected layer in chosen_
  std::vector<ParameterSpec> specs_;
  std::map<std::string, std::vector<Json>, std::less<>> given_;  // [position], or one for all
};

/// Returns the count that `settings` give for all layers, otherwise the default. Used to compute sizes that a budget
/// sets (Method::settings_for_share).
/// @throws Error kUsage for anything but one whole number, such as a list by layer
std::size_t shared_count(const Json& settings, const std::string& name, std::size_t default_value);

/// Method::settings_for_share of methods whose only size is `cache_size`, in tokens.
Json cache_size_for_share(double share, std::size_t tokens, const Json& settings);

}  // namespace kvs::inline caches
