// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/utf8.h"
#include "tokenizer/tokenizer_json.h"

namespace kvs::inline tokenizer {
namespace {

template <class Value, std::size_t N>
Value named(const std::array<std::pair<std::string_view, Value>, N>& table, const JsonCursor& at, std::string_view what,
            const TokenizerJson& file) {
  const std::string& name = at.string();
  const auto row = std::find_if(table.begin(), table.end(), [&](const auto& known) { return known.first == name; });
  if (row == table.end()) {
    std::string known;
    for (const auto& [other, value] : table) known += (known.empty() ? "" : ", ") + std::string(other);
    file.unsupported(at, what, name, known);
  }
  return row->second;
}

constexpr std::array<std::pair<std::string_view, UnicodeForm>, 4> kForms{{{"NFC", UnicodeForm::kNfc},
                                                                          {"NFD", UnicodeForm::kNfd},
                                                                          {"NFKC", UnicodeForm::kNfkc},
                                                                          {"NFKD", UnicodeForm::kNfkd}}};
constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors{{
    {"Removed", SplitBehavior::kRemoved},
    {"Isolated", SplitBehavior::kIsolated},
    {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
    {"MergedWithNext", SplitBehavior::kMergedWithNext},
    {"Contiguous", SplitBehavior::kContiguous},
}};
constexpr std::array<std::pair<std::string_view, PrependScheme>, 3> kSchemes{
    {{"never", PrependScheme::kNever}, {"first", PrependScheme::kFirst}, {"always", PrependScheme::kAlways}}};

class StepReader {
 public:
  explicit StepReader(const TokenizerJson& file) : file_(file) {}

  JsonSteps read(const JsonCursor& root) {
    if (root.has("normalizer")) read_normalizer(root.at("normalizer"));
    if (root.has("pre_tokenizer")) read_pre_tokenizer(root.at("pre_tokenizer"), true);
    return std::move(steps_);
  }

 private:
  void add(std::unique_ptr<const Normalizer> step) { steps_.normalizers.push_back(std::move(step)); }
  void add(std::unique_ptr<const SplitStep> step) { steps_.splits.push_back(std::move(step)); }

  void read_normalizer(const JsonCursor& normalizer) {
    const std::string& type = normalizer.at("type").string();
    if (type == "Sequence") {
      const JsonCursor list = normalizer.at("normalizers");
      for (std::size_t i = 0; i < list.array_size(); ++i) read_normalizer(list.at(i));
    } else if (type == "Lowercase") {
      add(make_lowercase());
    } else if (type == "Prepend") {
      add(make_prepend(normalizer.at("prepend").string()));
    } else if (type == "Replace") {
      read_replace(normalizer);
    } else if (type == "Strip") {
      const bool left = normalizer.at("strip_left").boolean();
      strips_left_ = strips_left_ || left;
      add(make_strip(left, normalizer.at("strip_right").boolean()));
    } else {
      const auto form = std::ranges::find(kForms, type, [](const auto& row) { return row.first; });
      if (form == kForms.end()) {
        file_.unsupported(normalizer.at("type"), "normalizer", type,
                          "Sequence, Lowercase, Prepend, Replace, Strip, NFC, NFD, NFKC, NFKD");
      }
      add(make_unicode_normalizer(form->second));
    }
  }

  void read_replace(const JsonCursor& normalizer) {
    const std::string& content = normalizer.at("content").string();
    const JsonCursor pattern = normalizer.at("pattern");
    if (pattern.has("String")) {
      add(make_replace(text_of(pattern.at("String")), content));
    } else {
      add(make_regex_replace(known_regex(pattern.at("Regex"), "replace pattern"), content));
    }
  }

  static const std::string& text_of(const JsonCursor& cursor) {
    if (cursor.string().empty()) cursor.fail("a text that is not empty");
    return cursor.string();
  }

  Regex known_regex(const JsonCursor& cursor, std::string_view what) const {
    const std::optional<std::string_view> known = find_known_pattern(cursor.string());
    if (!known) file_.unsupported(cursor, what, cursor.string(), "those that docs/tokenizers.md lists");
    return Regex(*known);
  }

  void read_pre_tokenizer(const JsonCursor& step, bool is_last) {
    const std::string& type = step.at("type").string();
    if (type == "Sequence") {
      const JsonCursor list = step.at("pretokenizers");
      const std::size_t size = list.array_size();
      for (std::size_t i = 0; i < size; ++i) read_pre_tokenizer(list.at(i), is_last && i + 1 == size);
    } else if (type == "ByteLevel") {
      // After this step the text is in the byte alphabet, which later steps would have to know.
      if (!is_last) file_.unsupported(step.at("type"), "a pre-tokenizer after", type, "that one as the last");
      steps_.has_byte_level = true;
      if (step.at("add_prefix_space").boolean()) add(make_prefix_space());
      if (!step.has("use_regex") || step.at("use_regex").boolean()) add(make_regex_split(Regex(kGpt2Pattern)));
    } else if (type == "Digits") {
      const bool single = TokenizerJson::is_true(step, "individual_digits");
      add(make_regex_split(Regex(single ? kDigitPattern : R"(\p{N}+)", false, Unicode::k17)));
    } else if (type == "Split") {
      read_split(step);
    } else if (type == "Metaspace") {
      read_metaspace(step);
    } else {
      file_.unsupported(step.at("type"), "pre-tokenizer", type, "Sequence, ByteLevel, Digits, Split, Metaspace");
    }
  }

  void read_split(const JsonCursor& step) {
    const SplitBehavior behavior = named(kBehaviors, step.at("behavior"), "split behavior", file_);
    const JsonCursor pattern = step.at("pattern");
    const bool invert = TokenizerJson::is_true(step, "invert");
    Regex regex = pattern.has("String") ? Regex(text_of(pattern.at("String")), true)
                                        : known_regex(pattern.at("Regex"), "split pattern");
    add(make_regex_split(std::move(regex), behavior, invert));
  }

  void read_metaspace(const JsonCursor& step) {
    const JsonCursor marker = step.at("replacement");
    if (marker.string().empty() || utf8_length(marker.string()) != marker.string().size()) {
      marker.fail("one character");
    }
    PrependScheme scheme = PrependScheme::kAlways;
    if (step.has("prepend_scheme")) {
      scheme = named(kSchemes, step.at("prepend_scheme"), "prepend scheme", file_);
    }
    // The older form of the scheme.
    if (step.has("add_prefix_space") && !step.at("add_prefix_space").boolean() && scheme != PrependScheme::kNever) {
      step.at("add_prefix_space").fail("what prepend_scheme says");
    }
    if (scheme == PrependScheme::kFirst && strips_left_) {
      file_.unsupported(step.at("prepend_scheme"), "Strip and prepend scheme", "first", "never, always");
    }
    add(make_metaspace(marker.string(), scheme, !step.has("split") || step.at("split").boolean()));
  }

  const TokenizerJson& file_;
  JsonSteps steps_;
  bool strips_left_ = false;
};

}  // namespace

JsonSteps read_tokenizer_steps(const JsonCursor& root, const TokenizerJson& file) {
  return StepReader(file).read(root);
}

}  // namespace kvs::inline tokenizer
