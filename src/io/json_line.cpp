// SPDX-License-Identifier: Apache-2.0
#include "io/json_line.h"

#include "core/error.h"

namespace kvs::inline io {

Json parse_json_line(std::string_view bytes, const std::string& where, bool has_newline) {
  try {
    return parse_json(bytes, where);
  } catch (const Error& error) {
    std::string_view problem(error.what());
    for (const std::string& prefix : {where + ": ", std::string("line 1, ")}) {
      if (problem.starts_with(prefix)) problem.remove_prefix(prefix.size());
    }
    throw Error(error.code(), where, (has_newline ? "" : "truncated: ") + std::string(problem));
  }
}

}  // namespace kvs::inline io
