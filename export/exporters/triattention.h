// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "export/exporter.h"

namespace kvs::inline exporting {

/// Returns why the file cannot hold the statistics of a model. The file states neither which channels rotate nor at
/// which frequencies, and its readers take those of a Hugging Face config that all layers share. Empty if it can.
std::string triattention_statistics_obstacle(const ModelConfig& model);

/// Writes the statistics of a triattention config as TriAttention's own calibration does: torch.save({"metadata": …,
/// "stats": {"layer00_head00": {"q_mean_real", "q_mean_imag", "q_abs_mean"}}}), vectors of f32 [head_dim / 2] for each
/// query head. Real and imaginary part are the first and second channel of a RoPE chunk.
/// Source: scripts/calibrate.py of WeianMao/triattention, and its reader in TensorRT-LLM (2026-09). Deviation: that
/// program leaves out QK-norm; these queries are after it, as its readers' keys are.
Json write_triattention(const ExportJob& job);

}  // namespace kvs::inline exporting
