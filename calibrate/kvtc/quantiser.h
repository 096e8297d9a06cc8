// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "calibrate/kvtc/pool.h"

namespace kvs::inline calibrate {

/// Returns the bits that a group of a token takes before the entropy coder: its codes, and a shift and a scale of 16
/// bits each. A group of 1 counts 2 bits of codes, as the paper's smallest group.
std::size_t group_bits(const KvtcGroup& group) noexcept;

/// Overwrites a group of a token with its decoded values. int2 and int4 divide the range from the smallest to the
/// largest value evenly; fp8 (e4m3) has its zero in the middle of the range, and its largest value at the ends.
/// Deviation: a group of 1 keeps its value in f16, since its shift is the value and its scale and code are 0.
void quantise_group(KvtcType type, std::span<float> values) noexcept;

/// Returns the codes of `tokens` tokens, group by group: of a group of 1 the values in f16 [token]; of another the
/// shifts and the scales in f16 [token], then the codes [component, token], packed from the lowest bit on. The paper
/// does not state an order.
/// @param rows  [token, component]
std::vector<std::uint8_t> pack_rows(std::span<const float> rows, std::span<const KvtcGroup> groups, std::size_t tokens);
/// Returns the number of bytes of pack_rows().
std::size_t packed_bytes(std::span<const KvtcGroup> groups, std::size_t tokens) noexcept;
/// Returns decoded rows [token, component]. @param packed  of packed_bytes() bytes
std::vector<float> unpack_rows(std::span<const std::uint8_t> packed, std::span<const KvtcGroup> groups,
                               std::size_t tokens);

}  // namespace kvs::inline calibrate
