// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "export/exporter.h"

namespace kvs::inline exporting {

/// Writes a GGUF file of architecture deepseek2 that llama.cpp loads unchanged. For a GGUF source, the tokenizer's
/// metadata is copied. For a Hugging Face folder, it is made from tokenizer.json. Vectors are always f32. When
/// quantising the file, keep attn_kv_a_mqa in bf16 or f32: its first rows are scaled down to about 1e-9.
Json write_gguf_deepseek2(const ExportJob& job);

}  // namespace kvs::inline exporting
