#include "io/element_type.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/dtype.h"

namespace kvs {
namespace {

static_assert(std::endian::native == std::endian::little, "both file formats are little-endian and are read in place");

template <class T>
T load(const std::byte* bytes) noexcept {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

void decode_f32(const std::byte* bytes, std::size_t blocks, float* out) {
  if (blocks != 0) std::memcpy(out, bytes, blocks * sizeof(float));  // memcpy from null is undefined even for 0 bytes
}

void decode_f16(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t i = 0; i < blocks; ++i) out[i] = f16_to_f32(load<std::uint16_t>(bytes + 2 * i));
}

void decode_bf16(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t i = 0; i < blocks; ++i) out[i] = bf16_to_f32(load<std::uint16_t>(bytes + 2 * i));
}

void decode_f64(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t i = 0; i < blocks; ++i) out[i] = static_cast<float>(load<double>(bytes + 8 * i));
}

// Quantised blocks, after ggml-common.h: 32 numbers share a scale d (and a minimum m), both f16. A product of d's 11
// bits with at most 8 bits is exact in f32, so contraction to a fused multiply-add cannot change a result.
// The fields are copied to locals first because `bytes` may alias `out`, which would keep the loops from vectorising.
constexpr std::size_t kBlock = 32, kHalf = kBlock / 2;
using Nibbles = std::array<std::uint8_t, kHalf>;  // number i in the low half of byte i, number 16 + i in its high half

void decode_q8_0(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, bytes += 34, out += kBlock) {
    const float d = f16_to_f32(load<std::uint16_t>(bytes));
    const auto q = load<std::array<std::int8_t, kBlock>>(bytes + 2);
    for (std::size_t i = 0; i < kBlock; ++i) out[i] = d * static_cast<float>(q[i]);
  }
}

void decode_q4_0(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, bytes += 18, out += kBlock) {
    const float d = f16_to_f32(load<std::uint16_t>(bytes));
    const auto q = load<Nibbles>(bytes + 2);
    for (std::size_t i = 0; i < kHalf; ++i) {
      out[i] = d * static_cast<float>((q[i] & 15) - 8);
      out[kHalf + i] = d * static_cast<float>((q[i] >> 4) - 8);
    }
  }
}

void decode_q4_1(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, bytes += 20, out += kBlock) {
    const float d = f16_to_f32(load<std::uint16_t>(bytes)), m = f16_to_f32(load<std::uint16_t>(bytes + 2));
    const auto q = load<Nibbles>(bytes + 4);
    for (std::size_t i = 0; i < kHalf; ++i) {
      out[i] = d * static_cast<float>(q[i] & 15) + m;
      out[kHalf + i] = d * static_cast<float>(q[i] >> 4) + m;
    }
  }
}

// Q5: bit i of `fifth` is the fifth bit of number i.
void decode_q5_0(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, bytes += 22, out += kBlock) {
    const float d = f16_to_f32(load<std::uint16_t>(bytes));
    const auto fifth = load<std::uint32_t>(bytes + 2);
    const auto q = load<Nibbles>(bytes + 6);
    for (std::uint32_t i = 0; i < kHalf; ++i) {
      out[i] = d * static_cast<float>(static_cast<int>((q[i] & 15U) | ((fifth >> i) & 1U) << 4) - 16);
      out[kHalf + i] = d * static_cast<float>(static_cast<int>((q[i] >> 4U) | ((fifth >> (kHalf + i)) & 1U) << 4) - 16);
    }
  }
}

void decode_q5_1(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, bytes += 24, out += kBlock) {
    const float d = f16_to_f32(load<std::uint16_t>(bytes)), m = f16_to_f32(load<std::uint16_t>(bytes + 2));
    const auto fifth = load<std::uint32_t>(bytes + 4);
    const auto q = load<Nibbles>(bytes + 8);
    for (std::uint32_t i = 0; i < kHalf; ++i) {
      out[i] = d * static_cast<float>(static_cast<int>((q[i] & 15U) | ((fifth >> i) & 1U) << 4)) + m;
      out[kHalf + i] = d * static_cast<float>(static_cast<int>((q[i] >> 4U) | ((fifth >> (kHalf + i)) & 1U) << 4)) + m;
    }
  }
}

struct GgmlType {
  std::uint32_t number;
  ElementType type;
};

