// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include "kernels/cpu/attention_block.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/held_rows.h"
#include "kernels/cpu/packed_states.h"
#include "kernels/cpu/row_attention.h"
#include "kernels/cpu/tiles.h"

namespace kvs::inline kernels {
namespace {

using cpu::StatesLayout;

/// Keys and values [member, kv_head, token, head_dim], and their position in packed form [member, kv_head, chunk].
struct States {
  explicit States(const PastKv& rows)
      : k(rows, true, false),
        v(rows, false, false),
        members(rows.k.shape[0]),
        heads(rows.k.shape[1]),
        tokens(rows.count()) {}

  std::size_t chunks() const noexcept { return (tokens + StatesLayout::kChunk - 1) / StatesLayout::kChunk; }
  std::size_t all_chunks() const noexcept { return members * heads * chunks(); }
  std::size_t count(std::size_t chunk) const noexcept {
    return std::min(StatesLayout::kChunk, tokens - chunk * StatesLayout::kChunk);
  }
  std::size_t read_floats() const noexcept {
    return std::max(k.spare_floats(StatesLayout::kChunk), v.spare_floats(StatesLayout::kChunk));
  }

  cpu::PastReader k, v;
  std::size_t members, heads, tokens, first_chunk = 0;
};

/// Returns the packed runs that queries of (member, head) read, oldest first.
/// @param position  of the first own token
std::vector<cpu::KeyRun> runs_of(const States& past, const States& own, std::size_t position, const std::byte* packed,
                                 std::size_t bytes, std::size_t member, std::size_t head) {
  std::vector<cpu::KeyRun> runs;
  for (const auto& [states, causal] : {std::pair(past, false), std::pair(own, true)}) {
    const std::size_t from = states.members == 1 ? 0 : member;
    for (std::size_t chunk = 0; chunk < states.chunks(); ++chunk) {
      const std::size_t index = states.first_chunk + (from * states.heads + head) * states.chunks() + chunk;
      runs.push_back({.chunk = packed + index * bytes,
                      .count = states.count(chunk),
                      .causal = causal,
                      .position = (causal ? position : 0) + chunk * StatesLayout::kChunk});
    }
  }
  return runs;
}

/// Packs every chunk of `states` in parallel, because this reads all keys and values.
void pack_states(const StatesLayout& layout, const States& states, std::byte* packed,
                 const std::vector<cpu::AlignedBuffer>& scratch) {
  const std::size_t per_head = states.chunks(), all = states.all_chunks(), head_dim = layout.head_dim();
  std::exception_ptr refusal;
#pragma omp parallel for num_threads(static_cast <int>(scratch.size())) schedule(dynamic, 1)
  for (std::size_t i = 0; i < all; ++i) {
    const std::size_t pair = i / per_head, member = pair / states.heads, head = pair % states.heads;
    const std::size_t first = i % per_head * StatesLayout::kChunk, count = states.count(i % per_head);
    auto* spare = static_cast<float*>(scratch[cpu::this_worker()].data());
    float *const keys = spare + StatesLayout::kChunk * head_dim, *const values = keys + states.read_floats();
    try {
      layout.pack(states.k.read(member, head, first, count, keys), states.v.read(member, head, first, count, values),
                  count, spare, packed + (states.first_chunk + i) * layout.chunk_bytes());
    } catch (...) {  // an exception must not leave the parallel region
#pragma omp critical
      refusal = std::current_exception();
    }
  }
  if (refusal) std::rethrow_exception(refusal);
}

}  // namespace

void CpuBackend::attention(const AttentionInput& input, Operand out) {
  check_attention(input, out);
  if (input.q.empty()) return;
  if (cpu::are_few_tokens(input)) return cpu::few_tokens_attention(input, compute_type(), out, threads_, row_scratch_);
  const std::size_t members = input.q.extent(0), query_heads = input.q.extent(1), tokens = input.q.extent(2),
                    head_dim = input.q.extent(3), kv_heads = input.k.extent(1), group = query_heads / kv_heads,
                    before = input.past.tokens_before();
  const StatesLayout layout(*products_, head_dim);
  const States past(input.past);
  States own({input.k, input.v, tokens});
  own.first_chunk = past.all_chunks();
  const std::size_t step = cpu::AttentionBlock::block_tokens(group, tokens), blocks = (tokens + step - 1) / step;
  // A task is a block of tokens in the query heads of a KV head; a single query head where these are few, for even
  // shares of the threads.
  const bool are_few = blocks * members * kv_heads < 4 * static_cast<std::size_t>(threads_);
  const std::size_t heads = are_few ? 1 : group, units = members * query_heads / heads;
  const cpu::AttentionBlock block(*products_, layout, heads, step, tokens,
                                  {.scale = input.scale,
                                   .softcap = input.softcap,
                                   .window = input.window,
                                   .chunk = input.chunk,
                                   .first_position = input.first_position,
                                   .settling = input.past.settling});
  reserve_scratch(
      std::max(block.scratch_bytes(), (StatesLayout::kChunk * head_dim + 2 * past.read_floats()) * sizeof(float)));
  packed_states_.reserve((own.first_chunk + own.all_chunks()) * layout.chunk_bytes());
  auto* packed = static_cast<std::byte*>(packed_states_.data());
  const cpu::OneThreadEach guard;
  pack_states(layout, past, packed, scratch_);
  pack_states(layout, own, packed, scratch_);

  std::atomic<bool> refused = false;
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 1)
  for (std::size_t task = 0; task < blocks * units; ++task) {
    const std::size_t first = (blocks - 1 - task / units) * step;  // the longest rows first
    const std::size_t unit = task % units * heads, member = unit / query_heads, head = unit % query_heads;
    const std::size_t row = member * tokens + first, column = head * head_dim;
    const cpu::QueryBlock queries{
        .q = input.q.data() + (unit * tokens + first) * head_dim,
        .head_stride = tokens * head_dim,
        .tokens = std::min(step, tokens - first),
        .position = before + first,
        .sinks = input.sinks.empty() ? nullptr : input.sinks.data() + head,
        .out = static_cast<std::byte*>(out.data) + (row * out.columns + column) * item_size(compute_type()),
        .out_stride = out.columns};
    const std::size_t worker = cpu::this_worker();
    const auto runs = runs_of(past, own, before, packed, layout.chunk_bytes(), member, head / group);
    if (!block.run(queries, runs, worker, scratch_[worker].data())) refused = true;
  }
  cpu::require(!refused, "attention", "its products to run");
}

}  // namespace kvs::inline kernels
