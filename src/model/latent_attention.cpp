// SPDX-License-Identifier: Apache-2.0
#include "model/latent_attention.h"

#include <algorithm>

namespace kvs::inline model {
namespace {

constexpr std::size_t kSlab = 4096;      // rows, which bounds the wide activations
constexpr float kLatentEpsilon = 1e-6F;  // of both latents' norms, in every class of Transformers
constexpr std::size_t kValue = sizeof(float);

}  // namespace

void LatentAttention::project(const Operand& x, const LatentWeights& weights, const AttentionConfig& config,
                              const LayerStates& states) {
  project_row(x, weights, config, states);
  const std::size_t members = states.members(), tokens = states.tokens(),
                    at_once = std::clamp<std::size_t>(kSlab / tokens, 1, members);
  for (std::size_t first = 0; first < members; first += at_once) {
    const std::size_t count = std::min(at_once, members - first);
    std::array<std::size_t, 4> shape = states.q.shape();
    shape[0] = count;
    const std::size_t member = states.q.size() / members;
    project_queries(operand_rows(*backend_, x, first * tokens, count * tokens), weights, config,
                    {std::span<float>(states.q.data() + first * member, count * member), shape});
  }
}

/// Writes k, whose one head is the output of one product, and v.
void LatentAttention::project_row(const Operand& x, const LatentWeights& weights, const AttentionConfig& config,
                                  const LayerStates& states) {
  const std::size_t width = config.head_dim, rank = config.latent.rank;
  const BackendView<float, 2> row(states.k.span(), {x.rows, width});
  backend_->linear(x, *weights.row, row, false);
  const BackendView<float, 2> latent = latents_.matrix(x.rows, rank);
  float* const place = row.data() + config.shared_key_dim();
  backend_->copy_pieces(latent.data(), rank * kValue, place, width * kValue, rank * kValue, x.rows);
  backend_->norm_heads(latent.reshape<4>({1, 1, x.rows, rank}), weights.norm.view(), kLatentEpsilon);
  backend_->copy_pieces(place, width * kValue, latent.data(), rank * kValue, rank * kValue, x.rows);
  backend_->copy(states.v.data(), states.k.data(), states.k.size() * kValue);
}

/// Returns what the queries come from: their latent, or x.
Operand LatentAttention::query_input(const Operand& x, const LatentWeights& weights) {
  if (weights.query_latent == nullptr) return x;
  const BackendView<float, 2> latent = latents_.matrix(x.rows, weights.query_latent->rows());
  backend_->linear(x, *weights.query_latent, latent, false);
  const Operand input = narrow_.operand(x.rows, latent.extent(1));
  backend_->rms_norm(latent, weights.query_norm.view(), kLatentEpsilon, input);
  return input;
}

std::vector<std::int32_t> LatentAttention::choose(const Operand& x, const LatentWeights& weights,
                                                  const LatentConfig& config, const LayerStates& states,
                                                  std::vector<float>* past, bool moves) {
  return index_.choose({x, query_input(x, weights), weights.index, config.index, states, past, moves});
}

/// Returns all heads' channels that do not rotate, then all that do: [row, H · (plain_dim + shared key)].
BackendView<float, 2> LatentAttention::plain_and_rotated(const Operand& x, const LatentWeights& weights) {
  const Operand input = query_input(x, weights);
  const BackendView<float, 2> queries = queries_.matrix(x.rows, weights.query->rows());
  backend_->linear(input, *weights.query, queries, false);
  return queries;
}

/// Writes q of whole members, [member, H, token, head_dim].
void LatentAttention::project_queries(const Operand& x, const LatentWeights& weights, const AttentionConfig& config,
                                      const BackendView<float, 4>& q) {
  const BackendView<float, 2> all = plain_and_rotated(x, weights);
  const auto [members, heads, tokens, width] = q.shape();
  const std::size_t plain = config.latent.plain_dim, rank = config.latent.rank, shared = config.shared_key_dim(),
                    stride = all.extent(1);
  for (std::size_t head = 0; head < heads; ++head) {
    const BackendView<float, 2> columns = columns_.matrix(x.rows, plain);
    backend_->copy_pieces(columns.data(), plain * kValue, all.data() + head * plain, stride * kValue, plain * kValue,
                          x.rows);
    const Operand input = head_.operand(x.rows, plain);
    backend_->narrow(columns, input);
    const BackendView<float, 2> mapped = mapped_.matrix(x.rows, rank);
    backend_->linear(input, *weights.key_maps[head], mapped, false);
    for (std::size_t member = 0; member < members; ++member) {
      float* const to = q.data() + (member * heads + head) * tokens * width;
      const float* const rotated = all.data() + member * tokens * stride + heads * plain + head * shared;
      backend_->copy_pieces(to, width * kValue, rotated, stride * kValue, shared * kValue, tokens);
      backend_->copy_pieces(to + shared, width * kValue, mapped.data() + member * tokens * rank, rank * kValue,
                            rank * kValue, tokens);
    }
  }
}

Operand LatentAttention::values(const Operand& attended, const LatentWeights& weights, const AttentionConfig& config) {
  const std::size_t heads = config.query_heads, rank = config.latent.rank, dim = config.latent.value_dim,
                    value = operand_bytes(*backend_, 1, 1), stride = attended.columns * value;
  const Operand out = values_.operand(attended.rows, heads * dim);
  for (std::size_t first = 0; first < attended.rows; first += kSlab) {
    const std::size_t count = std::min(kSlab, attended.rows - first);
    const auto* const rows = static_cast<const std::byte*>(operand_rows(*backend_, attended, first, count).data);
    const BackendView<float, 2> all = queries_.matrix(count, heads * dim);
    for (std::size_t head = 0; head < heads; ++head) {
      const Operand latents = head_.operand(count, rank);
      backend_->copy_pieces(latents.data, rank * value,
                            rows + (head * config.head_dim + config.shared_key_dim()) * value, stride, rank * value,
                            count);
      const BackendView<float, 2> mapped = mapped_.matrix(count, dim);
      backend_->linear(latents, *weights.value_maps[head], mapped, false);
      backend_->copy_pieces(all.data() + head * dim, heads * dim * kValue, mapped.data(), dim * kValue, dim * kValue,
                            count);
    }
    backend_->narrow(all, operand_rows(*backend_, out, first, count));
  }
  return out;
}

}  // namespace kvs::inline model
