#pragma once

#include <span>
#include <string>
#include <string_view>

#include "calibrate/method.h"

namespace kvs {

/// Checks the names of settings and, as far as no model and no other setting has a part in it, their values.
/// @param where  the option, for messages;  @throws Error kUsage
void check_settings(const Method& method, const Json& settings, const std::string& where);
/// Checks that parameters without a standard, which are counts, are there.
/// @param later  names of those that are known later;  @throws Error kUsage
void check_complete(const Method& method, const Json& settings, const std::string& where,
                    std::span<const std::string_view> later = {});

}  // namespace kvs
