#pragma once

#include <span>

#include "export/exporter.h"
#include "io/output_tensor.h"

namespace kvs {

/// The f32 as the decimal number that was meant: 1e-5, not 9.99999975e-06.
double shortest_decimal(float value);

/// Writes a Hugging Face model into job.out: config.json (with the ids of the model's special tokens and the dtype
/// added), safetensors, the tokenizer. The model's own tokenizer files are copied; from a GGUF file a tokenizer.json is
/// made. @return notes
Json write_hf_folder(const ExportJob& job, Json config, std::span<const OutputTensor> tensors);

/// Progress over the bytes of `tensors`, for their writers.
std::function<void(std::uint64_t)> byte_progress(const ExportJob& job, std::span<const OutputTensor> tensors);

}  // namespace kvs
