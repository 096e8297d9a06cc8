// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "io/json.h"

namespace kvs::inline io {

/// Like parse_json(), for one line of a file. Messages name the line in `where`.
/// @param has_newline  false if the file ends in this line, which may be truncated
Json parse_json_line(std::string_view bytes, const std::string& where, bool has_newline);

}  // namespace kvs::inline io
