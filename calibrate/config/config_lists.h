#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "io/json.h"

namespace kvs {

// Checks of lists against each other. All throw Error kInput at the place of what is wrong.

/// Checks a config that follows the schema against the table `lists` of config_schema(): lengths, order and bounds of
/// its lists, and members that must agree. The table describes itself; Python's reader follows the same one.
void check_config_lists(const Json& config, const std::string& where);

/// `parameters.layers` of a config that has them.
std::vector<std::size_t> config_layers(const JsonCursor& config);
/// @param what  that the list has one entry for
void expect_length(const JsonCursor& list, std::size_t length, const std::string& what);

}  // namespace kvs
