#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "draw/chart.h"

namespace kvs {

/// Which RoPE chunks of each head stay rotated, after EliteKV, figures 2 and 8.
struct EliteMap {
  std::string heading;
  std::string head_word = "KV head";                         // "Query head" for a choice per query head
  std::vector<std::size_t> layers;                           // the model's
  std::size_t chunks = 0;                                    // rotated channels of a head / 2
  std::vector<std::vector<std::vector<std::size_t>>> elite;  // [layer][head][pick]: the chunk, in pick order
};

/// One map layer × chunk for each head; the colour is the order of the picks.
draw::Chart elite_chart(const EliteMap& map);
/// How many heads of a layer keep each chunk: one map.
draw::Chart elite_share_chart(const EliteMap& map);

/// Losses of caches of one size by r, after EliteKV's comparison of J-LRD, S-LRD and GQA.
struct EliteSweep {
  struct Trial {
    std::size_t r, d_ckv;
    bool joint;  // J-LRD; false: S-LRD
    double nll;
  };
  std::string heading;
  std::vector<Trial> trials;  // ascending in r within J-LRD and within S-LRD; at least one; all finite
  double nll_full = 0;        // of the full cache
  std::size_t gqa_heads = 0;  // of the GQA model of that size; 0: none
  double nll_gqa = 0;
};

draw::Chart elite_sweep_chart(const EliteSweep& sweep);

}  // namespace kvs
