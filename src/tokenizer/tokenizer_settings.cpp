// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "core/error.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/python_json.h"
#include "tokenizer/pipeline_tokenizer.h"
#include "tokenizer/tokenizer_class.h"

namespace kvs::inline tokenizer {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kNamed{"bos_token", "eos_token", "unk_token", "sep_token",
                                                 "pad_token", "cls_token", "mask_token"};

bool is_named(std::string_view key) { return std::ranges::find(kNamed, key) != kNamed.end(); }

/// A JSON object of the folder; empty if the file does not exist.
class FolderFile {
 public:
  FolderFile(const fs::path& folder, const char* name) : path_(folder / name), document_(Json::object()) {
    constexpr std::size_t kLimit = 16UL << 20;
    if (is_there(path_))
      document_ = parse_python_json(read_text_file(path_, kLimit), path_.string(), {.bytes = kLimit});
    if (!document_.is_object()) root().fail("an object");
  }

  JsonCursor root() const { return {document_, path_.string()}; }
  std::string text(std::string_view key) const {
    return root().has(key) && root().at(key).value().is_string() ? root().at(key).string() : std::string();
  }
  bool flag(std::string_view key) const { return root().has(key) && root().at(key).boolean(); }

 private:
  fs::path path_;
  Json document_;
};

/// Reads a token that a file gives by its text or as an object.
AddedSpec named_token(const JsonCursor& token) {
  if (token.value().is_string()) return AddedSpec::special_text(token.string());
  AddedSpec spec = read_added_spec(token);
  spec.special = true;
  return spec;
}

class SettingsReader {
 public:
  SettingsReader(const fs::path& folder, const Json& tokenizer)
      : folder_(folder),
        tokenizer_(tokenizer),
        config_(folder, "tokenizer_config.json"),
        model_(folder, "config.json") {}

  TokenizerSettings read() {
    const JsonCursor config = config_.root();
    read_named(config);
    read_extra(config, "additional_special_tokens");
    if (has_tokens(config, "extra_special_tokens")) settings_.extra.clear();
    read_extra(config, "extra_special_tokens");
    read_switches(config);
    if (config.has("added_tokens_decoder")) {
      read_decoder(config.at("added_tokens_decoder"));
    } else {
      read_legacy();
    }
    settings_.class_name = auto_tokenizer_class({.named = config_.text("tokenizer_class"),
                                                 .of_model = model_.text("tokenizer_class"),
                                                 .model_type = model_.text("model_type")},
                                                tokenizer_);
    return std::move(settings_);
  }

 private:
  static bool has_tokens(const JsonCursor& root, std::string_view key) {
    return root.has(key) && !root.at(key).value().empty();
  }

  /// Reads a list of tokens, or an object of named tokens.
  void read_extra(const JsonCursor& root, std::string_view key) {
    if (!root.has(key)) return;
    const JsonCursor tokens = root.at(key);
    if (tokens.value().is_object()) {
      for (const std::string& name : tokens.keys()) settings_.set_named(name, named_token(tokens.at(name)));
      return;
    }
    for (std::size_t i = 0; i < tokens.array_size(); ++i) {
      const JsonCursor token = tokens.at(i);
      settings_.extra.push_back(token.value().is_string() ? AddedSpec::special_text(token.string())
                                                          : read_added_spec(token));
    }
  }

  /// Reads keys that end in _token: first those of every tokenizer, in fixed order, then those of this one.
  void read_named(const JsonCursor& root) {
    for (const std::string_view name : kNamed)
      if (root.value().contains(name)) read_one_named(root, std::string(name));
    for (const std::string& key : root.keys())
      if (key.ends_with("_token") && !is_named(key) && (root.at(key).value().is_string() || is_token(root.at(key))))
        read_one_named(root, key);
  }

  static bool is_token(const JsonCursor& value) { return value.value().is_object() && value.has("content"); }

  void read_one_named(const JsonCursor& root, const std::string& key) {
    settings_.set_named(key, root.has(key) ? std::optional(named_token(root.at(key))) : std::nullopt);
  }

  void read_switches(const JsonCursor& config) {
    settings_.split_special_tokens = config_.flag("split_special_tokens");
    settings_.add_bos_token = config_.flag("add_bos_token");
    if (config.has("add_prefix_space")) settings_.add_prefix_space = config.at("add_prefix_space").boolean();
    settings_.legacy = config_.flag("legacy");
    if (config.has("auto_map"))
      settings_.notes.emplace_back(
          "the tokenizer names code of its own (auto_map), which does not run: ids may differ");
  }

