// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/scaled_checkpoint.h"

#include "core/error.h"
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

}  // namespace

void check_scaled_checkpoint(const ModelSource& model) {
  if (model.format() == ModelFormat::kGguf)
    throw Error(ErrorCode::kUnsupported, model.path().string(),
                "found a GGUF file, expected a Hugging Face folder, whose files get the scales");
  refuse_overlaid(model.path());
}

void write_scaled_checkpoint(const ExportJob& job, const ScaledLayers& layers, std::span<const OutputTensor> scales,
                             const CacheScheme& scheme) {
  if (!job.overlay) copy_folder(job.model.path(), job.out, scheme);
  const std::string scales_file = job.overlay ? kOverlayScales : "model-kv-cache-scales.safetensors";
  write_safetensors(job.out / scales_file, scales, {{"format", "pt"}});
  const Json index = index_with(job.model.archive(), scales, scales_file);
  write_file_atomically(job.out / kIndexFile, dump_json(index) + "\n", false);
  for (const auto& [name, content] : scheme.files)
    write_file_atomically(job.out / name, dump_python_json(content) + "\n", false);
  if (!job.overlay) return;
  const OverlayManifest manifest = manifest_of(job.model, job.out, layers.indices(), layers.skipped, job.tool_version);
  write_file_atomically(job.out / kOverlayRecord, dump_json(manifest.to_json()) + "\n", false);
}

}  // namespace kvs::inline exporting
