// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/config/tensors.h"
#include "calibrate/elitekv/cache.h"
#include "calibrate/elitekv/config.h"
#include "io/tensor_archive.h"
#include "model/model.h"

namespace kvs::inline calibrate {

/// @throws Error kUnsupported for sets per query head on a GQA model: a shared key cannot have them.
void require_kv_head_sets(const EliteConfig& config, const ModelConfig& model, const std::filesystem::path& path);
/// @throws Error kUnsupported if the config does not cover all layers.
void require_all_layers(const EliteConfig& config, const ModelConfig& model, const std::filesystem::path& path);

/// @throws Error kUnsupported if layers rotate different numbers of chunks.
void require_one_r(const EliteConfig& config, const std::filesystem::path& path);

/// Returns the layer at index `n` of `config`. S-LRD's two pairs of factors become one with a block-diagonal up factor.
/// @param read  called if the config has factors
EliteLayer elite_layer(const EliteConfig& config, std::size_t n, const ModelSource& source, const FactorReader& read);

/// An elitekv config with its factors and its model, read one layer at a time.
class EliteSource {
 public:
  /// @param json  checked by read_config();  @param source  must outlive this
  /// @throws Error kUnsupported like factor_obstacle() if there are factors, and like require_kv_head_sets()
  EliteSource(const Json& json, const std::filesystem::path& path, const ModelSource& source);

  const EliteConfig& config() const noexcept { return config_; }
  /// Returns elite_layer() of the config. @throws Error kInput if a factor is missing or has another shape.
  EliteLayer layer(std::size_t n) const;

 private:
  const ModelSource* source_;
  EliteConfig config_;
  std::filesystem::path file_;  // of the factors
  std::unique_ptr<TensorArchive> archive_;
};

}  // namespace kvs::inline calibrate
