// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "io/gguf_blocks/decoders.h"
#include "io/gguf_blocks/load.h"

namespace kvs::blocks {
namespace {

// The decoders first copy the fields to locals: `bytes` may alias `out`, which would prevent vectorised loops.
constexpr std::size_t kBlock = 32, kHalf = kBlock / 2;
using Nibbles = std::array<std::uint8_t, kHalf>;  // number i in the low half of byte i, number 16 + i in its high half

}  // namespace

void decode_q8_0(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, bytes += 34, out += kBlock) {
    const float d = load_f16(bytes);
    const auto q = load<std::array<std::int8_t, kBlock>>(bytes + 2);
    for (std::size_t i = 0; i < kBlock; ++i) out[i] = d * static_cast<float>(q[i]);
  }
}

void decode_q4_0(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, bytes += 18, out += kBlock) {
    const float d = load_f16(bytes);
    const auto q = load<Nibbles>(bytes + 2);
    for (std::size_t i = 0; i < kHalf; ++i) {
      out[i] = d * static_cast<float>((q[i] & 15) - 8);
      out[kHalf + i] = d * static_cast<float>((q[i] >> 4) - 8);
    }
  }
}

void decode_q4_1(const std::byte* bytes, std::size_t blocks, float* out) {
  for (std::size_t block = 0; block < blocks; ++block, bytes += 20, out += kBlock) {
    const float d = load_f16(bytes), m = load_f16(bytes + 2);
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
    const float d = load_f16(bytes);
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
    const float d = load_f16(bytes), m = load_f16(bytes + 2);
    const auto fifth = load<std::uint32_t>(bytes + 4);
    const auto q = load<Nibbles>(bytes + 8);
    for (std::uint32_t i = 0; i < kHalf; ++i) {
      out[i] = d * static_cast<float>(static_cast<int>((q[i] & 15U) | ((fifth >> i) & 1U) << 4)) + m;
      out[kHalf + i] = d * static_cast<float>(static_cast<int>((q[i] >> 4U) | ((fifth >> (kHalf + i)) & 1U) << 4)) + m;
    }
  }
}

}  // namespace kvs::blocks
