// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/activation.h"
#include "kernels/row_format.h"

// The inner loops that gain from the widest registers. The sources of this folder are compiled once per instruction
// set, each time into its own namespace (KVS_ISA). loops() selects the table for the processor. All emitted symbols
// must stay in that namespace. If another file emits the same inline function, the linker keeps one copy, which an
// older processor may not be able to run. Hence plain structs and pointers (tests/structure/check_instruction_sets.sh).

namespace kvs::cpu {

/// Number of columns of a panel: see PanelProduct.
inline constexpr std::size_t kPanel = 16;
/// Number of floats in a row's running sum, for every register width.
inline constexpr std::size_t kSumLanes = 16;
/// Number of columns per group, or of keys at once, in the double-precision sums.
inline constexpr std::size_t kDoubles = 8;

/// out[m, n] = x[m, k] · B (+ bias), or out += …. B is stored in panels of kPanel columns, [panel][k][kPanel]; the last
/// panel is padded with zeros. Each element is one chain of fused multiply-adds in ascending order of k. Its bits
/// therefore depend only on its row of x and its column of B, not on m, n, tiles, threads or the register width.
struct PanelProduct {
  std::size_t m, n, k;
  bool bf16, accumulate;
  const void* x;             // [m, k], f32 or bf16
  const void* panels;        // in the type of x
  std::size_t panel_stride;  // elements between the starts of adjacent panels, at least k · kPanel
  const float* bias;         // [n] or null
  float* out;                // [m, n]
  float* scratch;            // panel_scratch() floats, aligned to a cache line
};

/// Scores of a block of queries against a run of keys in an online softmax. The heads of the block are stacked: row r
/// belongs to token r % height.
struct ScoreTile {
  bool bf16;
  std::size_t rows, height, width;
  float* scores;                    // [row, width]: q·k
  void* p;                          // [row, width], weights of the values: bf16, or f32 in the memory of scores
  const std::size_t *begin, *end;   // [token]: range of keys that its rows read, within the width
  float scale;                      // weights are 2^((score − largest) · scale)
  float inverse_cap;                // above 0: scores become tanh(q·k · inverse_cap)
  float *largest, *sum, *decrease;  // running: [row], [row, kSumLanes]; [row]: correction of earlier runs
};

/// A few rows of queries against a run of keys in their stored layout, for attention without packed operands.
struct RowRun {
  std::size_t rows, keys, head_dim;
  std::size_t stride;              // stride of scores: keys rounded up to kSumLanes
  const float *q, *k, *v;          // [row, head_dim], [key, head_dim]
  const std::size_t *begin, *end;  // [row]: range of keys that the row reads
  float scale, inverse_cap;        // as in ScoreTile
  float* scores;                   // [row, stride], scratch; its tail need not be initialised
  float *largest, *sum, *mix;      // results: [row], [row], [row, head_dim]; weights relative to largest
};

/// Rows of one head and their encoded bytes.
struct CodedRows {
  RowFormat format;
  std::size_t values, rows;  // rows: whole units if tokens are stored in units
  RowTables tables;
  std::uint8_t* bytes;
  float* x;               // [row, values]
  float* scratch;         // unit_scratch() floats
  bool in_basis = false;  // x holds rows in the basis of their encoding
};

/// Σ exp(logit − largest) over one slice of a row's logits. sum is NaN if a logit is not finite.
struct LogitSum {
  float largest = 0;
  double sum = 0;
};

/// A block of tokens in the sums over pairs of tokens of rope_gram.cpp, for 8 rows (chunks) from first_group · 8 on and
/// the columns from there on. Components are those of rope_operands.h (kComponents).
struct GramBlock {
  std::size_t tokens, groups, first_group;
  const double *queries, *keys;  // [token, component, group, kDoubles]
  double* deltas;                // [pair of the block, group, kDoubles]
  double* moment;                // [row, component, component, group, kDoubles]: Σ over keys of earlier blocks
  double* gram;                  // [row, group, kDoubles]
};

/// One query and kDoubles keys in the sums of rope_distance.cpp.
struct DistancePairs {
  std::size_t count;          // number of chunks in use
  const std::size_t* chunks;  // [count]
  const double* query;        // [chunk, component]
  const double* keys;         // [chunk, component, kDoubles]
  const double* mask;         // [kDoubles] of 0 and 1, or null for all ones
  double *deltas, *sums;      // [count, kDoubles]
};

struct Loops {
  void (*multiply)(const PanelProduct&) noexcept;
  /// Returns the number of scratch floats that a product of this shape needs.
  std::size_t (*panel_scratch)(std::size_t m, std::size_t n, std::size_t k, bool bf16, bool accumulate) noexcept;

  /// Converts scores to weights and updates the running values.
  void (*soften)(const ScoreTile&) noexcept;
  /// mix[r, :] *= factors[r].  mix: [row, channels]
  void (*rescale_rows)(float* mix, const float* factors, std::size_t rows, std::size_t channels) noexcept;
  /// to[i] = mix[i] / Σ sums, in bf16 or f32.  sums: [kSumLanes]
  void (*divide_row)(const float* mix, const float* sums, std::size_t channels, void* to, bool bf16) noexcept;

  void (*attend_rows)(const RowRun&) noexcept;
  /// Only the middle step of attend_rows(): converts a row's scores to weights (0 in the tail); sets largest and sum.
  void (*weigh_row)(const RowRun&, std::size_t row) noexcept;

  void (*encode_rows)(const CodedRows&) noexcept;                    // x to bytes
  void (*decode_rows)(const CodedRows&) noexcept;                    // bytes to x
  void (*change_row_basis)(const CodedRows&, BasisChange) noexcept;  // x in place; bytes are not read

  /// out[i] = f(x[i]), multiplied by up[i] unless `up` is null. out is bf16 or f32.
  void (*activate)(Activation kind, const float* x, const float* up, std::size_t count, void* out, bool bf16) noexcept;

  LogitSum (*reduce_logits)(const float* logits, std::size_t count) noexcept;
  /// logits = softcap · tanh(logits / softcap). Non-finite values become NaN.
  void (*cap_logits)(float* logits, std::size_t count, float softcap) noexcept;

  void (*add_earlier_blocks)(const GramBlock&) noexcept;  // gram += pairs with keys of earlier blocks
  void (*add_within_block)(const GramBlock&) noexcept;    // gram += pairs inside the block
  void (*extend_moment)(const GramBlock&) noexcept;       // moment += the block's keys
  void (*add_distances)(const DistancePairs&) noexcept;
};

/// Returns the table for this processor, or for a lower set that the environment variable DNNL_MAX_CPU_ISA names.
const Loops& loops() noexcept;

}  // namespace kvs::cpu
