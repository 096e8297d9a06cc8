#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/method.h"

namespace kvs {

std::span<const Method* const> all_methods() noexcept;
/// nullptr if there is none of this name.
const Method* find_method(std::string_view name) noexcept;
/// Of the methods for which `holds` does.
std::vector<std::string> method_names(bool (*holds)(const Method& method));

/// The methods in the order that decides their looks in figures: a method has one colour and form wherever it is drawn.
/// "quantised alone" is the full cache in a storage type.
std::vector<std::string> method_order();

}  // namespace kvs
