// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "io/json.h"

namespace kvs::inline calibrate {

// Checks of lists against each other. All throw Error kInput with the place of the invalid value.

/// Checks a config that follows the schema against the table `lists` of config_schema(): lengths, order and bounds of
/// its lists, and members that must agree. The table describes itself; the Python reader uses the same table.
void check_config_lists(const Json& config, const std::string& where);

/// Returns `parameters.layers` of a config, which must exist.
std::vector<std::size_t> config_layers(const JsonCursor& config);
/// @param what  the items for which the list has one entry each
void expect_length(const JsonCursor& list, std::size_t length, const std::string& what);

}  // namespace kvs::inline calibrate
