// SPDX-License-Identifier: Apache-2.0
#include "model/layer_weights.h"

namespace kvs::inline model {

namespace {

std::size_t bytes_of(const std::unique_ptr<Weight>& weight) noexcept { return weight == nullptr ? 0 : weight->bytes(); }

}  // namespace

std::size_t LayerWeights::bytes() const noexcept {
  return attention_norm.bytes() + feed_forward_norm.bytes() + query_norm.bytes() + key_norm.bytes() +
         turned_norm.bytes() + sinks.bytes() + attention_output_norm.bytes() + feed_forward_output_norm.bytes() +
         bytes_of(qkv) + bytes_of(output) + bytes_of(output_gate) + value_norm.bytes() + recurrence.bytes() +
         latent.bytes() + mlp.bytes() + sparse.bytes() + input.bytes() + streams.bytes() + laurel.bytes();
}

std::size_t TokenIndexWeights::bytes() const noexcept {
  return bytes_of(query) + bytes_of(key) + norm.bytes() + bytes_of(weight);
}

std::size_t LatentWeights::bytes() const noexcept {
  std::size_t sum =
      index.bytes() + bytes_of(query_latent) + query_norm.bytes() + bytes_of(query) + bytes_of(row) + norm.bytes();
  for (const auto* const maps : {&key_maps, &value_maps})
    for (const std::unique_ptr<Weight>& map : *maps) sum += map->bytes();
  return sum;
}

std::size_t RecurrenceWeights::bytes() const noexcept {
  return bytes_of(input) + bytes_of(output) + taps.bytes() + taps_bias.bytes() + decay.bytes() + step_bias.bytes() +
         skip.bytes() + norm.bytes();
}

const NormWeights& LayerWeights::any_norm() const noexcept {
  for (const NormWeights* const norm : {&attention_norm, &attention_output_norm, &feed_forward_norm})
    if (norm->bytes() > 0) return *norm;
  return feed_forward_output_norm;
}

std::size_t ExpertWeights::bytes() const noexcept {
  std::size_t sum = router_norm.bytes() + input_norm.bytes() + output_norm.bytes() + dense_output_norm.bytes() +
                    shared.bytes() + bytes_of(router) + bytes_of(shared_scale) + bytes_of(latent_in) +
                    bytes_of(latent_out);
  for (const MlpWeights& expert : experts) sum += expert.bytes();
  return sum;
}

}  // namespace kvs::inline model
