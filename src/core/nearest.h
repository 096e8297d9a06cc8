#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kvs {

/// Which of `known` was probably meant by `word`: the one with the least edit distance, upper and lower case alike, if
/// that is at most a third of the word's length; else empty. Cost: the product of the lengths, for each candidate.
std::string_view nearest(std::string_view word, std::span<const std::string> known);

/// "a, b, c", or with another comma.
std::string listed(std::span<const std::string> known, std::string_view comma = ", ");
/// ", did you mean X?" or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string> known);

}  // namespace kvs
