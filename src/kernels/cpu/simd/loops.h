#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/activation.h"
#include "kernels/row_format.h"

// The inner loops that gain from the widest registers. The sources of this folder are compiled once per instruction
// set, each time into a namespace of its own (KVS_ISA), and loops() picks the table for the processor. What they emit
// must stay in that namespace: of an inline function that another file emits too, the linker keeps any one copy,
// perhaps one that an older processor cannot run. Hence plain structs and pointers
// (tests/structure/check_instruction_sets.sh).

namespace kvs::cpu {

/// Columns of a panel: see PanelProduct.
inline constexpr std::size_t kPanel = 16;
/// Floats that a row's running sum takes, whatever a register holds.
inline constexpr std::size_t kSumLanes = 16;
/// Columns per group, or keys at a time, of the sums in double precision.
inline constexpr std::size_t kDoubles = 8;

/// out[m, n] = x[m, k] · B (+ bias), or out += …. B lies in panels of kPanel columns, [panel][k][kPanel], the last one
/// filled up with zeros. An element is one chain of fused multiply-adds in ascending order of k, so its bits depend on
/// its row of x and its column of B alone: not on m, n, tiles, threads or the width of registers.
struct PanelProduct {
  std::size_t m, n, k;
  bool bf16, accumulate;
  const void* x;             // [m, k], f32 or bf16
  const void* panels;        // of x's type
  std::size_t panel_stride;  // elements from one panel to the next, at least k · kPanel
  const float* bias;         // [n] or null
  float* out;                // [m, n]
  float* scratch;            // panel_scratch() floats, on a cache line
};

/// A block of queries' scores against a run of keys, on their way through an online softmax. Row r belongs to token
/// r % height of the block: its heads are stacked.
struct ScoreTile {
  bool bf16;
  std::size_t rows, height, width;
  float* scores;                          // [row, width]: q·k
  void* p;                                // [row, width], weights of the values: bf16, or f32 and then scores itself
  std::ptrdiff_t first_begin, first_end;  // token t reads keys [first_begin + t, first_end + t), cut to [0, count)
  std::size_t count;                      // keys, at most width
  float scale;                            // weights are 2^((score − largest) · scale)
  float inverse_cap;                      // above 0: scores become tanh(q·k · inverse_cap)
  float *largest, *sum, *decrease;        // running: [row], [row, kSumLanes]; [row]: what corrects earlier runs
};

/// A few rows of queries against a run of keys as they lie in memory: what attention is without packed operands.
struct RowRun {
  std::size_t rows, keys, head_dim;
  std::size_t stride;              // of scores: keys rounded up to kSumLanes
  const float *q, *k, *v;          // [row, head_dim], [key, head_dim]
  const std::size_t *begin, *end;  // [row]: the keys that it reads
  float scale, inverse_cap;        // as in ScoreTile
  float* scores;                   // [row, stride], scratch; its tail need not be set
  float *largest, *sum, *mix;      // results: [row], [row], [row, head_dim], of weights against the run's largest
};

/// Rows of one head and the bytes that hold them.
struct CodedRows {
  RowFormat format;
  std::size_t values, rows;  // rows: whole units where tokens are held together
  RowTables tables;
  std::uint8_t* bytes;
  float* x;               // [row, values]
  float* scratch;         // unit_scratch() floats
  bool in_basis = false;  // x are the rows as they are turned before they are coded
};

/// Σ exp(logit − largest) over one slice of a row's logits; sum is NaN if a logit is not finite.
struct LogitSum {
  float largest = 0;
  double sum = 0;
};

/// A block of tokens in the sums over pairs of tokens of rope_gram.cpp, for 8 rows (chunks) from first_group · 8 on and
/// the columns from there on. Components: kComponents of rope_operands.h.
struct GramBlock {
  std::size_t tokens, groups, first_group;
  const double *queries, *keys;  // [token, component, group, kDoubles]
  double* deltas;                // [pair of the block, group, kDoubles]
  double* moment;                // [row, component, component, group, kDoubles]: Σ over keys of earlier blocks
  double* gram;                  // [row, group, kDoubles]
};

/// One query and kDoubles keys in the sums of rope_distance.cpp.
struct DistancePairs {
  std::size_t count;          // chunks that take part
  const std::size_t* chunks;  // [count]
  const double* query;        // [chunk, component]
  const double* keys;         // [chunk, component, kDoubles]
  const double* mask;         // [kDoubles] of 0 and 1, or null: all ones
  double *deltas, *sums;      // [count, kDoubles]
};

struct Loops {
  void (*multiply)(const PanelProduct&) noexcept;
  /// Floats of scratch memory that a product of this shape needs.
  std::size_t (*panel_scratch)(std::size_t m, std::size_t n, std::size_t k, bool bf16, bool accumulate) noexcept;

  /// Scores to weights, and the running values with them.
  void (*soften)(const ScoreTile&) noexcept;
  /// mix[r, :] *= factors[r].  mix: [row, channels]
  void (*rescale_rows)(float* mix, const float* factors, std::size_t rows, std::size_t channels) noexcept;
  /// to[i] = mix[i] / Σ sums, in bf16 or f32.  sums: [kSumLanes]
  void (*divide_row)(const float* mix, const float* sums, std::size_t channels, void* to, bool bf16) noexcept;

  void (*attend_rows)(const RowRun&) noexcept;
  /// Its middle step alone: a row's scores to weights, zero in the tail; largest and sum of it.
  void (*weigh_row)(const RowRun&, std::size_t row) noexcept;

  void (*encode_rows)(const CodedRows&) noexcept;         // x to bytes
  void (*decode_rows)(const CodedRows&) noexcept;         // bytes to x
  void (*turn_rows)(const CodedRows&, RowTurn) noexcept;  // x in place; bytes are not read

  /// out[i] = f(x[i]), times up[i] unless `up` is null; out in bf16 or f32.
  void (*activate)(Activation kind, const float* x, const float* up, std::size_t count, void* out, bool bf16) noexcept;

  LogitSum (*reduce_logits)(const float* logits, std::size_t count) noexcept;
  /// logits = softcap · tanh(logits / softcap); what is not finite becomes NaN.
  void (*cap_logits)(float* logits, std::size_t count, float softcap) noexcept;

  void (*add_earlier_blocks)(const GramBlock&) noexcept;  // gram += pairs of the queries and keys of earlier blocks
  void (*add_within_block)(const GramBlock&) noexcept;    // gram += pairs inside the block
  void (*extend_moment)(const GramBlock&) noexcept;       // moment += the block's keys
  void (*add_distances)(const DistancePairs&) noexcept;
};

/// For this processor, or for an older one that the environment variable DNNL_MAX_CPU_ISA names.
const Loops& loops() noexcept;

}  // namespace kvs::cpu
