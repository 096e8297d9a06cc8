#include "export/exporters/vllm_fp8.h"

#include "core/error.h"
#include "export/exporters/cache_scheme.h"
#include "export/exporters/hf_folder.h"
#include "export/exporters/scale_files.h"
#include "export/overlay/manifest.h"
#include "io/file.h"
#include "io/python_json.h"
#include "io/safetensors_writer.h"
#include "model/model_tensors.h"

namespace kvs::inline exporting {
namespace {

namespace fs = std::filesystem;

/// Copies the files of the folder that `written` does not name.
void copy_folder(const fs::path& from, const fs::path& to, const CacheScheme& written) {
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    const fs::path name = entry.path().filename();
    if (!entry.is_regular_file() || written.files.contains(name.string()) || name == kIndexFile ||
        name == kExportRecord)
      continue;
    copy_regular_file(entry.path(), to / name);
  }
  copy_more_templates(from, to);
}

Json notes_on(const Fp8Layers& layers, const CacheScheme& scheme, bool overlay) {
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
  if (job.model.format() == ModelFormat::kGguf)
    throw Error(ErrorCode::kUnsupported, job.model.path().string(),
                "found a GGUF file, expected a Hugging Face folder, whose files get the scales");
  refuse_overlaid(job.model.path());
  const Fp8Layers layers = fp8_layers_of(job);
  const std::vector<OutputTensor> scales = vllm_scale_tensors(job, layers);
  const CacheScheme scheme = with_fp8_cache(job.model.path(), layers.by_head);
  if (!job.overlay) copy_folder(job.model.path(), job.out, scheme);
  const std::string scales_file = job.overlay ? kOverlayScales : "model-kv-cache-scales.safetensors";
  write_safetensors(job.out / scales_file, scales, {{"format", "pt"}});
  const Json index = index_with(job.model.archive(), scales, scales_file);
  write_file_atomically(job.out / kIndexFile, dump_json(index) + "\n", false);
  for (const auto& [name, content] : scheme.files)
    write_file_atomically(job.out / name, dump_python_json(content) + "\n", false);
  if (job.overlay) {
    std::vector<std::size_t> indices;
    indices.reserve(layers.layers.size());
    for (const auto& layer : layers.layers) indices.push_back(layer.index);
    const OverlayManifest manifest =
        manifest_of(job.model, job.out, std::move(indices), layers.skipped, job.tool_version);
    write_file_atomically(job.out / kOverlayRecord, dump_json(manifest.to_json()) + "\n", false);
  }
  return {{"settings", scheme.scheme}, {"notes", notes_on(layers, scheme, job.overlay)}};
}

}  // namespace kvs::inline exporting
