// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "calibrate/method.h"

namespace kvs::inline calibrate {

/// Returns the help text of a method: title, paper and every parameter.
std::string method_help(const Method& method);
/// Returns one line for each method with its parameters.
std::string cache_method_lines();

}  // namespace kvs::inline calibrate
