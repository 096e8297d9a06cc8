// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kvs::inline tokenizer {

/// Returns a Jinja template without what does not change its output. This is white space and comments outside of
/// strings, the signs of white-space control, and text that Transformers' settings (trim_blocks, lstrip_blocks) remove.
/// Strings are in single quotes, with real line ends, and joined where `+` joins them; other text becomes {{'text'}};
/// `message.role` becomes message['role'].
std::string plain_template(std::string_view text);

}  // namespace kvs::inline tokenizer
