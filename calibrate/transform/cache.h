// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "caches/layer_cache.h"
#include "model/config.h"

namespace kvs::inline calibrate {

/// The values that are coded as one row, with its own gain.
enum class TransformRows : std::uint8_t {  // in the order of kTransformRowNames
  kLayer,                                  // a whole token: coefficients across heads, keys and values
  kHead,  // a head's keys by channel, and a head's values in their own basis; attention reads the codes directly
};

inline constexpr std::array<std::string_view, 2> kTransformRowNames{"layer", "head"};

/// How rows are coded.
enum class TransformForm : std::uint8_t {  // in the order of kTransformFormNames
  kRandomAccess,                           // a gain and equally many bits in every row: any token decodes alone
  kStorage,                                // one step for all coefficients, levels in entropy-coded blocks of tokens
};

inline constexpr std::array<std::string_view, 2> kTransformFormNames{"random-access", "storage"};

struct EntropyModel;

/// Transform coding of a token's values x in one layer, or in neighbouring layers that share a row (a group). x holds
/// of each layer the keys before RoPE of all KV heads, then the values.
struct TransformLayer {
  std::size_t layer = 0;  // the first one of a group
  TransformRows rows = TransformRows::kLayer;
  std::vector<float> mean;  // [value]
  /// Coefficients (with unit variance) are analysis · (x − mean); synthesis is the inverse. kLayer: [coefficient,
  /// value] and [value, coefficient], in a group only the coefficients with bits; kHead, for values: [kv_head,
  /// coefficient, channel] and [kv_head, channel, coefficient]. In the storage form coefficients are in steps, those
  /// that are coded.
  std::vector<float> analysis, synthesis;
  std::vector<float> deviations = {};  // kHead, for keys: [kv_head · channel]; coefficients are (x − mean) / deviation
  /// [coefficient], 0 to 8; kHead: first those of keys, head by head; the storage form has none.
  std::vector<std::size_t> bits;
  std::vector<float> weights;  // [coefficient]: cost of a squared error, relative to the highest cost
  double threshold = 0;        // a token with a higher error cost is kept in full; kLayer only
  double outliers = 0;  // share of coded tokens kept in full; each token beyond it doubles the threshold: kMoreOutliers
  std::vector<float> books;  // [bits 0 … 8][state]: codecs/trellis.h; the same for all layers
  std::size_t sinks = 0;     // number of first tokens kept in full
  std::size_t recent = 0;    // number of tokens coded at once, as soon as twice as many wait in q8_0
  /// [value, embedding channel], or empty: a token's row is coded after its prediction from the token's embedding
  /// (TokenInputs) is subtracted; `mean` is the map's constant. kLayer only, with `recent` above 0.
  std::vector<float> prediction = {};
  std::vector<std::size_t> others = {};   // the other layers of a group, ascending; kLayer only
  std::vector<std::uint8_t> scales = {};  // the storage form: [coefficient], scale_class() of its deviation in steps
  std::shared_ptr<const EntropyModel> entropy = nullptr;  // the storage form's tables, the same for all layers

  std::size_t layers() const noexcept { return 1 + others.size(); }
  std::size_t values() const noexcept { return mean.size(); }
  std::size_t coefficients() const noexcept { return weights.size(); }
  TransformForm form() const noexcept { return entropy ? TransformForm::kStorage : TransformForm::kRandomAccess; }
};

/// Maximum number of tokens of a layer kept in full beyond the share.
inline constexpr std::size_t kMoreOutliers = 2;

struct TransformShape {
  std::size_t kv_heads = 0, head_dim = 0;
};

TransformShape transform_shape(const ModelConfig& model, std::size_t layer);

/// Coefficients [first, first + count · size) of a layer are coded as `count` rows of equal bytes.
struct RowSet {
  std::size_t first = 0, count = 0, size = 0;
};
/// @param layers  number of layers that share a row
std::vector<RowSet> row_sets(TransformRows rows, const TransformShape& shape, std::size_t layers = 1);

/// A layer's products in a backend's memory, shared by every sequence.
class TransformProducts;
class TokenInputs;
std::shared_ptr<const TransformProducts> make_transform_products(Backend& backend, const TransformLayer& layer,
                                                                 const TransformShape& shape);

/// The states of a token that are coded; the other side is not coded, for measurements.
enum class CodedSides { kBoth, kKeys, kValues };

/// A transform coder as a cache. It stores codes of the keys before RoPE and of the values of each token. Sinks are
/// stored in full. Tokens wait in q8_0; when 2 · recent tokens wait, the older half is coded. All tokens read decoded
/// states, including their own. In layers with a sliding window, older tokens are dropped. This project's method;
/// docs/transform.md derives it.
///  - kLayer: one row for a whole token. Tokens whose error exceeds the layer's threshold are also stored in q8_0;
///    text with more of them than expected raises the threshold. Every group of tokens restores the whole past,
///    rotated: 2 · (2Gd)² FLOPs per cached token and layer.
///  - kHead: a single token reads the codes directly. Keys are rotated when read; values are read as coefficients, and
///    each query head's result is transformed back at the end: 2Gd values decoded per cached token and layer.
/// @param sides  other than kBoth only for a single group of tokens
/// @param inputs  of a layer with a prediction: shared by all layers of the sequence; layer 0 fills it
std::unique_ptr<LayerCache> make_transform_cache(std::shared_ptr<const TransformProducts> products,
                                                 CodedSides sides = CodedSides::kBoth,
                                                 std::shared_ptr<TokenInputs> inputs = nullptr);
/// Returns the caches of the layers of a group, in order, which share their codes. A pass must take them through all
/// layers of the group before the next tokens come, at most max_tokens_per_call() tokens. The tokens of all layers are
/// coded after the last layer's attention. TransformLayer::recent is at least 1.
/// @param inputs  as above
std::vector<std::unique_ptr<LayerCache>> make_group_caches(std::shared_ptr<const TransformProducts> products,
                                                           std::shared_ptr<TokenInputs> inputs = nullptr);
/// Returns the stored bytes of a waiting token: keys and values in q8_0; f16 for heads that do not fit its blocks.
std::size_t recent_bytes(const TransformShape& shape) noexcept;
/// Returns the stored bytes of an outlier: recent_bytes() of each layer that shares a row, and its position.
std::size_t outlier_bytes(const TransformShape& shape, std::size_t layers = 1) noexcept;

}  // namespace kvs::inline calibrate
