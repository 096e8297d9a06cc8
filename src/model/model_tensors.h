#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "io/tensor_archive.h"
#include "model/parsed_config.h"
#include "model/tensor_shape.h"

namespace kvs {

/// The order of the rows of W_q and W_k in files whose RoPE pairs are adjacent rows; head_dim 0: rotate-half order.
struct Interleaving {
  std::size_t head_dim = 0, rotary_dim = 0;
};

/// Where such a file stores the row that rotate-half order calls `row`: of a head's rows the first rotary_dim = 2n are
/// adjacent pairs there, so row half·n + c is stored as its row 2c + half; the rows behind them stay.
constexpr std::size_t interleaved_row(std::size_t row, const Interleaving& order) noexcept {
  const std::size_t within = row % order.head_dim, half = order.rotary_dim / 2;
  if (within >= order.rotary_dim) return row;
  return row - within + 2 * (within % half) + within / half;
}

/// Which rows of a stored tensor belong to one of its parts: `rows` from `first` on, in runs of `run` rows that begin
/// `stride` rows apart.
struct RowPart {
  std::size_t first = 0, rows = 0, run = 0, stride = 0;

  /// Where the tensor holds the part's row.
  std::size_t stored(std::size_t row) const noexcept { return first + row / run * stride + row % run; }
};

/// One stored matrix (or vector), or a part of its rows, read as f32 rows in rotate-half channel order, each value
/// checked to be finite.
class TensorRows {
 public:
  TensorRows(const TensorArchive& archive, const StoredTensor& tensor, Interleaving order, RowPart part);

  std::size_t rows() const noexcept;
  std::size_t columns() const noexcept;
  /// Rows [first, first + count) into out (count · columns), in parallel.
  /// @throws Error kData if a value is NaN or infinite: tensor, flat index as stored, count.
  void read(std::size_t first, std::size_t count, std::span<float> out) const;

 private:
  [[noreturn]] void fail_not_finite() const;
  void read_run(std::size_t first, std::size_t count, std::span<float> out) const;

  const TensorArchive* archive_;
  const StoredTensor* tensor_;
  Interleaving order_;
  RowPart part_;
};

/// The tensors of one model by what they are for: found, their shapes checked against the config, nothing decoded.
class ModelTensors {
 public:
  /// @throws Error kInput (missing: the first 5 names and the count; shapes with the config's keys), kUnsupported (a
  ///         tensor's type by name). Appends to `parsed.notes` what the file holds beyond the config, and
  ///         clears `tied_head` where the file holds another head than the embedding.
  ModelTensors(const TensorArchive& archive, ModelFormat format, ParsedConfig& parsed);

  /// layer: 0 for tensors that belong to no layer.
  TensorRows rows(TensorRole role, std::size_t layer = 0) const;
  /// As the file has it.
  const std::string& name(TensorRole role, std::size_t layer = 0) const { return found(role, layer).weight->name; }
  /// Empty if the projection has none.
  std::vector<float> bias(TensorRole role, std::size_t layer) const;
  bool has(TensorRole role, std::size_t layer = 0) const { return found(role, layer).weight != nullptr; }
  /// Values of a vector such as a norm's gain: what it multiplies by, whatever the file stores.
  std::vector<float> vector(TensorRole role, std::size_t layer = 0) const;
  /// Names of every tensor in use: what the model's digest covers.
  std::span<const std::string> names() const noexcept { return names_; }
  void check_unchanged() const { archive_->check_unchanged(); }

 private:
  struct Found {
    const StoredTensor *weight = nullptr, *bias = nullptr;
    RowPart part;
  };
  /// The neighbours in the table that are stored in one tensor.
  using Parts = std::span<const TensorSpec>;
  using Row = std::array<Found, kTensorRoles>;
  struct Missing {
    std::size_t whole_layers;  // below the first that lacks something
    bool untied_head = false;
    std::vector<std::string> names;
  };

  const Found& found(TensorRole role, std::size_t layer) const;
  Interleaving interleaving(TensorRole role) const noexcept;
  bool needed(const TensorSpec& spec, const ParsedConfig& parsed) const noexcept;
  bool biased(const TensorSpec& spec, const ParsedConfig& parsed) const noexcept;
  void find_all(std::span<const TensorSpec> table, std::size_t layer, const ParsedConfig& parsed, Missing& missing);
  void find(Parts parts, std::size_t layer, const ParsedConfig& parsed, Missing& missing);
  RowPart part_of(Parts parts, std::size_t index, const ParsedConfig& parsed) const;
  const StoredTensor* find_checked(Parts parts, std::span<const std::string> names, bool bias,
                                   const ModelConfig& config);
  [[noreturn]] void fail_missing(const Missing& missing) const;
  void note_unused(ParsedConfig& parsed) const;

  const TensorArchive* archive_;
  ModelFormat format_;
  bool norms_less_one_;
  Interleaving interleaving_;  // of W_q and W_k
  std::vector<Row> layers_;    // tensors that belong to no layer sit in layer 0's row
  std::vector<std::string> names_;
  std::vector<std::string> embedding_names_;  // Hugging Face: what the embedding may be called
};

}  // namespace kvs
