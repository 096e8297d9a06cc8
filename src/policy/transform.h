#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "policy/layer_cache.h"

namespace kvs {

/// What transform coding does to one layer's rows x: a token's keys before RoPE of all KV heads, then its values.
struct TransformLayer {
  std::size_t layer = 0;
  std::vector<float> mean;        // [value]
  std::vector<float> analysis;    // [coefficient, value]: coefficients = analysis · (x − mean), of unit variance
  std::vector<float> synthesis;   // [value, coefficient]: its inverse
  std::vector<std::size_t> bits;  // [coefficient], 0 to 8
  std::vector<float> weights;     // [coefficient]: what a squared error of one costs, relative to the costliest
  float threshold = 0;            // a token whose errors cost more stays in full,
  double outliers = 0;            // of coded tokens this share; each beyond it doubles the threshold: kMoreOutliers
  std::vector<float> books;       // [bits 0 … 8][state]: codecs/trellis.h; all layers have the same
  std::size_t sinks = 0;          // first tokens that stay in full

  std::size_t values() const noexcept { return mean.size(); }
};

/// Tokens of a layer at most that stay in full beyond their share.
inline constexpr std::size_t kMoreOutliers = 2;

struct TransformShape {
  std::size_t kv_heads = 0, head_dim = 0;
};

/// A layer's products in a backend's memory: what every sequence shares.
class TransformProducts;
std::shared_ptr<const TransformProducts> make_transform_products(Backend& backend, const TransformLayer& layer,
                                                                 const TransformShape& shape);

/// A transform coder as a cache: of each token it holds one row of codes, the coefficients of its keys before RoPE and
/// its values together. Sinks are held in full, and so are, in q8_0 beside their codes, tokens that come out worse than
/// the layer's threshold; text with more of them than was expected raises it. A token is coded when it comes, and
/// everybody, itself included, reads what it is held as. Every group of tokens gets the whole past back, rotated:
/// 2 · (2Gd)² FLOPs a cached token and layer. Ours; docs/transform.md derives it.
std::unique_ptr<LayerCache> make_transform_cache(std::shared_ptr<const TransformProducts> products);
/// Stored bytes of an outlier: keys and values in q8_0, f16 for heads that do not divide into its blocks, and its
/// place.
std::size_t outlier_bytes(const TransformShape& shape) noexcept;
/// Leaves in the keys, before RoPE, and values of a document from its first token on what this cache holds them as.
void hold_transformed(std::shared_ptr<const TransformProducts> products, const LayerStates& states);

}  // namespace kvs
