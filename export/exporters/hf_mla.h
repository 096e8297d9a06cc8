// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "export/exporter.h"

namespace kvs::inline exporting {

/// Write folders that Transformers (5 or later) loads unchanged: config.json, safetensors (sharded above 5 GB) and the
/// model's tokenizer. YoutuForCausalLM is the simpler class. More engines support DeepseekV3ForCausalLM, here with
/// dense layers only. Transformers normalises the latent with epsilon 1e-6 for every model. An engine that uses
/// rms_norm_eps for the latent runs the folder only if rms_norm_eps is 1e-6, too.
Json write_hf_youtu(const ExportJob& job);
Json write_hf_deepseek(const ExportJob& job);

}  // namespace kvs::inline exporting
