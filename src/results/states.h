// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "core/state_kind.h"
#include "io/json_fields.h"

namespace kvs::inline results {

/// One optional member for each kind of state, written under the state's name.
template <class T>
struct StateMembers : ByState<std::optional<T>> {
  static void fields(auto& of, auto&& field) {
    for (const StateKind state : kStateKinds) field.absent_or(name_of(state), of[state]);
  }
};

/// Returns "Queries before RoPE", "Keys before RoPE", "Keys after RoPE" or "Values".
inline std::string title_of(StateKind state) {
  constexpr ByState<std::string_view> kTitles{{"Queries before RoPE", "Keys before RoPE", "Keys after RoPE", "Values"}};
  return std::string(kTitles[state]);
}

}  // namespace kvs::inline results
