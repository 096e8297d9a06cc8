// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/elitekv/source.h"
#include "export/exporter.h"
#include "io/output_tensor.h"
#include "model/architecture.h"

namespace kvs::inline exporting {

/// Returns why no EliteModel can hold a model, apart from biases (Exporter::obstacle).
std::string elite_model_obstacle(const ModelConfig& model);

/// The data of a layer's new projections.
struct EliteRows {
  std::size_t index = 0;  // index of the layer
  EliteLayer elite;
  std::vector<float> query_rows;                // W_q or its replacement: [query_heads · head_dim, d_model]
  std::vector<std::vector<std::size_t>> plain;  // [kv_head] channels that are not rotated, ascending
  std::vector<std::size_t> first_row;           // [kv_head] first row of these channels in up
  std::size_t value_row = 0;                    // first row of the values in up

  /// Rows of W_q, W_k, down and up.
  const float* query(std::size_t row) const { return query_rows.data() + row * width(); }
  const float* key(std::size_t row) const { return elite.key_rows.data() + row * width(); }
  const float* down(std::size_t row) const { return elite.down.data() + row * width(); }
  const float* up(std::size_t row) const { return elite.up.data() + row * elite.rank; }
  std::size_t width() const { return elite.down.size() / elite.rank; }  // d_model
};

/// A Llama-like model with an elitekv config of all layers, for export with another attention. Holds the factors, W_q
/// and W_k of one layer at a time.
class EliteModel {
 public:
  /// @throws Error kUnsupported with the reason if the arithmetic is not Llama's (RMSNorm, SwiGLU; no biases, windows
  /// or
  ///         QK-norm), if the config has no factors, or if it leaves layers out
  explicit EliteModel(const ExportJob& job);

  const ExportJob& job() const noexcept { return *job_; }
  const ModelConfig& model() const noexcept { return job_->model.config(); }
  const EliteConfig& config() const noexcept { return source_.config(); }
  std::size_t rank() const noexcept { return rank_; }  // largest rank of a layer
  const EliteRows& layer(std::size_t index) const;

  /// Returns a tensor of the job's type that is computed row by row. `row` writes to zeros.
  OutputTensor rows(std::string name, std::vector<std::uint64_t> shape,
                    std::function<void(std::size_t row, std::span<float> out)> row) const;
  /// Returns W_o, corrected if the config has fitted outputs.
  OutputTensor output(std::string name, std::size_t layer) const;
  /// Returns an unchanged tensor of the model.
  OutputTensor kept(std::string name, TensorRole role, std::size_t layer = 0) const;

 private:
  const ExportJob* job_;
  EliteSource source_;
  std::size_t rank_ = 0;
  mutable std::unique_ptr<EliteRows> held_;
};

/// Returns the member `cache` of an export's result: the cached values per token and layer.
Json cache_json(const ModelConfig& model, std::size_t latent, std::size_t rotary);

}  // namespace kvs::inline exporting
