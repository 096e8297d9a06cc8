// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/checkpoints/checkpoint_format.h"
#include "model/checkpoints/scale_grid.h"
#include "model/tensor_shape.h"

namespace kvs::inline model {

// The rows of the table in checkpoints.cpp.
extern const CheckpointFormat kAwq, kBitsAndBytes, kCompressedTensors, kFp8, kGptq, kModelOpt, kMxfp4;

/// Reads quantization_config of config.json, or else hf_quant_config.json next to it; nullptr: the weights are not
/// quantised. Says in `notes` what is not computed.
/// @param folder  of config.json
/// @throws Error kUnsupported with the method, kInput with the JSON pointer.
std::shared_ptr<const QuantizedWeights> read_quantization(const JsonCursor& root, const std::filesystem::path& folder,
                                                          std::vector<std::string>& notes);

/// Returns the weights of a GGUF file, where a tensor X.scale multiplies the values of X.weight: one for all, or one
/// for each expert.
std::shared_ptr<const QuantizedWeights> gguf_weights();

// Parts of the formats.

/// Largest extent of a block or group that a config may state.
inline constexpr std::int64_t kMaxBlockExtent = 1 << 20;

/// Returns `name` without its ending ".weight"; "" if it has another one.
std::string module_of(const std::string& name);
/// Refuses other values of a key than those listed; a missing key is accepted.
void expect_one_of(const JsonCursor& object, std::string_view key, const std::vector<std::string>& supported);
/// Returns a number that must be one of `supported`. @param missing  the value of a missing key
std::size_t expect_number(const JsonCursor& object, std::string_view key, const std::vector<std::size_t>& supported,
                          std::size_t missing);
/// Returns group_size, 128 if it is missing; 0: all columns (−1).
std::size_t read_group_size(const JsonCursor& object);
/// Refuses a value of a key other than null, false, "", [] and {}.
void expect_none(const JsonCursor& object, std::string_view key);
/// Reads [rows, columns] of a block.
BlockSize read_block_size(const JsonCursor& list);
/// Returns the tensor `name`. @throws Error kInput if it is missing, naming `values`, which needs it.
const StoredTensor& part_of(const TensorArchive& archive, const StoredTensor& values, const std::string& name);
/// @throws Error kInput "found type X, expected Y".
void expect_type(const TensorArchive& archive, const StoredTensor& tensor, const std::vector<std::string>& expected);
/// @throws Error kInput "found shape X, expected Y". @param source  of the expected shape, in words
void expect_shape(const TensorArchive& archive, const StoredTensor& tensor, const std::vector<std::uint64_t>& expected,
                  const std::string& source);
/// @throws Error kUnsupported unless quantised values are a matrix.
void expect_matrix(const TensorArchive& archive, const StoredTensor& values);

}  // namespace kvs::inline model
