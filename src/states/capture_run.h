// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "io/hdf5/capture_file.h"
#include "model/decoder.h"
#include "states/capture_stream.h"

namespace kvs::inline states {

/// Returns the header of a capture of this model with these choices. layers: ascending.
CaptureHeader capture_header(const ModelConfig& model, const std::string& model_sha256,
                             std::span<const std::size_t> layers, const StateSet& states, DType store,
                             std::uint64_t tokens, std::uint64_t documents);

/// Returns the model's geometry as far as a capture stores it.
ModelConfig model_config_of(const CaptureHeader& header);

/// Returns the RoPE of the capture's documents, one for each kind of layer.
std::vector<RopeAngles> rope_angles_of(const CaptureHeader& header);

/// Returns the bytes of data on disk of a capture with this header.
std::uint64_t capture_bytes(const CaptureHeader& header) noexcept;

/// Runs one document and passes its states, layer by layer, and its NLL to `stream`, which stores them asynchronously.
/// @param header  of the stream's capture
void capture_document(Decoder& decoder, std::uint64_t document, std::span<const std::int32_t> tokens,
                      const CaptureHeader& header, CaptureStream& stream);

}  // namespace kvs::inline states
