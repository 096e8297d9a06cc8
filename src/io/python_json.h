// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/json.h"

namespace kvs::inline io {

/// Like parse_json(), for output of Python's json module. Accepts NaN, Infinity and -Infinity, which JSON does not
/// have, so the document may hold doubles that are not finite.
Json parse_python_json(std::string_view text, std::string_view where, JsonLimits limits = {});

/// Writes a document of parse_python_json() as text: like dump_json(), with Python's words for non-finite numbers.
std::string dump_python_json(const Json& value);

}  // namespace kvs::inline io
