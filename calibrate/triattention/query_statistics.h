// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "io/json.h"
#include "io/output_tensor.h"

namespace kvs::inline calibrate {

/// The queries of one layer before RoPE, averaged over a text. A band is a RoPE chunk, whose two channels are a complex
/// number, or a channel that never rotates: first the chunks, then these channels.
struct QueryStatistics {
  std::size_t layer = 0, query_heads = 0, head_dim = 0;
  std::size_t chunks = 0;             // RoPE chunks of a head: chunk c is the channels (c, c + chunks)
  std::vector<float> mean = {};       // E[q], [query_head, head_dim]
  std::vector<float> magnitude = {};  // E[|q_f|], [query_head, band]

  std::size_t bands() const noexcept { return head_dim - chunks; }
  /// |E[q_f]| of a head's band.
  double mean_magnitude(std::size_t head, std::size_t band) const;
  /// Σ_f |E[q_f]| / Σ_f E[|q_f|] over bands and heads, from 0 to 1: how concentrated the queries are around their
  /// means. Source: the mean resultant length R_f of TriAttention, section 3.1, pooled over bands.
  double resultant_length() const;
};

/// Returns the tensors of the file next to a config: `layers.N.query_mean` and `layers.N.query_magnitude`.
std::vector<OutputTensor> statistics_tensors(const std::vector<QueryStatistics>& layers);
/// Reads these tensors, of the layers with a KV cache. @param path  config checked by check_config()
/// @throws Error kInput naming the tensor, kData for NaN or infinity
std::vector<QueryStatistics> read_statistics(const Json& config, const std::filesystem::path& path);

/// Returns the bytes of the statistics. The caches of all sequences share them.
std::size_t shared_bytes(const std::vector<QueryStatistics>& layers);

}  // namespace kvs::inline calibrate
