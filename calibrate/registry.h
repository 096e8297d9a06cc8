// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/method.h"

namespace kvs::inline calibrate {

std::span<const Method* const> all_methods() noexcept;
/// Returns nullptr if there is no method of this name.
const Method* find_method(std::string_view name) noexcept;
/// Returns the names of the methods for which `holds` is true.
std::vector<std::string> method_names(bool (*holds)(const Method& method));

}  // namespace kvs::inline calibrate
