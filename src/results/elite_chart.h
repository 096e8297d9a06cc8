// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "draw/chart.h"

namespace kvs::inline results {

/// The RoPE chunks of each head that stay rotated (EliteKV, figures 2 and 8).
struct EliteMap {
  std::string heading;
  std::string head_word = "KV head";                         // "Query head" for a choice per query head
  std::vector<std::size_t> layers;                           // layer indices of the model
  std::size_t chunks = 0;                                    // rotated channels of a head / 2
  std::vector<std::vector<std::vector<std::size_t>>> elite;  // [layer][head][pick]: the chunk, in pick order
};

/// Draws one layer × chunk map for each head. The colour shows the order of the picks.
draw::Chart elite_chart(const EliteMap& map);
/// Draws one layer × chunk map of the number of heads that keep each chunk.
draw::Chart elite_share_chart(const EliteMap& map);

/// Losses of caches of equal size by r (EliteKV's comparison of J-LRD, S-LRD and GQA).
struct EliteSweep {
  struct Trial {
    std::size_t r, d_ckv;
    bool joint;  // J-LRD; false: S-LRD
    double nll;
  };
  std::string heading;
  std::vector<Trial> trials;  // ascending in r within J-LRD and within S-LRD; at least one; all finite
  double nll_full = 0;        // NLL of the full cache
  std::size_t gqa_heads = 0;  // KV heads of the GQA model of equal size; 0: no GQA model
  double nll_gqa = 0;
};

draw::Chart elite_sweep_chart(const EliteSweep& sweep);

}  // namespace kvs::inline results
