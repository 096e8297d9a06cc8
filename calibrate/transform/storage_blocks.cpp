// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/storage_blocks.h"

#include "calibrate/transform/entropy_model.h"
#include "calibrate/transform/level_trellis.h"

namespace kvs::inline calibrate {

LevelBlock encode_block(const TransformProducts& products, std::span<const float> rows) {
  return encode_levels(*products.entropy, products.trellis->choose_block(rows, products.scales), products.scales);
}

void decode_block(const TransformProducts& products, const LevelBlock& block, std::size_t first,
                  std::span<float> rows) {
  const std::span<const std::uint8_t> scales = products.scales;
  const std::vector<std::int32_t> magnitudes = decode_levels(*products.entropy, block, scales);
  for (std::size_t n = 0; n < rows.size(); ++n)
    rows[n] = products.entropy->value(scales[n % scales.size()], magnitudes[first * scales.size() + n]);
}

}  // namespace kvs::inline calibrate
