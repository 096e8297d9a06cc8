#include "eval/elite_model.h"

#include <algorithm>

#include "core/error.h"

namespace kvs {
namespace {

/// [heads, chunks] of 1 where a chunk is not rotated; several query heads may share a KV head's set.
std::vector<std::uint8_t> unrotated_chunks(const std::vector<std::vector<std::size_t>>& elite, std::size_t heads,
                                           std::size_t chunks) {
  std::vector<std::uint8_t> mask(heads * chunks, 1);
  for (std::size_t head = 0; head < heads; ++head)
    for (const std::size_t chunk : elite[head * elite.size() / heads]) mask[head * chunks + chunk] = 0;
  return mask;
}

}  // namespace

EliteModel::EliteModel(const Model& model, std::vector<EliteLayer> layers) {
  const ModelConfig& config = model.config();
  for (EliteLayer& source : layers) {
    Layer& layer = layers_[source.layer];
    layer.unrotated_q = unrotated_chunks(source.elite, config.query_heads, config.chunks());
    layer.unrotated_k = unrotated_chunks(source.elite, config.kv_heads, config.chunks());
    if (source.projection.empty()) continue;
    const std::size_t columns = config.d_model;
    WeightSource weight{2 * config.kv_heads * config.head_dim, columns, {}, source.bias};
    weight.read = [&](std::size_t first, std::size_t count, std::span<float> out) {
      std::copy_n(source.projection.begin() + static_cast<std::ptrdiff_t>(first * columns), count * columns,
                  out.begin());
    };
    layer.projection = model.backend().make_weight(weight);
    source.projection = {};
  }
}
EliteModel::~EliteModel() = default;

void EliteModel::before_rope(LayerStates& states) {
  const auto found = layers_.find(states.layer);
  if (found == layers_.end() || !found->second.projection) return;
  const auto [members, heads, tokens, dim] = states.k.shape();
  BackendTensor<float, 2> kv(states.backend, {members * tokens, 2 * heads * dim});
  states.backend.linear(states.x, *found->second.projection, kv.view(), false);
  const BackendView<float, 4> no_queries(std::span<float>(), {members, 0, tokens, dim});
  states.backend.split_heads(kv.view(), no_queries, states.k, states.v);
}

void EliteModel::after_rope(LayerStates& states) {
  const auto found = layers_.find(states.layer);
  if (found == layers_.end()) return;
  // YaRN's and LongRoPE's factor stays in the chunks that are rotated back: their scores keep their temperature.
  const std::size_t first = states.first_position;
  states.backend.rope(states.q, states.rope, first, RopeDirection::kUnrotate, found->second.unrotated_q);
  states.backend.rope(states.k, states.rope, first, RopeDirection::kUnrotate, found->second.unrotated_k);
}

std::vector<float> merge_projection(const std::vector<float>& wk, const std::vector<double>& low_rank,
                                    const std::vector<std::vector<std::size_t>>& elite, std::size_t head_dim,
                                    std::size_t rotary_dim, std::size_t d_model) {
  const std::size_t heads = elite.size(), half = rotary_dim / 2, key_rows = heads * head_dim;
  std::vector<float> merged(2 * key_rows * d_model);
  std::size_t next = 0;  // row of low_rank
  const auto take = [&](std::size_t row) {
    const auto from = low_rank.begin() + static_cast<std::ptrdiff_t>(next++ * d_model);
    std::transform(from, from + static_cast<std::ptrdiff_t>(d_model),
                   merged.begin() + static_cast<std::ptrdiff_t>(row * d_model),
                   [](double value) { return static_cast<float>(value); });
  };
  for (std::size_t head = 0; head < heads; ++head) {
    for (std::size_t channel = 0; channel < head_dim; ++channel) {
      const std::size_t row = head * head_dim + channel;
      if (channel >= rotary_dim || std::ranges::find(elite[head], channel % half) == elite[head].end()) {
        take(row);
      } else {
        std::copy_n(wk.begin() + static_cast<std::ptrdiff_t>(row * d_model), d_model,
                    merged.begin() + static_cast<std::ptrdiff_t>(row * d_model));
      }
    }
  }
  for (std::size_t row = 0; row < key_rows; ++row) take(key_rows + row);
  if (next * d_model != low_rank.size())
    throw Error(ErrorCode::kInternal, "merge_projection", "the factors' rows do not match the elite sets");
  return merged;
}

}  // namespace kvs
