// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvs::inline io {

/// gguf.md: enum gguf_metadata_value_type.
enum class GgufType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};
inline constexpr std::uint32_t kGgufTypes = 13;

inline constexpr std::uint64_t kGgufMostKeyBytes = 65535;  // the format's own limit
inline constexpr std::size_t kGgufNameBytes = 64;          // ggml.h: GGML_MAX_NAME, which includes a final NUL
inline constexpr std::uint32_t kGgufMostAxes = 4;          // ggml.h: GGML_MAX_DIMS

}  // namespace kvs::inline io
