// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tasks/task.h"

namespace kvs::inline tasks {

/// Returns "One of the special magic numbers for KEY is: VALUE."
std::string magic_needle(std::string_view kind, std::string_view key, std::string_view value);
/// Returns RULER's question for the values of `keys`, in the singular for one value.
/// @param kind  "numbers", "words" or "uuids"
TaskSample magic_question(const std::string& haystack, const std::string& kind, std::span<const std::string> keys,
                          std::vector<std::string> values);

}  // namespace kvs::inline tasks
