// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "export/exporters/elite_rows.h"

namespace kvs::inline exporting {

/// Geometry of multi-head latent attention (DeepSeek-V2, section 2.1), the same for all layers.
struct MlaShape {
  std::size_t rank = 0;   // kv_lora_rank: the largest d_ckv of a layer
  std::size_t nope = 0;   // qk_nope_head_dim: channels of a head that are not rotated
  std::size_t rope = 0;   // qk_rope_head_dim: the model's rotary_dim
  std::size_t value = 0;  // v_head_dim: head_dim

  std::size_t query() const noexcept { return nope + rope; }
  std::size_t cached() const noexcept { return rank + rope; }  // values per token and layer
};

/// Properties of a target's multi-head latent attention.
struct MlaTarget {
  double latent_epsilon = 0;                    // epsilon of the latent's norm
  std::vector<RopeScaling::Type> rope_scaling;  // types that it computes like Transformers
};

/// Converts a RoPElite and J-LRD model to standard multi-head latent attention, layer by layer. Engines run the result
/// without code from this project:
///  - The shared rope key has a slot for each frequency. At most one KV head of a layer keeps a frequency (disjoint
///    sets), and its elite rows are in the slot. A query head has its own KV head's elite channels in their slots and
///    zeros elsewhere. Its product with the shared key equals the product with its own head's key. Slots that no
///    head keeps are zero, but stored.
///  - The latent passes through an RMSNorm that cannot be disabled. `down` is multiplied by a scale s so small that
///    epsilon dominates the norm, and the gain sqrt(epsilon) / s makes the norm the identity.
///  - Engines divide scores by sqrt(nope + rope), so W_q is multiplied by sqrt(nope + rope) · attention_scale.
///  - A layer of a smaller rank, or with more elite chunks than another, is padded with zeros to the model's shape.
class MlaModel {
 public:
  /// @throws Error kUnsupported with the reason if the model or the config cannot be converted
  MlaModel(const ExportJob& job, const MlaTarget& target);

  const MlaShape& shape() const noexcept { return shape_; }
  const ModelConfig& model() const noexcept { return source_.model(); }
  const EliteModel& source() const noexcept { return source_; }

  /// Return the parts of a layer's attention, in the order of the file.
  OutputTensor queries(std::string name, std::size_t layer) const;        // [heads · (nope + rope), d_model]
  OutputTensor compress(std::string name, std::size_t layer) const;       // [rank + rope, d_model]
  OutputTensor norm(std::string name) const;                              // [rank]
  OutputTensor expand(std::string name, std::size_t layer) const;         // [heads · (nope + value), rank], by head
  OutputTensor expand_keys(std::string name, std::size_t layer) const;    // [heads, rank, nope]
  OutputTensor expand_values(std::string name, std::size_t layer) const;  // [heads, value, rank]

 private:
  /// Returns the KV head of `layer` that keeps a chunk, or kNone.
  std::size_t owner(std::size_t layer, std::size_t chunk) const { return owners_[layer * model().chunks() + chunk]; }

  EliteModel source_;
  MlaShape shape_;
  std::vector<std::size_t> owners_;  // [layer, chunk]
  float query_scale_, down_scale_, gain_;
};

}  // namespace kvs::inline exporting
