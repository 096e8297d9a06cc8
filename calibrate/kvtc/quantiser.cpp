// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kvtc/quantiser.h"

#include <algorithm>
#include <cmath>

#include "core/dtype.h"
#include "core/error.h"
#include "kernels/codecs/scalars.h"

namespace kvs::inline calibrate {
namespace {

constexpr float kMostF16 = 65504, kLeastScale = 6e-8F;  // the smallest subnormal of f16 is 5.96e-8
constexpr std::size_t kHalf = 2;                        // bytes of a value in f16

std::size_t code_bits(KvtcType type) noexcept {
  constexpr std::array<std::size_t, 4> kBits{2, 2, 4, 8};
  return kBits[static_cast<std::size_t>(type)];
}

std::uint16_t half_of(float value) noexcept { return f32_to_f16(std::clamp(value, -kMostF16, kMostF16)); }

/// The shift and the scale of a group of a token.
struct GroupRange {
  GroupRange(KvtcType type, std::span<const float> values) noexcept {
    const auto [least, most] = std::ranges::minmax(values);
    if (type == KvtcType::kFp8) {
      shift = half_of((least + most) / 2);
      scale = half_of(std::max((most - least) / 2 / codecs::Fp8E4m3::kMax, 1e-7F));
    } else {
      const float steps = type == KvtcType::kInt2 ? 3 : 15;
      shift = half_of(least);
      scale = half_of((most - least) / steps);
    }
  }
  GroupRange(std::uint16_t shift_bits, std::uint16_t scale_bits) noexcept : shift(shift_bits), scale(scale_bits) {}

  std::uint16_t shift, scale;  // f16
};

/// Codes and decodes the values of a group.
class GroupCodes {
 public:
  GroupCodes(KvtcType type, const GroupRange& range) noexcept
      : fp8_(type == KvtcType::kFp8),
        steps_(type == KvtcType::kInt2 ? 3 : 15),
        shift_(f16_to_f32(range.shift)),
        scale_(std::max(f16_to_f32(range.scale), kLeastScale)) {}

  std::uint8_t code(float value) const noexcept {
    const float steps = (value - shift_) / scale_;
    if (fp8_) return codecs::Fp8E4m3::bits(steps);
    const float rounded = std::nearbyint(steps);
    return static_cast<std::uint8_t>(rounded > 0 ? std::min(rounded, steps_) : 0);  // 0 for NaN, too
  }
  float value(std::uint8_t code) const noexcept {
    return (fp8_ ? codecs::Fp8E4m3::value(code) : static_cast<float>(code)) * scale_ + shift_;
  }

