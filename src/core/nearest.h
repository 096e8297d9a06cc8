// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kvs::inline core {

/// Returns the word of `known` with the smallest case-insensitive edit distance to `word` if that distance is at most a
/// third of the length of `word`. Otherwise returns the first that begins with `word` if that has four letters, else an
/// empty view. Cost: the product of the lengths, for each candidate.
std::string_view nearest(std::string_view word, std::span<const std::string> known);

/// Joins `known` by `comma`: "a, b, c".
std::string listed(std::span<const std::string> known, std::string_view comma = ", ");
/// Returns ", did you mean X?", or an empty string if no known word is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> known);

}  // namespace kvs::inline core
