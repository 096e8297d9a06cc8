// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "calibrate/elitekv/source.h"
#include "kernels/calibration_ops.h"
#include "model/decoder.h"

namespace kvs::inline calibrate {

/// Returns the bytes of the sums of fit_outputs() per layer: 4 · (query_heads · head_dim)² doubles.
double output_sum_bytes(const ModelConfig& model) noexcept;

/// Returns for each layer the matrix T [query_heads · head_dim, the same] that minimises the difference between T ·
/// (the cache's attention output) and the model's own output over the documents, both for the model's own inputs. Least
/// squares have a ridge of a tenth of each channel's energy toward the identity: without it the fit repeats the text. T
/// is merged into W_o. One pass over the documents up to the last of `layers`; memory output_sum_bytes() per layer.
/// This project's method; EliteKV's paper has no equivalent.
/// @param done  called after each document with the number of documents done
std::vector<FactorTensor> fit_outputs(Decoder& decoder, CalibrationOps& ops, const std::vector<EliteLayer>& layers,
                                      std::span<const std::vector<std::int32_t>> documents,
                                      const std::function<void(std::size_t)>& done);

}  // namespace kvs::inline calibrate
