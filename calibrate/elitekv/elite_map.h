#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calibrate/elitekv/config.h"
#include "draw/figure.h"
#include "model/config.h"

namespace kvs {

/// RoPElite's choice, after EliteKV, figures 2 and 8.
struct EliteMap {
  std::string heading;
  std::string head_word = "KV head";                         // "Query head" for a choice per query head
  std::vector<std::size_t> layers;                           // the model's
  std::size_t chunks = 0;                                    // rotated channels of a head / 2
  std::vector<std::vector<std::vector<std::size_t>>> elite;  // [layer][head][pick]: the chunk, in pick order
};

/// The map of a config that was calibrated on so many documents of so many tokens.
EliteMap elite_map(const EliteConfig& config, const ModelConfig& model, std::size_t documents, std::size_t tokens);

FigureImages render_elite_map(const EliteMap& map);

}  // namespace kvs
