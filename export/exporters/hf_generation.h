#pragma once

#include "export/exporter.h"

namespace kvs {

/// generation_config.json with Transformers' QuantizedCache: what the model's own file says, or the ids of its special
/// tokens, and the cache. quanto's arithmetic is not KIVI's: groups of keys are runs of one token's channels, and a
/// prompt is quantised whole.
Json write_hf_generation(const ExportJob& job);

}  // namespace kvs
