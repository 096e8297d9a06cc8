// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "io/json.h"
#include "model/architecture.h"

namespace kvs::inline model {

/// Every fourth layer does not rotate unless a config or a GGUF says otherwise (UnrotatedRule::kListed).
inline constexpr std::size_t kUnrotatedInterval = 4;

/// Reads a number from 1 to `maximum`. @param missing  the value of a missing key; 0: the key is required
std::size_t hf_count(const JsonCursor& root, std::string_view key, std::uint64_t maximum, std::size_t missing = 0);
/// Reads a switch. @param key  empty: the family has no such key;  @param missing  the value of a missing key
bool hf_switch(const JsonCursor& root, std::string_view key, bool missing);
/// Reads a number above 0 in the range of f32. @param missing  the value of a missing key
double hf_positive(const JsonCursor& root, std::string_view key, double missing);

/// Returns the place of a key in messages, also of one that is missing: "FILE: /pointer".
std::string hf_place(const JsonCursor& root, std::string_view key);

/// Refuses a number of config.json that the config states, or that is the class's default for a missing key.
/// @throws Error kInput with the JSON pointer, the number and `expected`.
[[noreturn]] void fail_hf_number(const JsonCursor& root, std::string_view key, std::size_t number,
                                 const std::string& expected);

/// Checks the keys of config.json that this row does not read. Keys that would change the arithmetic in their class are
/// refused, unless their value has no effect. Unknown keys are listed in `notes`.
/// @throws Error kUnsupported with the key.
void check_hf_options(const JsonCursor& root, const Architecture& row, std::vector<std::string>& notes);

/// Returns the number of positions that each layer attends to, 0 for all: [layer].
/// @throws Error kInput with the JSON pointer, kUnsupported for other kinds of layers.
std::vector<std::size_t> hf_windows(const JsonCursor& root, const Architecture& row, std::size_t layers);

/// Returns the layers that do not rotate if the config does not list them: [layer]. `config` must have its layers and
/// windows.
/// @param windowed  true if a window is stated;  @param interval  of UnrotatedRule::kListed
std::vector<bool> unrotated_by_rule(const Architecture& row, const ModelConfig& config, bool windowed,
                                    std::size_t interval = kUnrotatedInterval);

/// Returns the layers that do not rotate: [layer]. `config` must have its layers and windows.
/// @throws Error kInput with the JSON pointer.
std::vector<bool> hf_unrotated(const JsonCursor& root, const Architecture& row, const ModelConfig& config);

/// Reads hidden_act or hidden_activation; a missing key gives the row's own. @throws Error kUnsupported by name.
Activation hf_activation(const JsonCursor& root, const Architecture& row);

}  // namespace kvs::inline model
