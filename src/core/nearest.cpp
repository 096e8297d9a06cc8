// SPDX-License-Identifier: Apache-2.0
#include "core/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace kvs::inline core {
namespace {

char small(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

/// Ignores case.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (small(a[i]) == small(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string> known) {
  constexpr std::size_t kLongest = 64;  // longer words are not typing errors
  constexpr std::size_t kShortestBeginning = 4;
  if (word.size() > kLongest) return {};
  std::size_t best = word.size() / 3 + 1;
  std::string_view found;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= best) continue;
    best = distance;
    found = candidate;
  }
  if (found.empty() && word.size() >= kShortestBeginning) {
    const auto longer = std::ranges::find_if(known, [&](const std::string& one) { return one.starts_with(word); });
    if (longer != known.end()) return *longer;
  }
  return found;
}

std::string listed(std::span<const std::string> known, std::string_view comma) {
  std::string list;
  for (const std::string& one : known) {
    if (!list.empty()) list += comma;
    list += one;
  }
  return list;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> known) {
  const std::string_view found = nearest(word, known);
  return found.empty() ? "" : ", did you mean " + std::string(found) + "?";
}

}  // namespace kvs::inline core
