#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "model/decoder.h"

namespace kvs {

/// What EliteKV does to one layer.
struct EliteLayer {
  std::size_t layer = 0;
  std::vector<std::vector<std::size_t>> elite;  // [kv_head][pick]: chunks that stay rotated
  /// Empty, or W' [2 · kv_heads · head_dim, d_model]: the rows that yield K (elite rows original, others up · down)
  /// then V.
  std::vector<float> projection;
  std::vector<float> bias;  // added to what the projection yields: [2 · kv_heads · head_dim], or empty
};

/// EliteKV at work in a forward pass: K and V come from the low-rank factors, only elite chunks are rotated.
/// The reconstruction up · (down · x) is applied as one product with up · down: the same map; what a cache would hold
/// (down · x and the elite rows) is not rounded in between.
/// Source: EliteKV, partial RoPE (section 3.1) and J-LRD (section 3.2).
class EliteModel final : public StateHook {
 public:
  EliteModel(const Model& model, std::vector<EliteLayer> layers);
  ~EliteModel() override;

  void before_rope(LayerStates& states) override;
  void after_rope(LayerStates& states) override;

 private:
  struct Layer {
    std::unique_ptr<Weight> projection;
    std::vector<std::uint8_t> unrotated_q, unrotated_k;  // [head, chunk]
  };
  std::map<std::size_t, Layer> layers_;
};

/// W' of EliteLayer::projection for J-LRD factors.
/// @param wk         the original rows [kv_heads · head_dim, d_model]
/// @param low_rank   up · down [rows, d_model], rows = per KV head its non-elite channels ascending, then all V
///                   channels: exactly so many
std::vector<float> merge_projection(const std::vector<float>& wk, const std::vector<double>& low_rank,
                                    const std::vector<std::vector<std::size_t>>& elite, std::size_t head_dim,
                                    std::size_t rotary_dim, std::size_t d_model);

}  // namespace kvs
