// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvs::inline tokenizer {

/// Decodes a byte-level token text to bytes; nullopt if it holds a character outside GPT-2's 256.
/// Source: Radford et al. (2019), openai/gpt-2 src/encoder.py, bytes_to_unicode: printable Latin-1 bytes represent
/// themselves; U+0100 and following represent the 68 others in order.
std::optional<std::string> bytes_of_token(std::string_view token);

/// Returns the character that represents a byte in such a text.
std::string stand_in_of_byte(unsigned char byte);

/// Returns "<0x0A>" for byte 10: the name of a byte's token in SentencePiece's vocabularies.
std::string name_of_byte_token(unsigned char byte);
/// Returns the byte of such a name, or nullopt.
std::optional<unsigned char> byte_of_token_name(std::string_view name);

/// U+2581, which represents a space in SentencePiece's vocabularies.
inline constexpr std::string_view kSpaceMarker = "\xE2\x96\x81";
/// Decodes a token text of such a vocabulary: the byte that it names, or the text with spaces for markers.
std::string bytes_of_marked_token(std::string_view token);

}  // namespace kvs::inline tokenizer
