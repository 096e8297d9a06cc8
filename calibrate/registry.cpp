// SPDX-License-Identifier: Apache-2.0
#include "calibrate/registry.h"

#include <algorithm>
#include <array>

namespace kvs::inline calibrate {

namespace {

#define KVS_ADDRESS(Name) &k##Name##Method,
constexpr std::array kMethods{KVS_METHODS(KVS_ADDRESS, KVS_ADDRESS)};
#undef KVS_ADDRESS

}  // namespace

std::span<const Method* const> all_methods() noexcept { return kMethods; }

const Method* find_method(std::string_view name) noexcept {
  const auto found = std::ranges::find(kMethods, name, &Method::name);
  return found == kMethods.end() ? nullptr : *found;
}

std::vector<std::string> method_names(bool (*holds)(const Method& method)) {
  std::vector<std::string> names;
  for (const Method* const method : kMethods)
    if (holds(*method)) names.emplace_back(method->name);
  return names;
}

}  // namespace kvs::inline calibrate
