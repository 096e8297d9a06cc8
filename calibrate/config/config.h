#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/json.h"
#include "model/config.h"
#include "model/model.h"

namespace kvs {

/// Where a config comes from, so that anyone can make it again.
struct Provenance {
  std::string command;  // the whole command line
  std::string tool_version;
  std::vector<std::string> text_sha256;  // one per text file read
  std::uint64_t documents = 0, tokens = 0;
  std::uint64_t window = 0;  // tokens of each document, which RoPE's frequencies may depend on
  std::int64_t seed = 0;
  Json inputs = Json::object();  // SHA-256 of what else was read, by names such as config_sha256
  std::optional<Json> bos = {};  // the id that every document begins with, or null; nothing: no text was read
};

/// The same where no text was read to choose settings: those of a paper, or given ones.
Provenance without_text(Provenance provenance);

/// A file that belongs to a config, beside it.
struct ConfigFile {
  std::string name;  // plain file name, relative to the config
  std::string sha256;
};

/// A config document as export/kvspectrum-config.schema.json describes it.
/// @param calibration  method-specific results; the provenance is added to it
Json make_config(const std::string& method, const ModelConfig& model, const std::string& model_sha256, Json parameters,
                 Json calibration, const Provenance& provenance, Json quality, std::span<const ConfigFile> files);

/// Checks what a config says: its parameters as the method reads them, the schema, its lists against each other.
/// @param where  the file, for messages
/// @throws Error kInput on any violation (JSON pointer) or unknown method; kUnsupported for a newer version.
void check_config(const Json& config, const std::string& where);

/// Reads a config and checks it, and the files beside it: digests, shapes and values of their tensors.
/// @throws Error as check_config; kInput for a wrong digest or tensor, kData for NaN or infinity in one.
Json read_config(const std::filesystem::path& path);

/// @throws Error kConflict naming each differing field if `config` was made for another model or geometry. RoPE's
/// frequencies are not compared: with dynamic and LongRoPE they depend on the window. Where the model takes other
/// weights, its digest may differ, but the tokenizer may not.
void check_config_model(const Json& config, const std::filesystem::path& path, const ModelSource& model);

/// The schema's text (draft-07): export/kvspectrum-config.schema.json, where each method of all_methods() has the
/// parameters that its reader describes. `lists` in it is what draft-07 cannot say: check_config_lists().
const std::string& config_schema();
/// The same, parsed.
const Json& parsed_config_schema();

}  // namespace kvs
