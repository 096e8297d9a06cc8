#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "io/json.h"
#include "model/model.h"
#include "policy/elitekv.h"

namespace kvs {

/// Why low-rank factors are not defined for a model, as "found …, expected …"; empty if they are. A model that
/// normalises its keys (QK-norm) has none: its keys are no linear function of the block's input.
std::string factor_obstacle(const ModelConfig& model);

/// Reads the layers of `config` (checked by read_config), with the factors that it names. S-LRD's two pairs of factors
/// become one whose up factor is block diagonal.
/// @throws Error kUnsupported as factor_obstacle() says if there are factors, and for sets per query head on a GQA
/// model (a shared key cannot have them); kInput if a factor is missing or has another shape.
std::vector<EliteLayer> load_elite_config(const Json& config, const std::filesystem::path& path,
                                          const ModelSource& source);

/// The caches of an elitekv config, which share its products. Layers that it does not list keep everything.
class EliteCaches {
 public:
  /// @param tokens  of a document, which RoPE's factor may depend on
  EliteCaches(Backend& backend, const ModelConfig& model, const std::vector<EliteLayer>& layers, std::size_t tokens);
  /// @param stores  how each layer holds its rows; empty: as they come
  Cache make(const std::vector<StateStore>& stores = {}) const;

 private:
  std::vector<std::shared_ptr<const EliteProducts>> products_;  // [layer]
};

}  // namespace kvs
