#pragma once

#include "export/exporter.h"

namespace kvs {

/// Folders that Transformers (5 or later) loads as they are: config.json, safetensors (sharded above 5 GB), the model's
/// tokenizer. YoutuForCausalLM is the plain one; DeepseekV3ForCausalLM, all of its layers dense, is known to more
/// engines. Transformers normalises the latent with epsilon 1e-6 whatever the model's is; engines that take
/// rms_norm_eps there run the folder only where that is 1e-6, too.
Json write_hf_youtu(const ExportJob& job);
Json write_hf_deepseek(const ExportJob& job);

}  // namespace kvs
