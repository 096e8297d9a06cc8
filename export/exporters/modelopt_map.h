// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "export/exporter.h"

namespace kvs::inline exporting {

/// Writes the model's folder with the map of an fp8 or nvfp4 cache by layer as Model-Optimizer's pull request 2272
/// states it. The map is kv_cache_quantized_layers in config.json, without the layers at 16 bits, and one scale for the
/// keys and one for the values of each other layer. Weights are copied unchanged. With ExportJob::overlay only the
/// files that differ, and their OverlayManifest.
Json write_modelopt_map(const ExportJob& job);

}  // namespace kvs::inline exporting
