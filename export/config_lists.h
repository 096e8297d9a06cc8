#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "io/json.h"

namespace kvs {

// Checks of a config's lists against each other. All throw Error kInput at the place of what is wrong.

/// `parameters.layers`, ascending.
std::vector<std::size_t> config_layers(const JsonCursor& config);
/// Distinct indices below `limit`. @param length  how many; 0: any number
void check_index_list(const JsonCursor& list, std::size_t limit, std::size_t length = 0);
/// @param what  that the list has one entry for
void expect_length(const JsonCursor& list, std::size_t length, const std::string& what);

}  // namespace kvs
