#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvs {

/// The bytes that a byte-level token text stands for, or nothing if it holds a character outside GPT-2's 256.
/// Source: Radford et al. (2019), openai/gpt-2 src/encoder.py, bytes_to_unicode: printable Latin-1 bytes stand for
/// themselves, the 68 others for U+0100 onwards in order.
std::optional<std::string> bytes_of_token(std::string_view token);

}  // namespace kvs
