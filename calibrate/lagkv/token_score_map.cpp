#include "calibrate/lagkv/token_score_map.h"

#include <algorithm>

namespace kvs {

TokenScoreMap token_score_map(const TokenScores& scores, std::span<const std::size_t> layers) {
  TokenScoreMap map;
  map.width = tokens_per_column(scores.tokens);
  for (std::size_t token = 0; token < scores.tokens; token += map.width) map.first.push_back(scores.first + token);
  const std::size_t step = layers.size() > 10 ? 5 : 1;  // a tick in the middle of each fifth layer's heads
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const std::string name = std::to_string(layers[layer]);
    if (layer % step == 0)
      map.layers.push_back(
          {static_cast<double>(layer * scores.heads) + 0.5 * static_cast<double>(scores.heads - 1), name});
    for (std::size_t head = 0; head < scores.heads; ++head) {
      map.rows.push_back(name + ", head " + std::to_string(head));
      auto &largest = map.score.emplace_back(), &kept = map.kept.emplace_back();
      for (std::size_t first = 0; first < scores.tokens; first += map.width) {
        const std::size_t end = std::min(first + map.width, scores.tokens);
        largest.push_back(std::ranges::max(scores.row(layer, head).subspan(first, end - first)));
        double count = 0;
        for (std::size_t token = first; token < end; ++token) count += scores.is_kept(layer, head, token) ? 1 : 0;
        kept.push_back(count / static_cast<double>(end - first));
      }
    }
  }
  return map;
}

}  // namespace kvs
