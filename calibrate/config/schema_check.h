// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "io/json.h"

namespace kvs::inline calibrate {

/// @throws Error kInput at the place of the first member that violates config_schema().
void check_schema(const Json& config, const std::string& where);

}  // namespace kvs::inline calibrate