  void read_decoder(const JsonCursor& decoder) {
    settings_.added_are_all = true;
    if (!decoder.value().is_object()) decoder.fail("an object of ids and tokens");
    for (const auto& [key, value] : decoder.value().items()) {  // at() would search the object each time
      std::uint64_t id = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      const JsonCursor token(value, decoder.place(), "/" + printable(key, 100));
      if (error != std::errc() || end != key.data() + key.size() || id >= kMaxVocabulary)
        token.fail("an id as its key");
      settings_.added[id] = read_added_spec(token);
    }
  }

  /// Reads the files of versions before `added_tokens_decoder`, and the list of tokenizer.json itself.
  void read_legacy() {
    const FolderFile map(folder_, "special_tokens_map.json");
    read_extra(map.root(), "extra_special_tokens");
    read_named(map.root());
    read_added(FolderFile(folder_, "added_tokens.json"));
    read_own();
    const auto names_extra = [](const JsonCursor& root) { return root.value().contains("extra_special_tokens"); };
    if (!names_extra(config_.root()) && !names_extra(map.root()) &&
        !config_.root().value().contains("additional_special_tokens"))
      read_extra(map.root(), "additional_special_tokens");
  }

  void read_added(const FolderFile& added) {
    const JsonCursor root = added.root();
    for (const auto& [text, value] : root.value().items()) {
      const bool is_special = is_special_text(text);
      const JsonCursor id(value, root.place(), "/" + printable(text, 100));
      settings_.added[id.unsigned_integer(kMaxVocabulary - 1)] = {
          .content = text, .normalized = !is_special, .special = is_special};
    }
  }

  void read_own() {
    if (!tokenizer_.is_object() || !tokenizer_.contains("added_tokens")) return;
    const JsonCursor own(tokenizer_.at("added_tokens"), (folder_ / "tokenizer.json").string(), "/added_tokens");
    if (own.is_null()) return;
    for (std::size_t i = 0; i < own.array_size(); ++i)
      settings_.added[own.at(i).at("id").unsigned_integer(kMaxVocabulary - 1)] = read_listed_spec(own.at(i));
  }

  bool is_special_text(std::string_view text) const {
    const auto has_text = [&](const AddedSpec& token) { return token.content == text; };
    return std::ranges::any_of(settings_.extra, has_text) || std::ranges::any_of(settings_.named, [&](const auto& row) {
             return row.second && is_named(row.first) && has_text(*row.second);
           });
  }

  fs::path folder_;
  const Json& tokenizer_;
  FolderFile config_, model_;
  TokenizerSettings settings_;
};

}  // namespace

AddedSpec read_added_spec(const JsonCursor& entry) {
  const auto flag = [&](std::string_view key, bool otherwise) {
    return entry.has(key) ? entry.at(key).boolean() : otherwise;
  };
  const bool special = flag("special", false);
  return {.content = entry.at("content").string(),
          .single_word = flag("single_word", false),
          .lstrip = flag("lstrip", false),
          .rstrip = flag("rstrip", false),
          .normalized = flag("normalized", !special),
          .special = special};
}

AddedSpec read_listed_spec(const JsonCursor& entry) {
  AddedSpec spec = read_added_spec(entry);
  spec.normalized = spec.normalized && entry.has("normalized");
  return spec;
}

const AddedSpec* TokenizerSettings::find_named(std::string_view name) const {
  const auto row = std::ranges::find(named, name, [](const auto& entry) { return std::string_view(entry.first); });
  return row != named.end() && row->second ? &*row->second : nullptr;
}

bool TokenizerSettings::has_named(std::string_view name) const {
  return std::ranges::any_of(named, [&](const auto& entry) { return entry.first == name; });
}

void TokenizerSettings::set_named(std::string_view name, std::optional<AddedSpec> token) {
  const auto row = std::ranges::find(named, name, [](const auto& entry) { return std::string_view(entry.first); });
  if (row != named.end()) {
    row->second = std::move(token);
  } else {
    named.emplace_back(name, std::move(token));
  }
}

std::vector<AddedSpec> TokenizerSettings::named_in_order() const {
  std::vector<AddedSpec> tokens;
  const auto add = [&](const auto& wanted) {
    for (const auto& [name, token] : named)
      if (token && wanted(name)) tokens.push_back(*token);
  };
  for (const std::string_view first : kNamed) add([&](const std::string& name) { return name == first; });
  add([](const std::string& name) { return !is_named(name); });
  return tokens;
}

TokenizerSettings read_tokenizer_settings(const fs::path& folder, const Json& tokenizer) {
  return SettingsReader(folder, tokenizer).read();
}

}  // namespace kvs::inline tokenizer
