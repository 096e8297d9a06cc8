// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/vllm_fp8.h"

#include "export/exporters/cache_scheme.h"
#include "export/exporters/scale_files.h"
#include "export/exporters/scaled_checkpoint.h"
#include "model/model_tensors.h"

namespace kvs::inline exporting {
namespace {

Json notes_on(const ScaledLayers& layers, const CacheScheme& scheme, bool overlay) {
  Json notes = Json::array();
  if (layers.by_head) notes.push_back("scales by head need vLLM's FlashAttention backend");
  if (scheme.needs_flag) notes.push_back("vLLM takes these scales with the flag --kv-cache-dtype fp8");
  if (!layers.skipped.empty()) {
    std::string list;
    for (const std::size_t layer : layers.skipped) list += ' ' + std::to_string(layer);
    notes.push_back("layers left at 16 bits are a flag of vLLM: --kv-cache-dtype-skip-layers" + list);
  }
  if (overlay) notes.push_back("`kvcalibrate overlay apply` puts these files into the model's folder");
  return notes;
}

}  // namespace

Json write_vllm_fp8(const ExportJob& job) {
  check_scaled_checkpoint(job.model);
  const ScaledLayers layers = fp8_layers_of(job);
  const std::vector<OutputTensor> scales = vllm_scale_tensors(job, layers);
  const CacheScheme scheme = with_fp8_cache(job.model.path(), layers.by_head);
  write_scaled_checkpoint(job, layers, scales, scheme);
  return {{"settings", scheme.scheme}, {"notes", notes_on(layers, scheme, job.overlay)}};
}

}  // namespace kvs::inline exporting