 private:
  bool fp8_;
  float steps_, shift_, scale_;
};

void put_half(std::vector<std::uint8_t>& bytes, std::uint16_t bits) {
  bytes.push_back(static_cast<std::uint8_t>(bits & 0xffU));
  bytes.push_back(static_cast<std::uint8_t>(bits >> 8U));
}

std::uint16_t half_at(std::span<const std::uint8_t> bytes, std::size_t n) {
  return static_cast<std::uint16_t>(bytes[kHalf * n] | static_cast<unsigned>(bytes[kHalf * n + 1]) << 8U);
}

std::size_t group_bytes(const KvtcGroup& group, std::size_t tokens) noexcept {
  if (group.type == KvtcType::kF16) return kHalf * tokens;
  return 2 * kHalf * tokens + (group.size * tokens * code_bits(group.type) + 7) / 8;
}

/// Appends a group of several components. @param rows  [token], from the group's first component on
void pack_group(const KvtcGroup& group, std::span<const float> rows, std::size_t stride, std::size_t tokens,
                std::vector<std::uint8_t>& bytes) {
  std::vector<GroupRange> ranges;
  std::vector<GroupCodes> codes;
  ranges.reserve(tokens);
  codes.reserve(tokens);
  for (std::size_t token = 0; token < tokens; ++token) {
    ranges.emplace_back(group.type, rows.subspan(token * stride, group.size));
    codes.emplace_back(group.type, ranges.back());
  }
  for (const GroupRange& range : ranges) put_half(bytes, range.shift);
  for (const GroupRange& range : ranges) put_half(bytes, range.scale);
  const std::size_t bits = code_bits(group.type), first = bytes.size();
  bytes.resize(first + (group.size * tokens * bits + 7) / 8);
  for (std::size_t component = 0, at = 0; component < group.size; ++component)
    for (std::size_t token = 0; token < tokens; ++token, at += bits)
      bytes[first + at / 8] = static_cast<std::uint8_t>(bytes[first + at / 8] |
                                                        codes[token].code(rows[token * stride + component]) << at % 8);
}

void unpack_group(const KvtcGroup& group, std::span<const std::uint8_t> bytes, std::size_t stride, std::size_t tokens,
                  std::span<float> rows) {
  const std::size_t bits = code_bits(group.type);
  const auto scales = bytes.subspan(kHalf * tokens), packed = scales.subspan(kHalf * tokens);
  for (std::size_t token = 0; token < tokens; ++token) {
    const GroupCodes codes(group.type, {half_at(bytes, token), half_at(scales, token)});
    for (std::size_t component = 0; component < group.size; ++component) {
      const std::size_t at = (component * tokens + token) * bits;
      rows[token * stride + component] =
          codes.value(static_cast<std::uint8_t>(packed[at / 8] >> at % 8 & ((1U << bits) - 1)));
    }
  }
}

std::size_t components_of(std::span<const KvtcGroup> groups) noexcept {
  std::size_t sum = 0;
  for (const KvtcGroup& group : groups) sum += group.size;
  return sum;
}

}  // namespace

std::size_t group_bits(const KvtcGroup& group) noexcept { return group.size * code_bits(group.type) + 2 * 8 * kHalf; }

void quantise_group(KvtcType type, std::span<float> values) noexcept {
  if (type == KvtcType::kF16) {
    for (float& value : values) value = f16_to_f32(half_of(value));
    return;
  }
  const GroupCodes codes(type, GroupRange(type, values));
  for (float& value : values) value = codes.value(codes.code(value));
}

std::size_t packed_bytes(std::span<const KvtcGroup> groups, std::size_t tokens) noexcept {
  std::size_t sum = 0;
  for (const KvtcGroup& group : groups) sum += group_bytes(group, tokens);
  return sum;
}

std::vector<std::uint8_t> pack_rows(std::span<const float> rows, std::span<const KvtcGroup> groups,
                                    std::size_t tokens) {
  const std::size_t stride = components_of(groups);
  std::vector<std::uint8_t> bytes;
  bytes.reserve(packed_bytes(groups, tokens));
  std::size_t first = 0;
  for (const KvtcGroup& group : groups) {
    if (group.type == KvtcType::kF16)
      for (std::size_t token = 0; token < tokens; ++token) put_half(bytes, half_of(rows[token * stride + first]));
    else
      pack_group(group, rows.subspan(first), stride, tokens, bytes);
    first += group.size;
  }
  return bytes;
}

std::vector<float> unpack_rows(std::span<const std::uint8_t> packed, std::span<const KvtcGroup> groups,
                               std::size_t tokens) {
  if (packed.size() != packed_bytes(groups, tokens))
    throw Error(ErrorCode::kInternal, "kvtc", "codes of another number of tokens");
  const std::size_t stride = components_of(groups);
  std::vector<float> rows(tokens * stride);
  std::size_t first = 0;
  for (const KvtcGroup& group : groups) {
    const auto bytes = packed.first(group_bytes(group, tokens));
    packed = packed.subspan(bytes.size());
    if (group.type == KvtcType::kF16)
      for (std::size_t token = 0; token < tokens; ++token)
        rows[token * stride + first] = f16_to_f32(half_at(bytes, token));
    else
      unpack_group(group, bytes, stride, tokens, std::span(rows).subspan(first));
    first += group.size;
  }
  return rows;
}

}  // namespace kvs::inline calibrate
