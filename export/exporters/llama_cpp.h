// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "export/exporter.h"

namespace kvs::inline exporting {

/// Writes a preset for llama-server (--models-preset): the model's file and its cache types. The notes give the flags.
Json write_llama_cpp(const ExportJob& job);

}  // namespace kvs::inline exporting
