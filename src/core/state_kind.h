// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>

namespace kvs::inline core {

/// The kinds of a layer's per-head states, in the order in which a capture stores them for a document.
enum class StateKind { kQPre, kKPre, kKPost, kV };
inline constexpr std::array kStateKinds{StateKind::kQPre, StateKind::kKPre, StateKind::kKPost, StateKind::kV};
inline constexpr std::array<std::string_view, kStateKinds.size()> kStateNames{"q_pre", "k_pre", "k_post", "v"};

constexpr std::string_view name_of(StateKind kind) noexcept { return kStateNames[static_cast<std::size_t>(kind)]; }
constexpr std::optional<StateKind> state_kind_from_name(std::string_view name) noexcept {
  const auto at = std::ranges::find(kStateNames, name);
  if (at == kStateNames.end()) return std::nullopt;
  return kStateKinds[static_cast<std::size_t>(at - kStateNames.begin())];
}

/// A set of kinds, in their order.
using StateSet = std::set<StateKind>;

/// One value of each kind.
template <class T>
struct ByState : std::array<T, kStateKinds.size()> {
  constexpr T& operator[](StateKind kind) noexcept { return this->data()[static_cast<std::size_t>(kind)]; }
  constexpr const T& operator[](StateKind kind) const noexcept { return this->data()[static_cast<std::size_t>(kind)]; }
};

}  // namespace kvs::inline core
