#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvs {

/// The bytes that a byte-level token text stands for, or nothing if it holds a character outside GPT-2's 256.
/// Source: Radford et al. (2019), openai/gpt-2 src/encoder.py, bytes_to_unicode: printable Latin-1 bytes stand for
/// themselves, the 68 others for U+0100 onwards in order.
std::optional<std::string> bytes_of_token(std::string_view token);

/// The character that stands for a byte in such a text.
std::string stand_in_of_byte(unsigned char byte);

/// "<0x0A>" for byte 10: how SentencePiece's vocabularies name the token of a byte that stands for itself.
std::string name_of_byte_token(unsigned char byte);
/// The byte that such a name means, or nothing.
std::optional<unsigned char> byte_of_token_name(std::string_view name);

/// U+2581, which SentencePiece's vocabularies write for a space.
inline constexpr std::string_view kSpaceMarker = "\xE2\x96\x81";
/// What a token text of such a vocabulary stands for: a byte if it names one, else itself with spaces for the markers.
std::string bytes_of_marked_token(std::string_view token);

}  // namespace kvs
