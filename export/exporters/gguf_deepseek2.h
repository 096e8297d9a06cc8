#pragma once

#include "export/exporter.h"

namespace kvs {

/// A GGUF file of architecture deepseek2 that llama.cpp loads as it is. The metadata of a GGUF source's tokenizer is
/// copied; that of a Hugging Face folder is made from its tokenizer.json. Vectors are f32 in any case. Quantising it,
/// keep attn_kv_a_mqa bf16 or f32: its first rows are scaled down to about 1e-9.
Json write_gguf_deepseek2(const ExportJob& job);

}  // namespace kvs
