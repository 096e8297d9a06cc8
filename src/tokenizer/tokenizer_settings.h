// SPDX-License-Identifier: Apache-2.0
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

namespace kvs::inline tokenizer {

/// An added token as Hugging Face's files write it.
struct AddedSpec {
  std::string content;
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = false;

  /// A token that a file gives by its text alone.
  static AddedSpec special_text(std::string text) { return {.content = std::move(text), .special = true}; }
  friend auto operator<=>(const AddedSpec&, const AddedSpec&) = default;
};
/// @throws Error kInput if `entry` is not an object with `content`
AddedSpec read_added_spec(const JsonCursor& entry);
/// Reads an entry of a tokenizer.json's list. A missing flag is off.
AddedSpec read_listed_spec(const JsonCursor& entry);

/// Tokenizer settings from the files next to a tokenizer.json, as AutoTokenizer (Transformers 5.24) reads a folder.
struct TokenizerSettings {
  /// Tokens by the ids that a file states. A token gets the stated id only if the order of additions leads to it.
  std::map<std::uint64_t, AddedSpec> added;
  /// True if tokenizer_config.json has `added_tokens_decoder`: a class with its own steps then uses no other tokens.
  bool added_are_all = false;
  /// "bos_token" and similar keys; nullopt if a file sets the key to null.
  std::vector<std::pair<std::string, std::optional<AddedSpec>>> named;
  std::vector<AddedSpec> extra;  // `extra_special_tokens`, or `additional_special_tokens`
  std::vector<AddedSpec> again;  // added after all others
  bool split_special_tokens = false;
  bool add_bos_token = false;  // used if there is no tokenizer.json
  std::optional<bool> add_prefix_space;
  bool legacy = false;
  /// The class that AutoTokenizer uses; empty for the one that uses tokenizer.json unchanged.
  std::string class_name;
  std::vector<std::string> notes;

  /// Returns the token of this name, or nullptr.
  const AddedSpec* find_named(std::string_view name) const;
  /// Sets a token; an existing name keeps its position.
  void set_named(std::string_view name, std::optional<AddedSpec> token);
  bool has_named(std::string_view name) const;
  /// Returns the tokens in the order in which they are added.
  std::vector<AddedSpec> named_in_order() const;
};

/// Reads tokenizer_config.json, special_tokens_map.json, added_tokens.json and config.json of `folder`, where they
/// exist.
/// @param tokenizer  the folder's tokenizer.json, or null if it has none
/// @throws Error kInput if a file is malformed.
TokenizerSettings read_tokenizer_settings(const std::filesystem::path& folder, const Json& tokenizer);

}  // namespace kvs::inline tokenizer
