#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "calibrate/elitekv/source.h"
#include "kernels/calibration_ops.h"
#include "model/decoder.h"

namespace kvs {

/// Bytes of sums that fit_outputs() holds for each layer: 4 · (query_heads · head_dim)² doubles.
double output_sum_bytes(const ModelConfig& model) noexcept;

/// For each layer the matrix T [query_heads · head_dim, the same] that makes T · (the cache's attention output) least
/// different from the model's own over the documents, both of the model's own inputs: least squares with a ridge of a
/// tenth of each channel's energy toward the identity (a fit without it repeats the text). T goes into W_o. One pass
/// over the documents up to the last of `layers`; memory output_sum_bytes() a layer. Ours; nothing in EliteKV's paper.
/// @param done  called after each document with the number of documents done
std::vector<FactorTensor> fit_outputs(Decoder& decoder, CalibrationOps& ops, const std::vector<EliteLayer>& layers,
                                      std::span<const std::vector<std::int32_t>> documents,
                                      const std::function<void(std::size_t)>& done);

}  // namespace kvs
