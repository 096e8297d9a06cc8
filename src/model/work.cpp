// SPDX-License-Identifier: Apache-2.0
#include "model/work.h"

#include <algorithm>
#include <cmath>

namespace kvs::inline model {
namespace {

std::size_t widest_network(const FeedForwardConfig& block) {
  return block.is_sparse() ? std::max(block.experts.d_ff, block.experts.shared_d_ff) : block.d_ff;
}

/// Returns the rows of the projections of queries, keys and values, and of the transposed output projection.
std::size_t projected_rows(const AttentionConfig& attention) {
  if (attention.is_latent()) return 0;  // latent_values() counts them
  const std::size_t of_keys = attention.kv_layer ? 0 : attention.one_row ? 1 : 2;
  return (2 * attention.query_heads + of_keys * attention.kv_heads) * attention.head_dim;
}

/// Returns the values of a latent attention's matrices: those of queries, of the row, W_k and W_v, and of the output.
std::size_t latent_values(const AttentionConfig& attention, std::size_t d_model) {
  if (!attention.is_latent()) return 0;
  const auto& [rank, query_rank, plain_dim, value_dim, index] = attention.latent;
  const std::size_t queries = attention.query_heads * (plain_dim + attention.shared_key_dim());
  return (query_rank > 0 ? query_rank * (d_model + queries) : d_model * queries) + d_model * attention.head_dim +
         attention.query_heads * (rank * (plain_dim + value_dim) + d_model * value_dim) +
         (index.shared ? 0 : query_rank * index.heads * index.dim + d_model * (index.dim + index.heads));
}

/// Returns the rows of the projections into a recurrent block, and of the transposed output projection, without those
/// of single values of heads.
std::size_t projected_rows(const RecurrenceConfig& block) {
  const std::size_t of_values = block.kind == RecurrenceConfig::Kind::kShortConvolution ? 4 : 3;
  return 2 * block.key_rows() + of_values * block.value_rows();
}

/// Returns the number of matrices of a feed-forward network.
std::size_t matrices_of(const ModelConfig& model) { return model.arithmetic.gated ? 3 : 2; }

/// Returns the values of the router's matrix, of the maps to and from the experts' latent, and of `count` experts.
double expert_values(const ModelConfig& model, const ExpertsConfig& experts, std::size_t count) {
  const auto channels = static_cast<double>(experts.channels(model.d_model));
  return static_cast<double>(model.d_model) * static_cast<double>(experts.count + 2 * experts.latent) +
         static_cast<double>(matrices_of(model) * count * experts.d_ff) * channels;
}

/// Returns the values of the matrices of a layer that every token goes through.
double common_values(const ModelConfig& model, const LayerConfig& layer) {
  const std::size_t rows = projected_rows(layer.attention) + projected_rows(layer.recurrence);
  return static_cast<double>(model.d_model) *
             static_cast<double>(rows + matrices_of(model) * layer.feed_forward.common_d_ff()) +
         static_cast<double>(latent_values(layer.attention, model.d_model));
}

/// Returns the multiply-adds of a token with a recurrent block's matrices of state: read, written and read again.
std::size_t state_products(const RecurrenceConfig& block) {
  return 3 * block.value_heads * block.key_head_dim * block.value_head_dim;
}

/// Returns the pairs of tokens of attention over the first `tokens` tokens of a sequence: its causal half, or less with
/// a window or chunks.
double pairs_of(const AttentionConfig& attention, double tokens) {
  if (attention.chunk > 0) {
    const auto chunk = static_cast<double>(attention.chunk);
    const double whole = std::floor(tokens / chunk), rest = tokens - whole * chunk;
    return (whole * chunk * chunk + rest * rest) / 2;
  }
  const double reach = attention.window > 0 ? std::min(tokens, static_cast<double>(attention.window)) : tokens;
  return reach * reach / 2 + reach * (tokens - reach);
}

/// Returns the FLOPs of all layers' scores and of their products with V: a multiply-add each per pair and channel.
double pair_flops(const ModelConfig& model, double tokens, double past) {
  double sum = 0;
  for (const LayerConfig& layer : model.layer) {
    const AttentionConfig& attention = layer.attention;
    const auto channels = static_cast<double>(attention.query_heads * attention.head_dim);
    sum += 4 * channels * (pairs_of(attention, past + tokens) - pairs_of(attention, past));
  }
  return sum;
}

}  // namespace

std::size_t mixed_channels(const ModelConfig& model) {
  std::size_t channels = 0;
  for (const LayerConfig& layer : model.layer) channels += layer.attention.query_heads * layer.attention.head_dim;
  return channels;
}

double layer_values(const ModelConfig& model, std::size_t layer) {
  const ExpertsConfig& experts = model.layer[layer].feed_forward.experts;
  return common_values(model, model.layer[layer]) + expert_values(model, experts, experts.count);
}

double layer_products(const ModelConfig& model) {
  double sum = 0;
  for (const LayerConfig& layer : model.layer) {
    const ExpertsConfig& experts = layer.feed_forward.experts;
    sum += common_values(model, layer) + expert_values(model, experts, experts.chosen) +
           static_cast<double>(state_products(layer.recurrence));
  }
  return sum / static_cast<double>(model.layers());
}

double products_per_token(const ModelConfig& model) {
  return static_cast<double>(model.layers()) * layer_products(model) +
         static_cast<double>(model.d_model * model.vocabulary);
}

double layer_flops(const ModelConfig& c, double tokens, double past) {
  return 2 * layer_products(c) * tokens + pair_flops(c, tokens, past) / static_cast<double>(c.layers());
}

double head_flops(const ModelConfig& c, double tokens) {
  return 2 * static_cast<double>(c.d_model) * static_cast<double>(c.vocabulary) * tokens;
}

double forward_flops(const ModelConfig& c, double tokens) {
  return static_cast<double>(c.layers()) * layer_flops(c, tokens) + head_flops(c, tokens);
}

double pass_memory(const ModelConfig& c, double weight_bytes, std::size_t tokens) {
  // Residual stream, normed input, fused qkv with its head-major copy, gate and up with their product. Experts: at most
  // all tokens go through one, with copies of its input and its output.
  std::size_t width = 0, states = 0;
  for (const LayerConfig& layer : c.layer) {
    const AttentionConfig& attention = layer.attention;
    width = std::max(width, widest_network(layer.feed_forward));
    states = std::max(states, (attention.query_heads + 2 * attention.kv_heads) * attention.head_dim);
  }
  const std::size_t copies = c.has_experts() ? 3 : 0;
  const std::size_t row = (2 + copies) * c.d_model + 2 * states + 3 * width;
  return weight_bytes + static_cast<double>(tokens * row * sizeof(float));
}

double ablation_memory(const ModelConfig& config, double weight_bytes, std::size_t tokens) {
  constexpr std::size_t kBatchRows = 4096;
  return pass_memory(config, weight_bytes, tokens) + pass_memory(config, 0, std::max(tokens, kBatchRows));
}

}  // namespace kvs::inline model
