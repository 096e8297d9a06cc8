// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/error.h"
#include "core/nearest.h"
#include "model/families/families.h"

namespace kvs::inline model {

namespace {

#define KVS_ADDRESS(name) &(name),
constexpr std::array kArchitectures{KVS_FAMILIES(KVS_ADDRESS)};
#undef KVS_ADDRESS

const Architecture& find_architecture(std::string_view Architecture::*field, std::string_view wanted,
                                      std::string_view where) {
  std::vector<std::string> supported;
  for (const Architecture* row : kArchitectures) {
    if ((row->*field).empty() || (field == &Architecture::gguf && !row->gguf_key.empty())) continue;
    if (row->*field == wanted) return *row;
    supported.emplace_back(row->*field);
  }
  throw Error(ErrorCode::kUnsupported, where,
              "found architecture \"" + std::string(wanted.substr(0, 80)) + "\", expected one of the " +
                  std::to_string(supported.size()) + " of docs/models.md" + did_you_mean(wanted, supported));
}

}  // namespace

const Architecture& architecture_of_hf_class(std::string_view hf_class, std::string_view where) {
  for (const Architecture* row : kArchitectures) {
    if (hf_class == row->hf_base_class) return *row;
  }
  return find_architecture(&Architecture::hf_class, hf_class, where);
}

const Architecture& architecture_of_model_type(std::string_view model_type, std::string_view where) {
  return find_architecture(&Architecture::model_type, model_type, where);
}

const Architecture* find_model_type(std::string_view model_type) noexcept {
  const auto* row = std::ranges::find(kArchitectures, model_type, &Architecture::model_type);
  return row == kArchitectures.end() ? nullptr : *row;
}

const Architecture* find_architecture_named(std::string_view name) noexcept {
  const auto* row = std::ranges::find(kArchitectures, name, &Architecture::name);
  return row == kArchitectures.end() ? nullptr : *row;
}

const Architecture& architecture_of_gguf(std::string_view gguf, std::string_view where,
                                         const std::function<bool(std::string_view key)>& has) {
  for (const Architecture* row : kArchitectures)
    if (row->gguf == gguf && !row->gguf_key.empty() && has(row->gguf_key)) return *row;
  for (const Architecture* row : kArchitectures)
    if (!gguf.empty() && row->gguf_other == gguf) return *row;
  return find_architecture(&Architecture::gguf, gguf, where);
}

std::string with_number(std::string_view name, std::size_t number) {
  const std::size_t at = name.find("{}");
  if (at == std::string_view::npos) return std::string(name);
  return std::string(name.substr(0, at)) + std::to_string(number) + std::string(name.substr(at + 2));
}

}  // namespace kvs::inline model
