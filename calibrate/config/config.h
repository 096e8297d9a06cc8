// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "caches/cache_shape.h"
#include "io/json.h"
#include "model/config.h"
#include "model/model.h"

namespace kvs::inline calibrate {

/// How a config was made, so that it can be made again.
struct Provenance {
  std::string command;  // the whole command line
  std::string tool_version;
  std::vector<std::string> text_sha256;  // one per text file read
  std::uint64_t documents = 0, tokens = 0;
  std::uint64_t window = 0;  // tokens of each document; RoPE's frequencies may depend on it
  std::int64_t seed = 0;
  Json inputs = Json::object();  // SHA-256 of the other inputs, by names such as config_sha256
  std::optional<Json> bos = {};  // id that every document begins with, or null; nullopt: no text was read
};

/// Returns the provenance of settings that were not chosen on a text: a paper's, or given ones.
Provenance without_text(Provenance provenance);

/// A file that belongs to a config and is stored next to it.
struct ConfigFile {
  std::string name;  // plain file name, relative to the config
  std::string sha256;
};

/// Creates a config document as described by export/kvspectrum-config.schema.json.
/// @param calibration  method-specific results; the provenance is added to it
Json make_config(const std::string& method, const ModelConfig& model, const std::string& model_sha256, Json parameters,
                 Json calibration, const Provenance& provenance, Json quality, std::span<const ConfigFile> files);

/// Checks a config: its parameters as the method reads them, the schema, and its lists against each other.
/// @param where  the file, for messages
/// @throws Error kInput on any violation (JSON pointer) or unknown method; kUnsupported for a newer version.
void check_config(const Json& config, const std::string& where);

/// Reads and checks a config and the files next to it: digests, shapes and values of their tensors.
/// @throws Error like check_config(); kInput for a wrong digest or tensor, kData for NaN or infinity in one.
Json read_config(const std::filesystem::path& path);

/// @throws Error kConflict naming each differing field if `config` was made for another model or geometry. RoPE's
/// frequencies are not compared, because with dynamic and LongRoPE they depend on the window. If the model accepts
/// other weights, its digest may differ, but not its tokenizer.
void check_config_model(const Json& config, const std::filesystem::path& path, const ModelSource& model);

/// Returns what a config states of its model's caches; windows are not stated. @param config  checked by check_config()
CacheShape recorded_shape(const Json& config);

/// Returns the schema's text (draft-07): export/kvspectrum-config.schema.json, with the parameters of each method of
/// all_methods() as declared by its reader. Its member `lists` states rules that draft-07 cannot express:
/// check_config_lists().
const std::string& config_schema();
/// Returns config_schema(), parsed.
const Json& parsed_config_schema();

}  // namespace kvs::inline calibrate
