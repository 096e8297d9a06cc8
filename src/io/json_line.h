#pragma once

#include <string>
#include <string_view>

#include "io/json.h"

namespace kvs {

/// parse_json() of one line of a file; messages name the line that `where` does, not one of its own.
/// @param has_newline  false: the file ends in the line, which may be cut
Json parse_json_line(std::string_view bytes, const std::string& where, bool has_newline);

}  // namespace kvs
