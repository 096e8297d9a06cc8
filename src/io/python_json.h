#pragma once

#include "io/json.h"

namespace kvs {

/// parse_json() of what Python's json module wrote: NaN, Infinity and -Infinity, which JSON does not have, are taken,
/// so that the document may hold doubles that are not finite.
Json parse_python_json(std::string_view text, std::string_view where, JsonLimits limits = {});

/// What parse_python_json() took as text again, numbers that are not finite by Python's words; else as dump_json().
std::string dump_python_json(const Json& value);

}  // namespace kvs
