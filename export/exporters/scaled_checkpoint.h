// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "export/exporters/cache_scheme.h"
#include "export/exporters/scaled_layers.h"

namespace kvs::inline exporting {

/// Refuses a model that is no Hugging Face folder, or whose folder has an overlay.
/// @throws Error kUnsupported, kConflict
void check_scaled_checkpoint(const ModelSource& model);
/// Writes the model's folder with scales and the files of a scheme, its weights unchanged; with ExportJob::overlay the
/// files that differ alone, and their OverlayManifest.
void write_scaled_checkpoint(const ExportJob& job, const ScaledLayers& layers, std::span<const OutputTensor> scales,
                             const CacheScheme& scheme);

}  // namespace kvs::inline exporting
