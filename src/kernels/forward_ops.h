// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "core/dtype.h"
#include "kernels/activation.h"
#include "kernels/device_memory.h"

namespace kvs::inline kernels {

/// A matrix in the backend's compute type (f32 or bf16), input of matrix products. Row-major, packed, backend memory.
struct Operand {
  void* data = nullptr;
  std::size_t rows = 0, columns = 0;
};

/// A weight matrix packed by the backend for y = x Wᵀ. Only the Backend that made it knows its layout.
class Weight {
 public:
  virtual ~Weight() = default;
  DType type() const noexcept { return type_; }
  std::size_t rows() const noexcept { return rows_; }        // output channels
  std::size_t columns() const noexcept { return columns_; }  // input channels
  std::size_t bytes() const noexcept { return bytes_; }      // backend memory in use

 protected:
  Weight(DType type, std::size_t rows, std::size_t columns, std::size_t bytes)
      : type_(type), rows_(rows), columns_(columns), bytes_(bytes) {}

 private:
  DType type_;
  std::size_t rows_, columns_, bytes_;
};

/// The source of a weight's rows. It is read in consecutive slabs of rows, so no whole f32 copy need exist.
struct WeightSource {
  std::size_t rows = 0, columns = 0;
  /// Fills out (count · columns values) with rows [first, first + count). Called from one thread.
  std::function<void(std::size_t first, std::size_t count, std::span<float> out)> read;
  /// One bias per row, or empty.
  std::span<const float> bias = {};
  bool f32 = false;  // true: for linear_f32(); false: in the compute type
};

/// cos and sin of position · frequency for positions 0 … positions − 1, in f32 backend memory.
struct RopeTable {
  BackendView<const float, 2> cosine, sine;  // [position, chunk]: 2 · chunks ≤ head_dim channels are rotated
  float factor = 1;                          // attention factor of YaRN and LongRoPE, already included in both tables
};

/// kForward: x → rotated x · factor. kInverse: the inverse of kForward. kUnrotate: undoes the rotation and keeps the
/// factor. Scores of unrotated states then keep the temperature that the model was trained with.
enum class RopeDirection { kForward, kInverse, kUnrotate };

/// Factors of a table's cosines and sines for a direction: exactly ±1 if the table's factor is 1.
struct RopeTurn {
  float cosine, sine;
};
constexpr RopeTurn rope_turn(RopeDirection direction, float factor) noexcept {
  if (direction == RopeDirection::kForward) return {1, 1};
  const float scale = direction == RopeDirection::kInverse ? 1 / (factor * factor) : 1 / factor;
  return {scale, -scale};
}

/// Parameters of ForwardOps::clamped_up_projection().
struct SwigluClamp {
  float alpha = 0, limit = 0;  // limit 0: not in use
};

/// The operations of a forward pass, except attention.
class ForwardOps {
 public:
  virtual ~ForwardOps() = default;