// Sizes after ggml-common.h. 4 and 5, 31 to 33 and 36 to 38 were removed; 9 (Q8_1) and 15 (Q8_K) are never stored.
constexpr std::array kGgmlTypes{
    GgmlType{0, {"F32", 1, 4, decode_f32}},
    GgmlType{1, {"F16", 1, 2, decode_f16}},
    GgmlType{2, {"Q4_0", kBlock, 18, decode_q4_0}},
    GgmlType{3, {"Q4_1", kBlock, 20, decode_q4_1}},
    GgmlType{6, {"Q5_0", kBlock, 22, decode_q5_0}},
    GgmlType{7, {"Q5_1", kBlock, 24, decode_q5_1}},
    GgmlType{8, {"Q8_0", kBlock, 34, decode_q8_0}},
    GgmlType{10, {"Q2_K", 256, 84, nullptr}},
    GgmlType{11, {"Q3_K", 256, 110, nullptr}},
    GgmlType{12, {"Q4_K", 256, 144, nullptr}},
    GgmlType{13, {"Q5_K", 256, 176, nullptr}},
    GgmlType{14, {"Q6_K", 256, 210, nullptr}},
    GgmlType{16, {"IQ2_XXS", 256, 66, nullptr}},
    GgmlType{17, {"IQ2_XS", 256, 74, nullptr}},
    GgmlType{18, {"IQ3_XXS", 256, 98, nullptr}},
    GgmlType{19, {"IQ1_S", 256, 50, nullptr}},
    GgmlType{20, {"IQ4_NL", kBlock, 18, nullptr}},
    GgmlType{21, {"IQ3_S", 256, 110, nullptr}},
    GgmlType{22, {"IQ2_S", 256, 82, nullptr}},
    GgmlType{23, {"IQ4_XS", 256, 136, nullptr}},
    GgmlType{24, {"I8", 1, 1, nullptr}},
    GgmlType{25, {"I16", 1, 2, nullptr}},
    GgmlType{26, {"I32", 1, 4, nullptr}},
    GgmlType{27, {"I64", 1, 8, nullptr}},
    GgmlType{28, {"F64", 1, 8, decode_f64}},
    GgmlType{29, {"IQ1_M", 256, 56, nullptr}},
    GgmlType{30, {"BF16", 1, 2, decode_bf16}},
    GgmlType{34, {"TQ1_0", 256, 54, nullptr}},
    GgmlType{35, {"TQ2_0", 256, 66, nullptr}},
    GgmlType{39, {"MXFP4", kBlock, 17, nullptr}},
    GgmlType{40, {"NVFP4", 64, 36, nullptr}},
};

// The safetensors crate's Dtype (0.8). Types of 4 and 6 bits are sized by the fewest that fill whole bytes.
constexpr std::array kSafetensorsTypes{
    ElementType{"F32", 1, 4, decode_f32},      ElementType{"F16", 1, 2, decode_f16},
    ElementType{"BF16", 1, 2, decode_bf16},    ElementType{"F64", 1, 8, decode_f64},
    ElementType{"BOOL", 1, 1, nullptr},        ElementType{"F4", 2, 1, nullptr},
    ElementType{"F6_E2M3", 4, 3, nullptr},     ElementType{"F6_E3M2", 4, 3, nullptr},
    ElementType{"F8_E5M2", 1, 1, nullptr},     ElementType{"F8_E4M3", 1, 1, nullptr},
    ElementType{"F8_E8M0", 1, 1, nullptr},     ElementType{"F8_E4M3FNUZ", 1, 1, nullptr},
    ElementType{"F8_E5M2FNUZ", 1, 1, nullptr}, ElementType{"U8", 1, 1, nullptr},
    ElementType{"I8", 1, 1, nullptr},          ElementType{"U16", 1, 2, nullptr},
    ElementType{"I16", 1, 2, nullptr},         ElementType{"U32", 1, 4, nullptr},
    ElementType{"I32", 1, 4, nullptr},         ElementType{"U64", 1, 8, nullptr},
    ElementType{"I64", 1, 8, nullptr},         ElementType{"C64", 1, 8, nullptr},
};

}  // namespace

const ElementType* element_type_of_ggml(std::uint32_t type) noexcept {
  const auto found = std::find_if(kGgmlTypes.begin(), kGgmlTypes.end(),
                                  [&](const GgmlType& candidate) { return candidate.number == type; });
  return found == kGgmlTypes.end() ? nullptr : &found->type;
}

const ElementType* element_type_of_safetensors(std::string_view dtype) noexcept {
  const auto found = std::find_if(kSafetensorsTypes.begin(), kSafetensorsTypes.end(),
                                  [&](const ElementType& candidate) { return candidate.name == dtype; });
  return found == kSafetensorsTypes.end() ? nullptr : &*found;
}

}  // namespace kvs
