#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "io/json.h"

namespace kvs {

/// `--set` words NAME=VALUE as an object: numbers, words, and lists of either between commas.
/// @throws Error kUsage for a word of another form or a name that is given twice.
Json parameters_of(std::span<const std::string> settings);

/// A method's parameters, as `--set` or a config's `parameters` give them. A list has a value for each layer, anything
/// else is every layer's.
class Parameters {
 public:
  /// @param where  what messages begin with: "--set", or "FILE: /parameters";  @param code  what refusals throw
  Parameters(const Json& values, std::string where, ErrorCode code, std::size_t layers)
      : values_(&values), where_(std::move(where)), code_(code), layers_(layers) {}

  std::size_t layers() const noexcept { return layers_; }
  /// The layer whose values the getters give.
  void select(std::size_t layer) noexcept { layer_ = layer; }

  /// As a standard below the least value: the parameter has none.
  static constexpr std::size_t kRequired = 0;
  /// Each getter gives `standard` for a name that is not there. @throws Error naming the parameter.
  std::size_t count(std::string_view name, std::size_t standard, std::size_t least);
  double real(std::string_view name, double standard, double least, double most);
  bool on_off(std::string_view name, bool standard);
  /// Numbers below `limit`, whatever the layer: one, a list of them, or the word none.
  std::vector<std::size_t> indices(std::string_view name, std::vector<std::size_t> standard, std::size_t limit);
  /// Index of the word among `words`; `standard` is the first.
  std::size_t choice(std::string_view name, std::span<const std::string_view> words);
  /// @throws Error that says what is wrong with `name`.
  [[noreturn]] void refuse(std::string_view name, const std::string& problem) const;
  /// @throws Error for the first name that no getter has asked for.
  void check_known() const;

 private:
  const Json* find(std::string_view name);

  const Json* values_;
  std::string where_;
  ErrorCode code_;
  std::size_t layers_, layer_ = 0;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace kvs
