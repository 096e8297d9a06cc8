// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/full/side_scales.h"
#include "io/json.h"
#include "model/config.h"
#include "states/state_source.h"

namespace kvs::inline calibrate {

/// Which values of a layer share a scale.
enum class ScaleSharing {
  kLayer,  // all keys, and all values
  kHead,   // the keys of a KV head, and its values
  kPair    // all keys and values: engines with one scale a layer
};

/// The storage types whose scales are measured, fp8 or nvfp4.
struct ScaledTypes {
  std::string k, v;

  /// Parses KIND or KIND/KIND.
  static ScaledTypes parse(std::string_view words);
};

/// The scales of the keys after RoPE and of the values of every layer with a KV cache. A scale is the magnitude at
/// which a type saturates (ScaleRule), divided by the type's largest number. That is 448 for fp8 (e4m3), and 6 · 448
/// for nvfp4, whose numbers (e2m1) and scales of blocks (e4m3) are then used whole.
class KvScales {
 public:
  /// @param model    must outlive this
  /// @throws Error kUsage for kPair and two types
  KvScales(const ModelConfig& model, ScaledTypes types, ScaleSharing sharing);

  /// @param done  called with the number of documents done
  void measure(StateSource& source, const std::function<void(std::size_t)>& done);
  /// Returns the parameters of a config of `full`.
  Json parameters(ScaleRule rule) const;
  /// Returns `saturated_k` and `saturated_v`: [layer with a KV cache], the share of the values beyond the largest
  /// number of the type.
  Json saturated(ScaleRule rule) const;
  /// Returns the share over all layers, keys and values.
  double share_saturated(ScaleRule rule) const;
  /// Returns `largest_k` and `largest_v`: [layer with a KV cache].
  Json largest() const;

 private:
  using Layers = std::vector<SideScales>;
  std::vector<double> limits(const Layers& side, std::size_t n, ScaleRule rule) const;
  Json scales(const Layers& side, const std::string& type, ScaleRule rule) const;
  Json saturated(const Layers& side, ScaleRule rule) const;

  const ModelConfig& model_;
  ScaledTypes types_;
  ScaleSharing sharing_;
  std::vector<std::size_t> layers_;  // with a KV cache
  Layers keys_, values_;             // by index in layers_
};

}  // namespace kvs::inline calibrate
