// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/error.h"
#include "io/json.h"

namespace kvs::inline caches {

/// Gives the parameters in `json`, at any depth, the names of this version where they have those of version 0.1:
/// `store`, `store_k`, `store_v` and `store_skip_layers` are `type`, `type_k`, `type_v` and `type_skip_layers`. Notes
/// each with note_old_name.
/// @param where  the file or the option, for messages
/// @throws Error `code` if an object has a parameter under both names
void rename_old_parameters(Json& json, const std::string& where, ErrorCode code = ErrorCode::kInput);

}  // namespace kvs::inline caches
