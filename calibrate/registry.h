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

/// Returns the methods in the order that determines their looks in figures: a method has one colour and form
/// everywhere. "quantised alone" is the full cache in a storage type.
std::vector<std::string> method_order();

}  // namespace kvs::inline calibrate
