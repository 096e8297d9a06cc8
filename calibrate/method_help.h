#pragma once

#include <string>

#include "calibrate/method.h"

namespace kvs::inline calibrate {

/// What --help says of a method: title, paper and every parameter.
std::string method_help(const Method& method);
/// A line for each method and its parameters.
std::string cache_method_lines();

}  // namespace kvs::inline calibrate
