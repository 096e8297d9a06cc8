// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "io/json.h"

namespace kvs::inline calibrate {

/// Reports the error of `config` at the place where a validator found a violation of `schema`.
/// @param context      the place: member names, and indices as "[3]"
/// @param description  the validator's own message, used if the rule is not supported here
/// @throws Error kInput, always: "WHERE: /pointer: found X, expected Y"; an unknown member with the nearest known one
[[noreturn]] void fail_schema(const Json& schema, const Json& config, const std::string& where,
                              std::span<const std::string> context, const std::string& description);

}  // namespace kvs::inline calibrate
