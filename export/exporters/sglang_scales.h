// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "export/exporter.h"

namespace kvs::inline exporting {

/// Writes the JSON file of SGLang's --quantization-param-path: one scale for keys and values of each layer, for each of
/// ExportJob::tensor_parallel ranks. Layers without a KV cache have the scale 1, because SGLang expects all layers.
Json write_sglang_scales(const ExportJob& job);

}  // namespace kvs::inline exporting
