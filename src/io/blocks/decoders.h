#pragma once

#include <cstddef>

/// GGUF's quantised blocks to f32, bit for bit as the Python package gguf does; the table in io/element_type.cpp gives
/// each its size. Layouts after ggml's ggml-common.h. `bytes` may be unaligned; every bit pattern is a valid block
/// (a scale may be NaN or infinite, which shows in the output).
///
/// A product of an f16 scale's 11 bits with the integers of a block has at most 24 bits wherever something is added to
/// it, so it is exact in f32 and contraction to a fused multiply-add cannot change a result.
namespace kvs::blocks {

// 32 numbers with a scale (and a minimum): blocks/linear.cpp
void decode_q8_0(const std::byte* bytes, std::size_t blocks, float* out);
void decode_q4_0(const std::byte* bytes, std::size_t blocks, float* out);
void decode_q4_1(const std::byte* bytes, std::size_t blocks, float* out);
void decode_q5_0(const std::byte* bytes, std::size_t blocks, float* out);
void decode_q5_1(const std::byte* bytes, std::size_t blocks, float* out);

// 256 numbers in groups whose scales are quantised themselves ("K-quants"): blocks/super.cpp
void decode_q2_k(const std::byte* bytes, std::size_t blocks, float* out);
void decode_q3_k(const std::byte* bytes, std::size_t blocks, float* out);
void decode_q4_k(const std::byte* bytes, std::size_t blocks, float* out);
void decode_q5_k(const std::byte* bytes, std::size_t blocks, float* out);
void decode_q6_k(const std::byte* bytes, std::size_t blocks, float* out);

// 4-bit indices into a fixed list of 16 values: blocks/codebook.cpp
void decode_iq4_nl(const std::byte* bytes, std::size_t blocks, float* out);
void decode_iq4_xs(const std::byte* bytes, std::size_t blocks, float* out);
void decode_mxfp4(const std::byte* bytes, std::size_t blocks, float* out);

}  // namespace kvs::blocks
