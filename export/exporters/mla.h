#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "export/elite_source.h"
#include "export/exporter.h"
#include "io/output_tensor.h"
#include "model/architecture.h"

namespace kvs {

/// Geometry of multi-head latent attention (DeepSeek-V2, section 2.1), the same for all layers.
struct MlaShape {
  std::size_t rank = 0;   // kv_lora_rank: the largest d_ckv of a layer
  std::size_t nope = 0;   // qk_nope_head_dim: channels of a head that are not rotated
  std::size_t rope = 0;   // qk_rope_head_dim: the model's rotary_dim
  std::size_t value = 0;  // v_head_dim: head_dim

  std::size_t query() const noexcept { return nope + rope; }
  std::size_t cached() const noexcept { return rank + rope; }  // values per token and layer
};

/// What a target takes beyond the arithmetic that all of them share.
struct MlaTarget {
  double latent_epsilon = 0;                    // of the norm of the latent
  std::vector<RopeScaling::Type> rope_scaling;  // that it computes as Transformers does
};

/// A RoPElite and J-LRD model as stock multi-head latent attention, layer by layer. No code of ours is needed to run
/// it:
///  - The shared rope key has a slot for each frequency, and at most one KV head of a layer keeps a frequency (disjoint
///    sets): that head's elite rows are in the slot. A query head carries its own head's elite channels in their slots
///    and zeros elsewhere, so that its product with the shared key is that with its own head's. Slots no head keeps are
///    zero, stored all the same.
///  - The latent goes through an RMSNorm that cannot be turned off: down is stored times s, so small that epsilon alone
///    decides the norm, whose gain sqrt(epsilon) / s makes it the identity.
///  - Engines divide scores by sqrt(nope + rope): W_q is stored times sqrt(nope + rope) · attention_scale.
///  - A layer of a smaller rank or with more elite chunks than another gets zeros up to the model's shape.
/// Holds one layer's factors, W_q and W_k at a time.
class MlaModel {
 public:
  /// @throws Error kUnsupported with the reason if the model or the config cannot be written so.
  MlaModel(const ExportJob& job, const MlaTarget& target);

  const MlaShape& shape() const noexcept { return shape_; }
  const ModelConfig& model() const noexcept { return job_->model.config(); }

  /// The parts of a layer's attention, in the order in which they should be written.
  OutputTensor queries(std::string name, std::size_t layer) const;      // [heads · (nope + rope), d_model]
  OutputTensor compress(std::string name, std::size_t layer) const;     // [rank + rope, d_model]
  OutputTensor norm(std::string name) const;                            // [rank]
  OutputTensor expand(std::string name, std::size_t layer) const;       // [heads · (nope + value), rank], head by head
  OutputTensor expand_keys(std::string name, std::size_t layer) const;  // [heads, rank, nope]
  OutputTensor expand_values(std::string name, std::size_t layer) const;  // [heads, value, rank]
  /// A tensor that stays as it is.
  OutputTensor kept(std::string name, TensorRole role, std::size_t layer = 0) const;

  /// What the cache holds in the target.
  Json cache() const;

 private:
  struct Layer;
  const Layer& layer(std::size_t index) const;
  OutputTensor tensor(std::string name, std::vector<std::uint64_t> shape,
                      std::function<void(std::size_t row, std::span<float> out)> row) const;

  const ExportJob* job_;
  EliteSource source_;
  MlaShape shape_;
  float query_scale_, down_scale_, gain_;
  std::shared_ptr<std::unique_ptr<Layer>> held_;  // shared with the tensors' readers
};

}  // namespace kvs
