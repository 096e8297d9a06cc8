// SPDX-License-Identifier: Apache-2.0
#include "model/expert_table.h"

#include <algorithm>

#include "model/stored_names.h"

namespace kvs::inline model {
namespace {

constexpr std::string_view kEach = ".{}.";  // before the last part of the name of one expert's tensor

/// Returns the end of the name of a tensor that holds all experts.
std::string_view joined_part(TensorRole role, bool gated) {
  if (role == TensorRole::kExpertDown) return ".down_proj";
  return gated ? ".gate_up_proj" : ".up_proj";
}

/// Returns the names that a tensor of all experts may have in Hugging Face files. One is below the module of the
/// published files, the other below the one that Transformers 5 gives its own files.
std::vector<std::string> joined_names(const TensorSpec& spec, bool gated) {
  constexpr std::string_view kPublished = ".block_sparse_moe.", kOwn = ".mlp.";
  std::string name(spec.hf.substr(0, spec.hf.rfind(kEach)));
  name += joined_part(spec.role, gated);
  std::vector<std::string> names{name};
  if (const std::size_t at = name.find(kPublished); at != std::string::npos)
    names.push_back(name.replace(at, kPublished.size(), kOwn));
  return names;
}

/// Returns the name of one expert's tensor in GGUF files of before the tensors of all experts.
std::string_view old_gguf_name(TensorRole role) {
  if (role == TensorRole::kExpertDown) return "blk.{}.ffn_down.{}";
  return role == TensorRole::kExpertGate ? "blk.{}.ffn_gate.{}" : "blk.{}.ffn_up.{}";
}

/// Returns a layer with experts.
std::size_t sparse_layer(const ModelConfig& config) {
  const auto sparse =
      std::ranges::find_if(config.layer, [](const LayerConfig& layer) { return layer.feed_forward.is_sparse(); });
  return static_cast<std::size_t>(sparse - config.layer.begin());
}

}  // namespace

ExpertTable::ExpertTable(const TensorArchive& archive, ModelFormat format, const ParsedConfig& parsed) {
  const std::size_t layer = sparse_layer(parsed.config);
  if (parsed.architecture->experts == nullptr || layer == parsed.config.layers()) return;
  const std::span<const TensorSpec> table = parsed.architecture->experts->tensors;
  tensors_.assign(table.begin(), table.end());
  const bool gated = std::ranges::find(table, TensorRole::kExpertGate, &TensorSpec::role) != table.end();
  const auto stores = [&](const TensorSpec& spec) {
    return find_any(archive, file_names(parsed, spec, format, layer)) != nullptr;
  };
  for (TensorSpec& spec : tensors_) {
    if (!is_of_expert(spec.role)) continue;
    TensorSpec joined = spec;
    if (format == ModelFormat::kGguf) {
      joined.gguf = "blk.{}.ffn_gate_up_exps";
      TensorSpec each = spec;
      each.gguf = old_gguf_name(spec.role);
      if (spec.role != TensorRole::kExpertDown && gated && stores(joined)) spec = joined;
      if (!stores(spec) && stores(each)) spec = each;
    } else if (spec.hf.rfind(kEach) != spec.hf.find(kEach)) {
      joined.hf_ending = "";
      joined.hf_transposed = parsed.architecture->experts->hf_joined_transposed;
      for (const std::string& name : joined_names(spec, gated)) {
        joined.hf = name;
        if (!stores(joined)) continue;
        joined.hf = names_.emplace_back(name);
        spec = joined;
        break;
      }
    }
  }
}

}  // namespace kvs::inline model
