// SPDX-License-Identifier: Apache-2.0
#include "io/element_type.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "core/dtype.h"
#include "io/gguf_blocks/decoders.h"
#include "io/gguf_blocks/load.h"

namespace kvs::inline io {
namespace {

using blocks::load;

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

constexpr std::array<float, 256> kE4m3 = [] {
  std::array<float, 256> values{};
  for (unsigned code = 0; code < values.size(); ++code) {
    const unsigned exponent = code >> 3 & 15U, mantissa = code & 7U;
    const std::uint32_t normal = (exponent + 120) << 23 | mantissa << 20;
    const float size = exponent == 0 ? static_cast<float>(mantissa) * 0x1p-9F : std::bit_cast<float>(normal);
    const float value = (code & 0x7fU) == 0x7fU ? std::numeric_limits<float>::quiet_NaN() : size;
    values[code] = code < 128 ? value : -value;
  }
  return values;
}();

void decode_e4m3(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t i = 0; i < blocks; ++i) out[i] = kE4m3[static_cast<std::size_t>(bytes[i])];
}

/// 2^(b - 127); b = 255 is NaN.
void decode_e8m0(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t i = 0; i < blocks; ++i) {
    const auto exponent = static_cast<std::uint32_t>(bytes[i]);
    out[i] = std::bit_cast<float>(exponent == 0 ? 1U << 22 : exponent == 255 ? 0x7fc00000U : exponent << 23);
  }
}

struct GgmlType {
  std::uint32_t number;
  ElementType type;
};

// Sizes follow ggml-common.h. Types 4, 5, 31 to 33 and 36 to 38 were removed; 9 (Q8_1) and 15 (Q8_K) are never stored.
constexpr std::array kGgmlTypes{
    GgmlType{0, {"F32", 1, 4, decode_f32}},
    GgmlType{1, {"F16", 1, 2, decode_f16}},
    GgmlType{2, {"Q4_0", 32, 18, blocks::decode_q4_0}},
    GgmlType{3, {"Q4_1", 32, 20, blocks::decode_q4_1}},
    GgmlType{6, {"Q5_0", 32, 22, blocks::decode_q5_0}},
    GgmlType{7, {"Q5_1", 32, 24, blocks::decode_q5_1}},
    GgmlType{8, {"Q8_0", 32, 34, blocks::decode_q8_0}},
    GgmlType{10, {"Q2_K", 256, 84, blocks::decode_q2_k}},
    GgmlType{11, {"Q3_K", 256, 110, blocks::decode_q3_k}},
    GgmlType{12, {"Q4_K", 256, 144, blocks::decode_q4_k}},
    GgmlType{13, {"Q5_K", 256, 176, blocks::decode_q5_k}},
    GgmlType{14, {"Q6_K", 256, 210, blocks::decode_q6_k}},
    GgmlType{16, {"IQ2_XXS", 256, 66, blocks::decode_iq2_xxs}},
    GgmlType{17, {"IQ2_XS", 256, 74, blocks::decode_iq2_xs}},
    GgmlType{18, {"IQ3_XXS", 256, 98, blocks::decode_iq3_xxs}},
    GgmlType{19, {"IQ1_S", 256, 50, blocks::decode_iq1_s}},
    GgmlType{20, {"IQ4_NL", 32, 18, blocks::decode_iq4_nl}},
    GgmlType{21, {"IQ3_S", 256, 110, blocks::decode_iq3_s}},
    GgmlType{22, {"IQ2_S", 256, 82, blocks::decode_iq2_s}},
    GgmlType{23, {"IQ4_XS", 256, 136, blocks::decode_iq4_xs}},
    GgmlType{24, {"I8", 1, 1, nullptr}},
    GgmlType{25, {"I16", 1, 2, nullptr}},
    GgmlType{26, {"I32", 1, 4, nullptr}},
    GgmlType{27, {"I64", 1, 8, nullptr}},
    GgmlType{28, {"F64", 1, 8, decode_f64}},
    GgmlType{29, {"IQ1_M", 256, 56, blocks::decode_iq1_m}},
    GgmlType{30, {"BF16", 1, 2, decode_bf16}},
    GgmlType{34, {"TQ1_0", 256, 54, blocks::decode_tq1_0}},
    GgmlType{35, {"TQ2_0", 256, 66, blocks::decode_tq2_0}},
    GgmlType{39, {"MXFP4", 32, 17, blocks::decode_mxfp4}},
    GgmlType{40, {"NVFP4", 64, 36, blocks::decode_nvfp4}},
    GgmlType{41, {"Q1_0", 128, 18, nullptr}},
};

// Dtype of the safetensors crate 0.8. Block sizes of 4-bit and 6-bit types are the smallest that fill whole bytes.
constexpr std::array kSafetensorsTypes{
    ElementType{"F32", 1, 4, decode_f32},      ElementType{"F16", 1, 2, decode_f16},
    ElementType{"BF16", 1, 2, decode_bf16},    ElementType{"F64", 1, 8, decode_f64},
    ElementType{"BOOL", 1, 1, nullptr},        ElementType{"F4", 2, 1, nullptr},
    ElementType{"F6_E2M3", 4, 3, nullptr},     ElementType{"F6_E3M2", 4, 3, nullptr},
    ElementType{"F8_E5M2", 1, 1, nullptr},     ElementType{"F8_E4M3", 1, 1, decode_e4m3},
    ElementType{"F8_E8M0", 1, 1, decode_e8m0}, ElementType{"F8_E4M3FNUZ", 1, 1, nullptr},
    ElementType{"F8_E5M2FNUZ", 1, 1, nullptr}, ElementType{"U8", 1, 1, nullptr},
    ElementType{"I8", 1, 1, nullptr},          ElementType{"U16", 1, 2, nullptr},
    ElementType{"I16", 1, 2, nullptr},         ElementType{"U32", 1, 4, nullptr},
    ElementType{"I32", 1, 4, nullptr},         ElementType{"U64", 1, 8, nullptr},
    ElementType{"I64", 1, 8, nullptr},         ElementType{"C64", 1, 8, nullptr},
};

void append_decodable(std::string& names, const ElementType& type) {
  if (type.decode != nullptr) names += (names.empty() ? "" : ", ") + std::string(type.name);
}

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

std::string decodable_ggml_types() {
  std::string names;
  for (const GgmlType& row : kGgmlTypes) append_decodable(names, row.type);
  return names;
}

std::string decodable_safetensors_types() {
  std::string names;
  for (const ElementType& type : kSafetensorsTypes) append_decodable(names, type);
  return names;
}

}  // namespace kvs::inline io
