// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tokenizer/text_edges.h"

namespace kvs::inline tokenizer {
namespace {

/// isspace() of the C locale.
bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Returns true if the token at `begin` is plain text because a user wrote it.
bool is_plain(const AddedToken& token, std::size_t begin, std::span<const TextRange> literal) {
  if (!token.is_control) return false;
  const auto next = std::ranges::partition_point(literal, [&](const TextRange& range) { return range.end <= begin; });
  return next != literal.end() && next->begin < begin + token.text.size();
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::stable_sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    return a.text.size() != b.text.size() ? a.text.size() > b.text.size() : a.id < b.id;
  });
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    std::uint32_t node = 0;
    for (const char c : tokens_[i].text) {
      const std::uint64_t edge = (std::uint64_t{node} << 8) | static_cast<unsigned char>(c);
      const auto [step, is_new] = edges_.try_emplace(edge, static_cast<std::uint32_t>(token_of_node_.size()));
      if (is_new) token_of_node_.push_back(-1);
      node = step->second;
    }
    token_of_node_[node] = static_cast<std::int64_t>(i);
    first_bytes_[static_cast<unsigned char>(tokens_[i].text[0])] = true;
  }
}

/// Calls visit(token index) for each token that begins at `at`, shortest first.
template <class Visit>
void AddedTokens::match_at(std::string_view text, std::size_t at, Visit visit) const {
  if (!first_bytes_[static_cast<unsigned char>(text[at])]) return;
  std::uint32_t node = 0;
  for (; at < text.size(); ++at) {
    const auto edge = edges_.find((std::uint64_t{node} << 8) | static_cast<unsigned char>(text[at]));
    if (edge == edges_.end()) return;
    node = edge->second;
    if (token_of_node_[node] >= 0) visit(static_cast<std::size_t>(token_of_node_[node]));
  }
}

void AddedTokens::split_leftmost(std::string_view text, std::span<const TextRange> literal, const Sink& sink) const {
  std::size_t done = 0;  // everything before it has been passed on
  for (std::size_t at = 0; !tokens_.empty() && at < text.size();) {
    const AddedToken* longest = nullptr;
    match_at(text, at, [&](std::size_t token) { longest = &tokens_[token]; });
    if (longest == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + longest->text.size();
    at = end;
    if (longest->is_split || is_plain(*longest, begin, literal)) continue;
    if (longest->single_word && (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) continue;
    if (longest->lstrip) begin = std::max(space_at_end(text.substr(0, begin)), done);
    if (longest->rstrip) end += space_at_start(text.substr(end));
    if (begin > done) sink({text.substr(done, begin - done)});
    sink({text.substr(begin, end - begin), longest->id});
    done = end;
  }
  if (done < text.size()) sink({text.substr(done)});
}

std::vector<AddedTokens::Found> AddedTokens::find_all(std::string_view text, std::span<const TextRange> literal) const {
  std::vector<Found> all;
  for (std::size_t at = 0; !tokens_.empty() && at < text.size(); ++at) {
    match_at(text, at, [&](std::size_t token) {
      if (!is_plain(tokens_[token], at, literal)) all.push_back({at, token});
    });
  }
  return all;
}

void AddedTokens::split_longest_first(std::string_view text, std::span<const TextRange> literal,
                                      const Sink& sink) const {
  std::vector<Found> all = find_all(text, literal);
  // tokens_ is sorted longest first, so a token's index is its precedence.
  std::stable_sort(all.begin(), all.end(), [](const Found& a, const Found& b) { return a.token < b.token; });
  std::map<std::size_t, std::size_t> taken;  // begin -> token
  for (const Found& found : all) {
    const auto next = taken.lower_bound(found.begin);
    const bool hits_next = next != taken.end() && next->first < found.begin + tokens_[found.token].text.size();
    const bool hits_previous =
        next != taken.begin() && std::prev(next)->first + tokens_[std::prev(next)->second].text.size() > found.begin;
    if (!hits_next && !hits_previous) taken.emplace_hint(next, found.begin, found.token);
  }
  std::size_t done = 0;
  for (const auto& [begin, token] : taken) {
    if (begin > done) sink({text.substr(done, begin - done)});
    const AddedToken& added = tokens_[token];
    sink({text.substr(begin, added.text.size()), added.id});
    done = std::max(done, begin + added.text.size());
    while (added.rstrip && done < text.size() && is_ascii_space(text[done])) ++done;
  }
  if (done < text.size()) sink({text.substr(done)});
}

}  // namespace kvs::inline tokenizer
