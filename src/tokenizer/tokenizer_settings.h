#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/json.h"

namespace kvs {

/// An added token as Hugging Face's files write it.
struct AddedSpec {
  std::string content;
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = false;

  /// One that a file names by its text alone.
  static AddedSpec special_text(std::string text) { return {.content = std::move(text), .special = true}; }
  friend auto operator<=>(const AddedSpec&, const AddedSpec&) = default;
};
/// @throws Error kInput if `entry` is no object with a `content`.
AddedSpec read_added_spec(const JsonCursor& entry);
/// The same of a tokenizer.json's list, in which a flag that is missing is off.
AddedSpec read_listed_spec(const JsonCursor& entry);

/// What the files beside a tokenizer.json say of the tokenizer that AutoTokenizer (Transformers 5.24) makes of a
/// folder.
struct TokenizerSettings {
  /// Tokens by the ids that a file states; they get these only where their order leads to them.
  std::map<std::uint64_t, AddedSpec> added;
  /// True if tokenizer_config.json has `added_tokens_decoder`: a class that builds its own steps knows no others then.
  bool added_are_all = false;
  /// "bos_token" and its like; nothing for one that a file sets to null.
  std::vector<std::pair<std::string, std::optional<AddedSpec>>> named;
  std::vector<AddedSpec> extra;  // `extra_special_tokens`, or `additional_special_tokens`
  std::vector<AddedSpec> again;  // added after all others
  bool split_special_tokens = false;
  bool add_bos_token = false;  // obeyed where there is no tokenizer.json
  std::optional<bool> add_prefix_space;
  bool legacy = false;
  /// The class that AutoTokenizer takes; empty for the one that takes tokenizer.json as it is.
  std::string class_name;
  std::vector<std::string> notes;

  /// The token of this name, or nullptr.
  const AddedSpec* find_named(std::string_view name) const;
  /// Sets it, at its place if it has one.
  void set_named(std::string_view name, std::optional<AddedSpec> token);
  bool has_named(std::string_view name) const;
  /// In the order in which they are added.
  std::vector<AddedSpec> named_in_order() const;
};

/// Reads tokenizer_config.json, special_tokens_map.json, added_tokens.json and config.json of `folder`, where they are.
/// @param tokenizer  the folder's tokenizer.json, or null if it has none
/// @throws Error kInput if one is malformed.
TokenizerSettings read_tokenizer_settings(const std::filesystem::path& folder, const Json& tokenizer);

}  // namespace kvs
