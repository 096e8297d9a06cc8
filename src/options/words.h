// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kvs::inline options {

/// All words after it are values, even if they begin with "-".
inline constexpr const char* kEndOfOptions = "--";

/// @throws Error kUsage "--NAME: found 'FOUND', expected EXPECTED".
[[noreturn]] void refuse(const std::string& name, std::string_view found, const std::string& expected);

std::vector<std::string_view> split(std::string_view text, char separator);

/// Parses "0,14-16" or "all" to indices below `count`. Returns nullopt for any other form.
std::optional<std::set<std::size_t>> parse_indices(std::string_view text, std::size_t count);

/// Returns true if values of this form are files or folders.
inline bool is_path_form(std::string_view form) { return form == "FILE" || form == "DIR" || form == "PATH"; }

}  // namespace kvs::inline options
