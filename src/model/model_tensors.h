// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/tensor_archive.h"
#include "model/expert_table.h"
#include "model/parsed_config.h"
#include "model/tensor_shape.h"

namespace kvs::inline model {

/// Order of the rows of W_q and W_k in files whose RoPE pairs are adjacent rows; head_dim 0: rotate-half order.
struct Interleaving {
  std::size_t head_dim = 0, rotary_dim = 0;
};

/// Returns where such a file stores the row `row` of rotate-half order. The first rotary_dim = 2n rows of a head are
/// adjacent pairs in the file: row half·n + c is stored as row 2c + half. The following rows are not moved.
constexpr std::size_t interleaved_row(std::size_t row, const Interleaving& order) noexcept {
  const std::size_t within = row % order.head_dim, half = order.rotary_dim / 2;
  if (within >= order.rotary_dim) return row;
  return row - within + 2 * (within % half) + within / half;
}

/// The rows of a stored tensor that belong to one part: `rows` rows from `first` on, in runs of `run` rows that begin
/// `stride` rows apart. Of a transposed matrix: columns of the `depth` stored rows from `base` on.
struct RowPart {
  std::size_t first = 0, rows = 0, run = 0, stride = 0;
  std::size_t base = 0, depth = 0;  // depth 0: the matrix is not transposed

  /// Returns the position of the part's row in the tensor.
  std::size_t stored(std::size_t row) const noexcept { return first + row / run * stride + row % run; }
};

/// One stored matrix or vector, or a part of its rows, read as f32 rows in rotate-half channel order. Each value is
/// checked to be finite.
class TensorRows {
 public:
  /// @param matrix  whose values the tensor holds; nullptr: it is plain;  @param factor  multiplies the values
  TensorRows(const TensorArchive& archive, const StoredTensor& tensor, Interleaving order, RowPart part,
             const StoredMatrix* matrix = nullptr, float factor = 1);

  std::size_t rows() const noexcept;
  std::size_t columns() const noexcept;
  /// Reads rows [first, first + count) into out (count · columns), in parallel.
  /// @throws Error kData if a value is NaN or infinite: tensor, flat index as stored, count.
  void read(std::size_t first, std::size_t count, std::span<float> out) const;

 private:
  [[noreturn]] void fail_not_finite() const;
  void read_run(std::size_t first, std::size_t count, std::span<float> out) const;
  void read_transposed(std::size_t first, std::size_t count, std::span<float> out) const;
  void release(std::size_t first, std::size_t count) const;
  void read_stored(std::size_t first, std::size_t count, std::span<float> out) const;
  void read_stored_columns(std::size_t row, std::size_t column, std::span<float> out) const;
  std::size_t stored_rows() const noexcept;
  std::size_t stored_columns() const noexcept;

  const TensorArchive* archive_;
  const StoredTensor* tensor_;
  Interleaving order_;
  RowPart part_;
  const StoredMatrix* matrix_;
  float factor_;
};

/// The tensors of one model by role. They are located and their shapes checked against the config; no data are decoded.
class ModelTensors {
 public:
  /// @param archive  with one tensor or more
  /// @throws Error kInput (missing: the first 5 names and the count; shapes with the config's keys), kUnsupported (a
  /// tensor's type by name). Adds to `parsed.notes` the contents of the file beyond the config, and clears `tied_head`
  /// if the file holds a head that differs from the embedding.
  ModelTensors(const TensorArchive& archive, ModelFormat format, ParsedConfig& parsed);

