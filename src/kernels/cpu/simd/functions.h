// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/simd/lanes.h"
#include "kernels/cpu/simd/loops.h"

// The functions of Loops for the instruction set of this compilation.
namespace kvs::cpu {
inline namespace KVS_ISA {

void multiply(const PanelProduct& product) noexcept;
std::size_t panel_scratch(std::size_t m, std::size_t n, std::size_t k, bool bf16, bool accumulate) noexcept;
void soften(const ScoreTile& tile) noexcept;
void rescale_rows(float* mix, const float* factors, std::size_t rows, std::size_t channels) noexcept;
void divide_row(const float* mix, const float* sums, std::size_t channels, void* to, bool bf16) noexcept;
void attend_rows(const RowRun& run) noexcept;
void weigh_row(const RowRun& run, std::size_t row) noexcept;
void encode_rows(const CodedRows& coded) noexcept;
void decode_rows(const CodedRows& coded) noexcept;
void change_row_basis(const CodedRows& coded, BasisChange change) noexcept;
void activate(Activation kind, const float* x, const float* up, std::size_t count, void* out, bool bf16) noexcept;
LogitSum reduce_logits(const float* logits, std::size_t count) noexcept;
void cap_logits(float* logits, std::size_t count, float softcap) noexcept;
void add_earlier_blocks(const GramBlock& block) noexcept;
void add_within_block(const GramBlock& block) noexcept;
void extend_moment(const GramBlock& block) noexcept;
void add_distances(const DistancePairs& pairs) noexcept;

}  // namespace KVS_ISA
}  // namespace kvs::cpu
