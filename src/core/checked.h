// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace kvs::inline core {

/// Returns a · b, or nullopt if the product does not fit in 64 bits. Used on every count and size that a file states.
constexpr std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b) noexcept {
  if (a != 0 && b > std::numeric_limits<std::uint64_t>::max() / a) return std::nullopt;
  return a * b;
}

constexpr std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) noexcept {
  if (b > std::numeric_limits<std::uint64_t>::max() - a) return std::nullopt;
  return a + b;
}

/// Parses all of `text` as an integer. Returns nullopt for "", "1e3", " 1", "+1" and on overflow.
template <std::integral T>
std::optional<T> parse_integer(std::string_view text) noexcept {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Parses all of `text` as a finite decimal number. Returns nullopt for "nan", "inf", "" and "1x".
inline std::optional<double> parse_real(std::string_view text) noexcept {
  double value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!(value - value == 0)) return std::nullopt;
  return value;
}

}  // namespace kvs::inline core