  /// layer: 0 for tensors that do not belong to a layer.
  /// expert: 0 for tensors that are not an expert's; the stream's number, from 0, for AltUp's projections.
  TensorRows rows(TensorRole role, std::size_t layer = 0, std::size_t expert = 0) const;
  /// Name in the file.
  const std::string& name(TensorRole role, std::size_t layer = 0, std::size_t expert = 0) const {
    return found(role, layer, expert).weight->name;
  }
  /// Empty if the projection has none.
  std::vector<float> bias(TensorRole role, std::size_t layer = 0, std::size_t expert = 0) const;
  bool has(TensorRole role, std::size_t layer = 0) const { return found(role, layer).weight != nullptr; }
  /// Number of experts of a layer; 0: its feed-forward block is dense.
  std::size_t experts(std::size_t layer) const { return layers_.at(layer).experts.size(); }
  /// Returns the values of a vector such as a norm's gain, as multiplied, independent of how the file stores them.
  std::vector<float> vector(TensorRole role, std::size_t layer = 0) const;
  /// Shapes of the values of every tensor in use, decoded.
  std::span<const std::vector<std::uint64_t>> shapes() const noexcept { return shapes_; }
  /// Names of the tensors that the model's digest covers: those in use with all parts of quantised ones.
  std::vector<std::string> digest_names() const;
  void check_unchanged() const { archive_->check_unchanged(); }

 private:
  struct Found {
    const StoredTensor *weight = nullptr, *bias = nullptr;
    RowPart part;
    std::size_t bias_row = 0;                           // of a tensor that holds all experts' biases
    std::vector<const StoredTensor*> other_heads = {};  // vectors of the heads after the first, whose is `weight`
  };
  /// Adjacent rows of the table that are stored in one tensor.
  using Parts = std::span<const TensorSpec>;
  using Row = std::array<Found, kTensorRoles>;
  struct Layer {
    Row tensors;
    std::vector<std::array<Found, kExpertRoles>> experts;
  };
  struct Missing {
    std::size_t whole_layers;  // number of layers before the first incomplete one
    bool untied_head = false;
    std::vector<std::string> names;
  };

  const Found& found(TensorRole role, std::size_t layer, std::size_t expert = 0) const;
  Interleaving interleaving(TensorRole role) const noexcept;
  std::vector<std::span<const TensorSpec>> blocks_of(const Architecture& row, const LayerConfig& layer) const;
  bool needed(const TensorSpec& spec, std::size_t layer, const ParsedConfig& parsed) const noexcept;
  bool biased(const TensorSpec& spec, const ParsedConfig& parsed) const noexcept;
  void find_all(std::span<const TensorSpec> table, std::size_t layer, const ParsedConfig& parsed, Missing& missing);
  void find(Parts parts, std::size_t layer, const ParsedConfig& parsed, Missing& missing);
  void find_experts(Parts parts, std::size_t layer, const ParsedConfig& parsed, Missing& missing);
  void find_streams(const TensorSpec& spec, const ParsedConfig& parsed, Missing& missing);
  void find_heads(const TensorSpec& spec, std::size_t layer, const ParsedConfig& parsed, Missing& missing);
  RowPart part_of(Parts parts, std::size_t index, std::size_t layer, const ParsedConfig& parsed) const;
  const StoredTensor* find_checked(Parts parts, std::span<const std::string> names, bool bias, bool stacked,
                                   std::size_t layer, const ParsedConfig& parsed);
  float factor_of(TensorRole role) const;
  const StoredMatrix* matrix_of(const StoredTensor& tensor) const;
  [[noreturn]] void fail_missing(const Missing& missing) const;
  /// Refuses a GGUF in which some of the layers that have a tensor lack its bias.
  void check_biases() const;
  void note_unused(ParsedConfig& parsed) const;

  const TensorArchive* archive_;
  ModelFormat format_;
  bool norms_less_one_;
  Interleaving interleaving_;            // of W_q and W_k
  Interleaving index_interleaving_;      // of the index of tokens
  std::map<TensorRole, float> factors_;  // ParsedConfig
  ExpertTable expert_table_;
  bool joined_inputs_;                                     // RecurrenceRules::gguf_joined
  std::map<TensorRole, std::vector<Found>> streams_ = {};  // AltUp's projections: [stream]
  std::vector<Layer> layers_;                              // tensors that do not belong to a layer are in layer 0
  std::vector<std::string> names_;
  std::vector<std::vector<std::uint64_t>> shapes_;                         // [name]
  std::map<const StoredTensor*, std::unique_ptr<StoredMatrix>> matrices_;  // by the tensor of their values
  std::vector<std::string> embedding_names_;  // Hugging Face: possible names of the embedding
};

}  // namespace kvs::inline model
