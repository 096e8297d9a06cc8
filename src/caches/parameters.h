#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "io/json.h"

namespace kvs {

/// Words NAME=VALUE as an object: numbers, words, and lists of either between commas, in which 4-7 is four numbers;
/// slashes part one list for each layer.
/// @param where  the culprit that messages name
/// @throws Error kUsage for a word of another form or a name that is given twice.
Json parse_settings(std::span<const std::string> settings, const std::string& where);

/// Where parameters stand.
struct ParameterSource {
  Json values;        // an object
  std::string where;  // what messages put before a name: "FILE: /parameters/"
  ErrorCode code;     // what refusals throw
};

/// One parameter as its getter describes it: what a schema and --help say of it.
struct ParameterSpec {
  enum class Kind { kCount, kReal, kReals, kWord, kIndices };

  std::string name;
  std::string help;  // what it sets, half a sentence
  Kind kind;
  Json default_value = {};              // null: it is required
  double least = 0, most = 0;           // of numbers
  std::vector<std::string> words = {};  // kWord
  bool per_layer = true;                // a list gives each layer its own value
  std::string_view default_from = {};   // a parameter whose value it has unless it is given; empty: `standard`
};

/// A method's parameters. Reading them is what declares them: the name, a line of help, the kind, the default and the
/// bounds stand in one call of a getter, which --help, the schema, the check of a config and its writer share.
///
/// `layers` names the layers that the method is for (all of them); the others keep everything. A list has a value for
/// each of these, anything else is every layer's.
class Parameters {
 public:
  /// As a standard below the least value: the parameter has none.
  static constexpr std::size_t kRequired = 0;

  /// @param sources  a later one overrides those before it; at least one
  /// @throws Error as the getters, for `layers`
  Parameters(std::vector<ParameterSource> sources, std::size_t layers);
  /// Gives every parameter its standard or, where it has none, its least value.
  static Parameters description(std::size_t layers);

  /// Of the model.
  std::size_t layers() const noexcept { return layers_; }
  /// The layer whose values the getters give. @return whether `layers` names it
  bool select(std::size_t layer);
  /// From here on the getters give what all layers share.
  void select_all() noexcept { per_layer_ = false; }

  /// Each getter gives `standard` for a name that is not there. @throws Error naming the parameter.
  /// @param more  what other parameters add to `least`
  std::size_t count(std::string_view name, std::string_view help, std::size_t default_value, std::size_t least,
                    std::size_t more = 0);
  double real(std::string_view name, std::string_view help, double default_value, double least, double most);
  /// For each head: a number for all of them, or one for each; a list is still one value for each layer.
  std::vector<double> values(std::string_view name, std::string_view help, double default_value, double least,
                             double most, std::size_t heads);
  bool on_off(std::string_view name, std::string_view help, bool default_value);
  /// Numbers below `limit`, whatever the layer: one, a list of them, or the word none. A list of lists has one for each
  /// layer.
  /// @param default_from  the parameter that `standard` is the value of, if it is one's
  std::vector<std::size_t> indices(std::string_view name, std::string_view help, std::vector<std::size_t> default_value,
                                   std::size_t limit, std::string_view default_from = {});
  /// Index of the word among `words`; `standard` is the first.
  std::size_t choice(std::string_view name, std::string_view help, std::span<const std::string_view> words);

  /// @throws Error that says what is wrong with `name`.
  [[noreturn]] void refuse(std::string_view name, const std::string& problem) const;
  /// @throws Error for the first name that no getter has asked for.
  void check_known() const;

  /// What the getters were asked for, in that order.
  const std::vector<ParameterSpec>& specs() const noexcept { return specs_; }
  /// What the getters gave, standards included: with any method, as `parameters` of a config.
  Json resolved() const;

 private:
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

/// The count that `settings` give for all layers, else `standard`: what a method reckons a size with that a budget sets
/// (Method::settings_for_share).
/// @throws Error kUsage for what is no one whole number, such as a list by layer
std::size_t shared_count(const Json& settings, const std::string& name, std::size_t default_value);

}  // namespace kvs
