// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "calibrate/method.h"

namespace kvs::inline calibrate {

/// Checks the names of settings, and their values as far as they depend neither on the model nor on other settings.
/// @param where  the option, for messages;  @throws Error kUsage
void check_settings(const Method& method, const Json& settings, const std::string& where);
/// Checks that all required parameters (which are counts) are given.
/// @param later  names of parameters that will be known later;  @throws Error kUsage
void check_complete(const Method& method, const Json& settings, const std::string& where,
                    std::span<const std::string_view> later = {});

}  // namespace kvs::inline calibrate
