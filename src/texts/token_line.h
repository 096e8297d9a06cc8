// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvs::inline texts {

/// Parses one line of a tokens file: a JSON array of integers in [0, vocabulary_size).
/// @param where  the file and line, for messages
/// @throws Error kInput "WHERE: column C: found X, expected ...". Cost: one pass, 4 bytes a token.
std::vector<std::int32_t> parse_token_line(std::string_view line, std::string_view where, std::size_t vocabulary_size);

}  // namespace kvs::inline texts
