#pragma once

#include <cstdint>
#include <string>

#include "io/json.h"
#include "model/config.h"

namespace kvs {

/// Name, digest, architecture and sizes: the part of model_json() that any window shares.
Json geometry_json(const ModelConfig& model, const std::string& sha256);
/// What makes two models' RoPE the same, whatever the length of their documents.
Json rope_identity(const ModelConfig& model);
/// The rope_identity() with the angles of documents of `window` tokens.
Json rope_json(const ModelConfig& model, std::uint64_t window);
/// The `model` member of a config and of every report. `rope.frequencies` [kind][chunk] are those of documents of
/// `window` tokens (rope_angles); `rope.layer_kinds` names each layer's kind.
Json model_json(const ModelConfig& model, const std::string& sha256, std::uint64_t window);

}  // namespace kvs
