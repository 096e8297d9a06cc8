// SPDX-License-Identifier: Apache-2.0
#include "model/latent_weights.h"

#include <algorithm>

namespace kvs::inline model {
namespace {

/// Makes a matrix of each head's rows. @param matrix  [heads · rows, columns]
std::vector<std::unique_ptr<Weight>> head_maps(Backend& backend, const TensorRows& matrix, std::size_t heads,
                                               std::size_t rows) {
  std::vector<std::unique_ptr<Weight>> maps;
  maps.reserve(heads);
  for (std::size_t head = 0; head < heads; ++head) {
    const auto read = [&](std::size_t first, std::size_t count, std::span<float> out) {
      matrix.read(head * rows + first, count, out);
    };
    maps.push_back(backend.make_weight({.rows = rows, .columns = matrix.columns(), .read = read}));
  }
  return maps;
}

}  // namespace

std::vector<std::unique_ptr<Weight>> make_key_maps(Backend& backend, const TensorRows& keys, bool transposed,
                                                   const AttentionConfig& config) {
  if (transposed) return head_maps(backend, keys, config.query_heads, config.latent.rank);
  const std::size_t plain = config.latent.plain_dim, rank = config.latent.rank;
  std::vector<float> head_keys(plain * rank);
  std::vector<std::unique_ptr<Weight>> maps;
  maps.reserve(config.query_heads);
  for (std::size_t head = 0; head < config.query_heads; ++head) {
    keys.read(head * plain, plain, head_keys);
    const auto read = [&](std::size_t first, std::size_t count, std::span<float> out) {
      for (std::size_t row = 0; row < count; ++row)
        for (std::size_t column = 0; column < plain; ++column)
          out[row * plain + column] = head_keys[column * rank + first + row];
    };
    maps.push_back(backend.make_weight({.rows = rank, .columns = plain, .read = read}));
  }
  return maps;
}

std::vector<std::unique_ptr<Weight>> make_value_maps(Backend& backend, const TensorRows& values,
                                                     const AttentionConfig& config) {
  return head_maps(backend, values, config.query_heads, config.latent.value_dim);
}

std::vector<float> absorbed_output(const TensorRows& output, const TensorRows& values, const AttentionConfig& config) {
  const std::size_t heads = config.query_heads, dim = config.latent.value_dim, rank = config.latent.rank;
  std::vector<float> out(output.rows() * output.columns()), maps(values.rows() * rank),
      absorbed(output.rows() * heads * config.head_dim);
  output.read(0, output.rows(), out);
  values.read(0, values.rows(), maps);
#pragma omp parallel for schedule(static)
  for (std::size_t row = 0; row < output.rows(); ++row)
    for (std::size_t channel = 0; channel < heads * dim; ++channel) {
      float* const to = &absorbed[(row * heads + channel / dim) * config.head_dim + config.shared_key_dim()];
      const float factor = out[row * heads * dim + channel];
      for (std::size_t column = 0; column < rank; ++column) to[column] += factor * maps[channel * rank + column];
    }
  return absorbed;
}

}  // namespace kvs::inline model
