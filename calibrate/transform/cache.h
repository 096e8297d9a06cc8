#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "caches/layer_cache.h"

namespace kvs {

/// What is coded as one row, with a gain of its own.
enum class TransformRows : std::uint8_t {  // in the order of kTransformRowNames
  kLayer,                                  // all of a token: coefficients across heads, keys and values
  kHead,  // a head's keys by channel, and a head's values in a basis of their own: attention reads them as they are
};

inline constexpr std::array<std::string_view, 2> kTransformRowNames{"layer", "head"};

/// What transform coding does to one layer's values x of a token: the keys before RoPE of all KV heads, then the
/// values.
struct TransformLayer {
  std::size_t layer = 0;
  TransformRows rows = TransformRows::kLayer;
  std::vector<float> mean;  // [value]
  /// Coefficients, of unit variance, = analysis · (x − mean), and synthesis is its inverse. kLayer: [coefficient,
  /// value] and [value, coefficient]; kHead, of values: [kv_head, coefficient, channel] and [kv_head, channel,
  /// coefficient].
  std::vector<float> analysis, synthesis;
  std::vector<float> deviations = {};  // kHead, of keys: [kv_head · channel]; coefficients are (x − mean) / deviation
  std::vector<std::size_t> bits;       // [coefficient], 0 to 8; kHead: those of keys first, head by head
  std::vector<float> weights;          // [coefficient]: what a squared error of one costs, relative to the costliest
  double threshold = 0;                // a token whose errors cost more stays in full; kLayer alone
  double outliers = 0;       // of coded tokens this share; each beyond it doubles the threshold: kMoreOutliers
  std::vector<float> books;  // [bits 0 … 8][state]: codecs/trellis.h; all layers have the same
  std::size_t sinks = 0;     // first tokens that stay in full
  std::size_t recent = 0;    // tokens that are coded together, once twice as many wait in q8_0

  std::size_t values() const noexcept { return mean.size(); }
};

/// Tokens of a layer at most that stay in full beyond their share.
inline constexpr std::size_t kMoreOutliers = 2;

struct TransformShape {
  std::size_t kv_heads = 0, head_dim = 0;
};

/// Coefficients [first, first + count · size) of a layer are coded as `count` rows of as many bytes each.
struct RowSet {
  std::size_t first = 0, count = 0, size = 0;
};
std::vector<RowSet> row_sets(TransformRows rows, const TransformShape& shape);

/// A layer's products in a backend's memory: what every sequence shares.
class TransformProducts;
std::shared_ptr<const TransformProducts> make_transform_products(Backend& backend, const TransformLayer& layer,
                                                                 const TransformShape& shape);

/// What is coded of a token; the other side stays as it comes, for measurements.
enum class CodedSides { kBoth, kKeys, kValues };

/// A transform coder as a cache: of each token it holds codes of the keys before RoPE and of the values. Sinks are held
/// in full. Tokens wait in q8_0: when 2 · recent do, the older half is coded. Everybody reads what a token is held as,
/// itself included. Where layers have a sliding window what is older is dropped. Ours; docs/transform.md derives it.
///  - kLayer: a row for all of a token. Tokens that come out worse than the layer's threshold are also held in q8_0;
///    text with more of them than was expected raises it. Every group of tokens gets the whole past back, rotated:
///    2 · (2Gd)² FLOPs a cached token and layer.
///  - kHead: a single token reads the codes where they lie, keys rotated when read, values by their coefficients, from
///    which each query head's result comes back at the end: 2Gd values decoded a cached token and layer.
/// @param sides  other than both only for a single group of tokens
std::unique_ptr<LayerCache> make_transform_cache(std::shared_ptr<const TransformProducts> products,
                                                 CodedSides sides = CodedSides::kBoth);
/// Stored bytes of a token that waits: keys and values in q8_0, f16 for heads that do not divide into its blocks.
std::size_t recent_bytes(const TransformShape& shape) noexcept;
/// Of an outlier: the same and its place.
std::size_t outlier_bytes(const TransformShape& shape) noexcept;

}  // namespace kvs
