// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/added_vocabulary.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace kvs::inline tokenizer {

bool AddedVocabulary::has_text(std::string_view text) const {
  return by_id_.contains(tokens_.find(text)) && by_id_.at(tokens_.find(text)).content == text;
}

bool AddedVocabulary::has(const AddedSpec& token) const {
  return has_text(token.content) && by_id_.at(tokens_.find(token.content)) == token;
}

std::int32_t AddedVocabulary::next_id() const {
  const std::int32_t highest = by_id_.empty() ? -1 : by_id_.rbegin()->first, size = static_cast<std::int32_t>(size_);
  return std::max(highest + 1, size);
}

std::int32_t AddedVocabulary::add(const AddedSpec& token) {
  if (token.content.empty()) return -1;
  if (token.special) special_.insert(token.content);
  std::int32_t id = tokens_.find(token.content);
  if (id < 0) id = next_id();
  const auto index = static_cast<std::size_t>(id);
  if (index >= tokens_.known.size()) tokens_.resize(index + 1);
  tokens_.known[index] = true;
  tokens_.ids_by_text.insert_or_assign(token.content, id);
  tokens_.bytes[index] = token.content;
  by_id_.insert_or_assign(id, token);
  return id;
}

std::string AddedVocabulary::other_id_note(const AddedSpec& token, std::uint64_t stated, std::int32_t id) {
  if (id < 0 || stated == static_cast<std::uint64_t>(id)) return {};
  return "the added token \"" + printable(token.content, 100) + "\" has id " + std::to_string(id) +
         ", as the package tokenizers gives it; the file says " + std::to_string(stated);
}

std::vector<std::string> AddedVocabulary::add_all(const TokenizerSettings& settings) {
  const std::vector<AddedSpec> named = settings.named_in_order();
  std::vector<std::string> notes;
  for (const auto& [stated, entry] : settings.added) {
    AddedSpec token = entry;
    const bool is_new = !has(token);
    token.special = token.special || std::ranges::find(named, token.content, &AddedSpec::content) != named.end();
    const std::string note = other_id_note(token, stated, add(token));
    if (is_new && !note.empty()) notes.push_back(note);
  }
  std::vector<AddedSpec> more;  // of equal texts, the last distinct token decides
  std::set<AddedSpec> seen;
  for (const std::vector<AddedSpec>* list : {&named, &settings.extra})
    for (const AddedSpec& token : *list)
      if (!has_text(token.content) && seen.insert(token).second) more.push_back(token);
  for (const AddedSpec& token : more) add(token);
  for (const AddedSpec& token : settings.again) add(token);
  return notes;
}

std::vector<AddedToken> AddedVocabulary::tokens(bool normalized, bool split_special) const {
  std::vector<AddedToken> tokens;
  for (const auto& [id, spec] : by_id_) {
    if (spec.normalized != normalized) continue;
    tokens.push_back({.text = spec.content,
                      .id = id,
                      .single_word = spec.single_word,
                      .lstrip = spec.lstrip,
                      .rstrip = spec.rstrip,
                      .is_split = split_special && special_.contains(spec.content),
                      .is_control = special_.contains(spec.content)});
  }
  return tokens;
}

Json AddedVocabulary::json() const {
  Json list = Json::array();
  for (const auto& [id, spec] : by_id_)
    list.push_back({{"id", id},
                    {"content", spec.content},
                    {"single_word", spec.single_word},
                    {"lstrip", spec.lstrip},
                    {"rstrip", spec.rstrip},
                    {"normalized", spec.normalized},
                    {"special", spec.special}});
  return list;
}

}  // namespace kvs::inline tokenizer
