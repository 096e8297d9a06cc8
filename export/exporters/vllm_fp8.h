// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "export/exporter.h"

namespace kvs::inline exporting {

/// Writes the model's folder with the scales of an fp8 cache in llm-compressor's format: tensors k_scale and v_scale of
/// each layer's attention (vllm_scale_tensors()) and the scheme in config.json. Weights are copied unchanged. With
/// ExportJob::overlay only the files that differ, and their OverlayManifest.
Json write_vllm_fp8(const ExportJob& job);

}  // namespace kvs::inline exporting
