// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

/// Decoders of GGUF's quantised blocks to f32. Results equal those of the Python package gguf bit for bit. The table in
/// io/element_type.cpp holds the block sizes. Layouts follow ggml's ggml-common.h. `bytes` may be unaligned. Every bit
/// pattern is a valid block (a NaN or infinite scale shows in the output).
///
/// Wherever a decoder adds to a product of an f16 scale (11 bits) and a block's integers, the product has at most 24
/// bits. It is exact in f32, so contraction to a fused multiply-add cannot change a result.
namespace kvs::blocks {

// 32 numbers with one scale (and one minimum): blocks/linear.cpp
void decode_q8_0(const std::byte* bytes, std::size_t blocks, float* out);
void decode_q4_0(const std::byte* bytes, std::size_t blocks, float* out);
void decode_q4_1(const std::byte* bytes, std::size_t blocks, float* out);
void decode_q5_0(const std::byte* bytes, std::size_t blocks, float* out);
void decode_q5_1(const std::byte* bytes, std::size_t blocks, float* out);

// 256 numbers in groups whose scales are quantised too ("K-quants"): blocks/super.cpp
void decode_q2_k(const std::byte* bytes, std::size_t blocks, float* out);
void decode_q3_k(const std::byte* bytes, std::size_t blocks, float* out);
void decode_q4_k(const std::byte* bytes, std::size_t blocks, float* out);
void decode_q5_k(const std::byte* bytes, std::size_t blocks, float* out);
void decode_q6_k(const std::byte* bytes, std::size_t blocks, float* out);

// 4-bit indices into a fixed list of 16 values: blocks/codebook.cpp
void decode_iq4_nl(const std::byte* bytes, std::size_t blocks, float* out);
void decode_iq4_xs(const std::byte* bytes, std::size_t blocks, float* out);
void decode_mxfp4(const std::byte* bytes, std::size_t blocks, float* out);
void decode_nvfp4(const std::byte* bytes, std::size_t blocks, float* out);  // 64 numbers; without the tensor's scale

// 256 numbers in groups of 8 or 4, which are rows of a fixed grid: blocks/grid.cpp
void decode_iq1_s(const std::byte* bytes, std::size_t blocks, float* out);
void decode_iq1_m(const std::byte* bytes, std::size_t blocks, float* out);
void decode_iq2_xxs(const std::byte* bytes, std::size_t blocks, float* out);
void decode_iq2_xs(const std::byte* bytes, std::size_t blocks, float* out);
void decode_iq2_s(const std::byte* bytes, std::size_t blocks, float* out);
void decode_iq3_xxs(const std::byte* bytes, std::size_t blocks, float* out);
void decode_iq3_s(const std::byte* bytes, std::size_t blocks, float* out);

// 256 numbers that are -1, 0 or 1 (TQ2_0: also 2) times one scale: blocks/ternary.cpp
void decode_tq1_0(const std::byte* bytes, std::size_t blocks, float* out);
void decode_tq2_0(const std::byte* bytes, std::size_t blocks, float* out);

}  // namespace kvs::blocks
