// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "export/exporter.h"

namespace kvs::inline exporting {

/// Writes the file of `vllm serve --config`: the type of the cache and the layers that stay at 16 bits. The notes give
/// the flags.
Json write_vllm_flags(const ExportJob& job);

}  // namespace kvs::inline exporting
