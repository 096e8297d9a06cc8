// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvs::inline io {

/// One way to store numbers: plain (mostly a block of 1) or in GGUF's quantised blocks.
struct ElementType {
  std::string_view name;       // the file format's name, such as "F32", "BF16", "Q4_1"
  std::uint32_t block_values;  // numbers per block; a row is a whole number of blocks
  std::uint32_t block_bytes;
  /// Decodes blocks · block_values numbers to f32. `bytes` may be unaligned. Null if this version knows only the type's
  /// size and cannot decode it.
  void (*decode)(const std::byte* bytes, std::size_t blocks, float* out);
};

/// Returns the type with this GGUF type number (ggml.h's enum ggml_type), or nullptr if the number is unknown or was
/// removed. Decodable: all but
/// the integers and Q1_0, bit for bit like the Python package gguf 0.19.
const ElementType* element_type_of_ggml(std::uint32_t type) noexcept;
/// Returns the type with this safetensors dtype string, or nullptr. Decodable: F32, F16, BF16, F64,
/// F8_E4M3 and F8_E8M0.
const ElementType* element_type_of_safetensors(std::string_view dtype) noexcept;
/// Returns the names of all decodable types, for messages: "F32, F16, ...".
std::string decodable_ggml_types();
std::string decodable_safetensors_types();

}  // namespace kvs::inline io
