// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kvs::inline calibrate {

/// The type of a group's codes.
enum class KvtcType : std::uint8_t { kF16, kInt2, kInt4, kFp8 };  // in the order of kKvtcTypeNames

inline constexpr std::array<std::string_view, 4> kKvtcTypeNames{"f16", "int2", "int4", "fp8"};

/// Neighbouring components of a token that share a type, a shift and a scale.
struct KvtcGroup {
  std::size_t size = 0;  // one of kKvtcSizes; 1 with kF16 alone
  KvtcType type = KvtcType::kF16;

  bool operator==(const KvtcGroup&) const = default;
};

/// Sizes of groups. Components are counted in sixteens (kKvtcStep), so that groups of 1 come by sixteen.
inline constexpr std::array<std::size_t, 5> kKvtcSizes{1, 16, 64, 256, 1024};
inline constexpr std::size_t kKvtcStep = 16;

/// Keys before RoPE, or values, of a token in all layers of a pool. Value n is the layer's, then the head's, then the
/// channel's.
struct KvtcSide {
  std::vector<float> mean;   // [value]
  std::vector<float> basis;  // [component, value]: orthonormal rows, rounded to f16; component = basis · (x − mean)
  std::vector<KvtcGroup> groups;  // of the components, in order

  std::size_t values() const noexcept { return mean.size(); }
  std::size_t components() const noexcept {
    std::size_t sum = 0;
    for (const KvtcGroup& group : groups) sum += group.size;
    return sum;
  }
};

/// Layers whose tokens are coded together.
struct KvtcPool {
  std::vector<std::size_t> layers;  // ascending
  KvtcSide keys, values;
};

/// The types of tokens that wait.
enum class KvtcRecent : std::uint8_t { kF16, kQ8_0 };  // in the order of kKvtcRecentNames

inline constexpr std::array<std::string_view, 2> kKvtcRecentNames{"f16", "q8_0"};

/// The treatment of a document's tokens. The first `sinks` stay in 16 bits. When `recent` + `block` of the others wait,
/// the oldest `block` of them are coded together.
struct KvtcTokens {
  std::size_t sinks = 4, recent = 128, block = 16;
  KvtcRecent type = KvtcRecent::kF16;
};

}  // namespace kvs::inline calibrate
