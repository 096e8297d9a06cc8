// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/byte_alphabet.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "core/utf8.h"

namespace kvs::inline tokenizer {
namespace {

constexpr std::size_t kCharacters = 0x144;  // 256 + the 68 bytes that are not printable

constexpr bool is_printable_byte(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

constexpr std::array<unsigned, 256> character_of_byte() {
  std::array<unsigned, 256> table{};
  unsigned next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) table[byte] = is_printable_byte(static_cast<int>(byte)) ? byte : next++;
  return table;
}

constexpr std::array<int, kCharacters> byte_of_character() {
  std::array<int, kCharacters> table{};
  table.fill(-1);
  const auto characters = character_of_byte();
  for (std::size_t byte = 0; byte < characters.size(); ++byte) table[characters[byte]] = static_cast<int>(byte);
  return table;
}

}  // namespace

std::optional<std::string> bytes_of_token(std::string_view token) {
  static constexpr auto kTable = byte_of_character();
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const std::size_t length = utf8_length(token.substr(at));
    if (length == 0 || length > 2) return std::nullopt;
    const auto lead = static_cast<unsigned char>(token[at]);
    const unsigned character =
        length == 1 ? lead : ((lead & 0x1FU) << 6) | (static_cast<unsigned char>(token[at + 1]) & 0x3FU);
    if (character >= kCharacters || kTable[character] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kTable[character]));
    at += length;
  }
  return bytes;
}

std::string stand_in_of_byte(unsigned char byte) {
  static constexpr auto kTable = character_of_byte();
  const unsigned character = kTable[byte];
  if (character < 0x80) return {static_cast<char>(character)};
  return {static_cast<char>(0xC0U | (character >> 6)), static_cast<char>(0x80U | (character & 0x3FU))};
}

std::string name_of_byte_token(unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15U], '>'};
}

std::optional<unsigned char> byte_of_token_name(std::string_view name) {
  constexpr std::size_t kLength = 6, kDigitsAt = 3;
  if (name.size() != kLength || !name.starts_with("<0x") || name.back() != '>') return std::nullopt;
  unsigned byte = 0;
  const char* last = name.data() + kLength - 1;
  const auto [end, error] = std::from_chars(name.data() + kDigitsAt, last, byte, 16);
  if (error != std::errc{} || end != last || name_of_byte_token(static_cast<unsigned char>(byte)) != name) {
    return std::nullopt;
  }
  return static_cast<unsigned char>(byte);
}

std::string bytes_of_marked_token(std::string_view token) {
  if (const auto byte = byte_of_token_name(token)) return std::string(1, static_cast<char>(*byte));
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const bool is_space = token.substr(at).starts_with(kSpaceMarker);
    bytes.push_back(is_space ? ' ' : token[at]);
    at += is_space ? kSpaceMarker.size() : 1;
  }
  return bytes;
}

}  // namespace kvs::inline tokenizer
