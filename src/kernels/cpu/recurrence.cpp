// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/recurrence_chunk.h"

namespace kvs::inline kernels {
namespace {

using cpu::RecurrenceChunk;

float softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }  // as PyTorch
float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

const float* at(const Columns& columns, std::size_t row) {
  return columns.rows.data() + row * columns.rows.extent(1) + columns.first;
}

/// to = x · factor, or x · factor / |x| with the epsilon of Gated DeltaNet's kernels.
void copy_row(const float* x, std::size_t count, bool unit, float factor, float* to) {
  constexpr float kEpsilon = 1e-6F;
  if (unit) {
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::size_t i = 0; i < count; ++i) squares += x[i] * x[i];
    factor /= std::sqrt(squares + kEpsilon);
  }
  for (std::size_t i = 0; i < count; ++i) to[i] = x[i] * factor;
}

/// One value head of one member.
struct Head {
  const RecurrenceInput& in;
  std::size_t member, head;

  void fill(const RecurrenceChunk& chunk, std::size_t first, std::size_t count) const {
    const std::size_t dim = in.key_dim(), key_head = in.key_head(head);
    const float query_scale = in.unit_keys ? 1 / std::sqrt(static_cast<float>(dim)) : 1;
    for (std::size_t token = 0; token < count; ++token) {
      const std::size_t row = member * in.tokens() + first + token;
      copy_row(at(in.queries, row) + key_head * dim, dim, in.unit_keys, query_scale, chunk.query(token));
      copy_row(at(in.keys, row) + key_head * dim, dim, in.unit_keys, 1, chunk.key(token));
      const float step =
          std::clamp(softplus(at(in.steps, row)[head] + in.step_bias.data()[head]), in.least_step, in.most_step);
      chunk.decay(token) = in.decay.data()[head] * step;
      chunk.beta(token) = in.strengths.empty() ? step : sigmoid(at(in.strengths, row)[head]);
    }
  }

  void run(RecurrenceChunk& chunk, float* state, const BackendView<float, 2>& out) const {
    const std::size_t tokens = in.tokens(), width = in.value_dim();
    for (std::size_t first = 0, count = 0; first < tokens; first += count) {
      count = std::min(RecurrenceChunk::kTokens, tokens - first);
      fill(chunk, first, count);
      const std::size_t row = member * tokens + first;
      chunk.run({.count = count,
                 .values = at(in.values, row) + head * width,
                 .value_stride = in.values.rows.extent(1),
                 .skip = in.skip.empty() ? 0 : in.skip.data()[head],
                 .out = out.data() + row * out.extent(1) + head * width,
                 .out_stride = out.extent(1)},
                state);
    }
  }
};

void check(const RecurrenceInput& in, const BackendView<float, 2>& out) {
  const std::size_t rows = in.keys.rows.extent(0);
  cpu::require(in.key_heads > 0 && in.value_heads % in.key_heads == 0 && in.members > 0 && rows % in.members == 0,
               "recur", "value heads in equal groups per key head, and rows in equal groups per member");
  cpu::require(in.queries.count == in.keys.count && in.keys.count % in.key_heads == 0 &&
                   in.values.count % in.value_heads == 0 && in.steps.count == in.value_heads &&
                   (in.strengths.empty() || in.strengths.count == in.value_heads),
               "recur", "columns of whole heads");
  cpu::require(in.state.shape() == std::array{in.value_heads, in.key_dim(), in.value_dim()} &&
                   out.shape() == std::array{rows, in.values.count} && in.decay.size() == in.value_heads &&
                   in.step_bias.size() == in.value_heads,
               "recur", "a state of [value_head, key_dim, value_dim] and out of [row, value_head · value_dim]");
}

}  // namespace

void CpuBackend::recur(const RecurrenceInput& in, BackendView<float, 2> out) {
  check(in, out);
  const cpu::RecurrenceShape shape{in.key_dim(), in.value_dim(), !in.strengths.empty()};
  const std::size_t units = in.members * in.value_heads, size = shape.key_dim * shape.value_dim,
                    floats = RecurrenceChunk::scratch_floats(shape), copy = (size + 15) / 16 * 16;
  reserve_scratch((floats + copy) * sizeof(float));
#pragma omp parallel for num_threads(threads_) schedule(dynamic)
  for (std::size_t unit = 0; unit < units; ++unit) {
    auto* const scratch = static_cast<float*>(scratch_[static_cast<std::size_t>(omp_get_thread_num())].data());
    const Head head{in, unit / in.value_heads, unit % in.value_heads};
    float* state = in.state.data() + head.head * size;
    if (in.members > 1) state = std::copy_n(state, size, scratch + floats) - size;
    RecurrenceChunk chunk(shape, scratch);
    head.run(chunk, state, out);
  }
}

}  // namespace kvs::inline kernels
