// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "io/file.h"
#include "io/json.h"
#include "model/decoder.h"

namespace kvs::test {

/// tests/golden/tiny_llama.json (make_tiny_llama.py).
struct Golden {
  std::vector<std::int32_t> tokens;
  std::vector<std::size_t> rows;
  Json models;
};

/// Returns a path in tests/golden, or in KVS_GOLDEN on a machine that only has the programs.
inline std::filesystem::path golden_path(const std::string& name) {
  const char* elsewhere = std::getenv("KVS_GOLDEN");
  return std::filesystem::path(elsewhere != nullptr ? elsewhere : KVS_GOLDEN_DIR) / name;
}

inline Golden read_golden() {
  const std::filesystem::path path = golden_path("tiny_llama.json");
  Golden golden;
  golden.models = parse_json(read_text_file(path, 1 << 20), path.string());
  golden.tokens = golden.models["tokens"].get<std::vector<std::int32_t>>();
  golden.rows = golden.models["rows"].get<std::vector<std::size_t>>();
  return golden;
}

/// A tiny model in a CPU backend.
struct TinyModel {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<ModelSource> source;
  std::unique_ptr<Model> model;
  std::unique_ptr<Decoder> decoder;

  explicit TinyModel(const std::string& name = "tiny_llama_gqa", DType type = DType::kF32)
      : backend(make_backend("cpu", type)),
        source(ModelSource::open(golden_path(name))),
        model(std::make_unique<Model>(*source, *backend)),
        decoder(std::make_unique<Decoder>(*model)) {}

  std::size_t layers() const { return model->config().layers(); }
  std::vector<float> residual(const ResidualStream& hidden) const { return download(*backend, hidden.rows.view()); }
};

}  // namespace kvs::test
