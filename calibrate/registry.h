#pragma once

#include <span>
#include <string_view>

#include "calibrate/method.h"

namespace kvs {

std::span<const Method* const> all_methods() noexcept;
/// nullptr if there is none of this name.
const Method* find_method(std::string_view name) noexcept;

}  // namespace kvs
