// SPDX-License-Identifier: Apache-2.0
#include "caches/old_parameters.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/old_names.h"

namespace kvs::inline caches {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kRenamed{
    {{"store", "type"}, {"store_k", "type_k"}, {"store_v", "type_v"}, {"store_skip_layers", "type_skip_layers"}}};

/// The word "store" of one side, or of a list by layer, stands for the parameter of both sides.
void rename_word(Json& value) {
  if (value == "store") value = "type";
  if (!value.is_array()) return;
  for (Json& element : value)
    if (element == "store") element = "type";
}

/// Keeps the order of the members.
void rename_members(Json& object, const std::string& where, ErrorCode code) {
  for (const auto& [old_name, name] : kRenamed) {
    if (!object.contains(old_name)) continue;
    if (object.contains(name))
      throw Error(code, where,
                  "found " + std::string(old_name) + " and " + std::string(name) + ", expected one of them");
    note_old_name(where + ": " + std::string(old_name), name);
    Json renamed = Json::object();
    for (auto& [key, member] : object.items()) {
      if (key == old_name && old_name != "store") rename_word(member);
      renamed.emplace(key == old_name ? std::string(name) : key, std::move(member));
    }
    object = std::move(renamed);
  }
}

}  // namespace

void rename_old_parameters(Json& json, const std::string& where, ErrorCode code) {
  std::vector<Json*> open{&json};  // a loop, as depth is the file's
  while (!open.empty()) {
    Json& value = *open.back();
    open.pop_back();
    if (value.is_object()) rename_members(value, where, code);
    for (Json& element : value)
      if (element.is_structured()) open.push_back(&element);
  }
}

}  // namespace kvs::inline caches