  virtual std::unique_ptr<Weight> make_weight(const WeightSource& source) = 0;
  /// out = x · gain / sqrt(mean(x²) + epsilon), per row. x: [row, column], gain: [column].
  virtual void rms_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon,
                        Operand out) = 0;
  /// sum += x · gain / sqrt(mean(x²) + epsilon), per row: adds a block's normalised output to the residual stream. x,
  /// sum: [row, column], gain: [column].
  virtual void rms_norm_add(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon,
                            BackendView<float, 2> sum) = 0;
  /// out = (x − mean(x)) · gain / sqrt(variance(x) + epsilon) + bias, per row. The variance is over all columns.
  /// x: [row, column]; gain, bias: [column].
  virtual void layer_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain,
                          BackendView<const float, 1> bias, float epsilon, Operand out) = 0;
  /// x = x · gain / sqrt(mean(x²) + epsilon) for queries or keys, in place. x: [member, head, token, head_dim].
  /// @param gain  [head_dim]: the mean is over one head's channels; [head · head_dim]: over all heads of a token
  virtual void norm_heads(BackendView<float, 4> x, BackendView<const float, 1> gain, float epsilon) = 0;
  /// x = (x − mean(x)) · gain / sqrt(variance(x) + epsilon) + bias over each head's channels, in place. x: as in
  /// norm_heads(). @throws Error kUnsupported on a device other than the CPU, like the next three.
  /// @param gain, bias  [head_dim], or [head · head_dim]: each head has its own
  virtual void layer_norm_heads(BackendView<float, 4> x, BackendView<const float, 1> gain,
                                BackendView<const float, 1> bias, float epsilon);
  /// x = min(max(x, −limit), limit), in place. x: [member, head, token, head_dim].
  virtual void clamp(BackendView<float, 4> x, float limit);
  /// x[:, :, t] *= factors[t], in place. x: [member, head, token, head_dim]; factors: host memory.
  virtual void scale_tokens(BackendView<float, 4> x, std::span<const float> factors);
  /// out = x Wᵀ (+ bias); with `accumulate` out += … (the residual stream). x: [row, W.columns], out: [row, W.rows].
  virtual void linear(Operand x, const Weight& weight, BackendView<float, 2> out, bool accumulate) = 0;
  /// Like linear(), for f32 operands in f32 with any compute type. The weight must have been made with `f32`.
  virtual void linear_f32(BackendView<const float, 2> x, const Weight& weight, BackendView<float, 2> out,
                          bool accumulate) = 0;
  /// out[r] = scale · table[rows[r]] in f32 (token embeddings). out: [row, table.columns]; rows: host memory.
  virtual void gather(Operand table, std::span<const std::int32_t> rows, float scale, BackendView<float, 2> out) = 0;
  /// sum[rows[r]] += weights[r] · x[r]: adds an expert's outputs to those of its tokens. x: [row, column]; rows and
  /// weights: host memory; no row twice. @throws Error kUnsupported on a device without experts.
  virtual void add_rows(BackendView<const float, 2> x, std::span<const std::int32_t> rows,
                        std::span<const float> weights, BackendView<float, 2> sum);
  /// Converts x to the compute type. x, out: [row, column].
  virtual void narrow(BackendView<const float, 2> x, Operand out) = 0;
  /// Splits rows [q heads | k heads | v heads] into head-major tensors.
  /// qkv: [member · token, (H + 2G) · head_dim]; q: [member, H, token, head_dim]; k, v: [member, G, token, head_dim],
  /// G may be 0.
  virtual void split_heads(BackendView<const float, 2> qkv, BackendView<float, 4> q, BackendView<float, 4> k,
                           BackendView<float, 4> v) = 0;
  /// Rotates chunk c, channels (c, c + chunks), of the token at position p by ±p·θ_c, in place. Channels from 2 ·
  /// chunks on are unchanged. x: [member, head, token, head_dim]; token t is at position first_position + t.
  /// @param chunks  empty: all of the table's chunks; else [head, chunk] of 0 or 1 (host memory): only chunks with 1
  virtual void rope(BackendView<float, 4> x, const RopeTable& table, std::size_t first_position,
                    RopeDirection direction, std::span<const std::uint8_t> chunks) = 0;
  /// First half of a feed-forward block: out = activation(y) with y = x Wᵀ (+ bias), or activation(gate) · up if W has
  /// twice the rows, the gate's first. x: [row, W.columns], out: [row, column]. y is stored in f32 or the compute type.
  virtual void up_projection(Operand x, const Weight& weight, Activation activation, Operand out) = 0;
  /// Like up_projection() for a gate g and up values u, with out = g' · sigmoid(alpha · g') · (u' + 1), where
  /// g' = min(g, limit) and u' = min(max(u, −limit), limit). Source: gpt-oss (2025), arXiv:2508.10925.
  virtual void clamped_up_projection(Operand x, const Weight& weight, const SwigluClamp& clamp, Operand out);
  /// Like up_projection() for a gate g, with relu(g − (mean(g) + deviations · std(g))) in place of g; the mean and the
  /// standard deviation are those of the row's gates, over their number. Source: Gemma 3n in Transformers 5.24.
  virtual void sparse_up_projection(Operand x, const Weight& weight, Activation activation, float deviations,
                                    Operand out);
  /// nll[r] = log Σ_v exp(z[r, v]) − z[r, target[r]] in nats, with z = x[r]·W[v]. The vocabulary is processed in
  /// slices. x: [row, W.columns]. Both spans are host memory with x.rows entries. A row with a negative target is
  /// skipped; its entry is 0.
  /// @param softcap  above 0: z is first replaced by softcap · tanh(z / softcap)
  /// @throws Error kData if a logit of a row that is not skipped is not finite.
  virtual void cross_entropy(Operand x, const Weight& head, std::span<const std::int32_t> targets, std::span<float> nll,
                             float softcap) = 0;
};

}  // namespace kvs::inline kernels
