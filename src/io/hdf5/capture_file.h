// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/state_kind.h"
#include "core/tensor_view.h"
#include "io/json.h"
#include "io/layer_sizes.h"

namespace kvs::inline io {

/// The root attributes of a capture (docs/captures.md). They determine the shapes of its datasets.
struct CaptureHeader {
  std::string model_name, model_sha256, architecture;
  std::uint32_t model_layers = 0;                  // number of layers of the whole model
  std::vector<std::int32_t> layers;                // the stored layers of the model, ascending
  LayerSizes query_heads, kv_heads, head_dim;      // 0 in a layer without a KV cache of its own
  std::vector<std::int32_t> layers_without_cache;  // of the model, ascending; none of them is stored
  // A model may have several kinds of RoPE (Gemma 3: two). theta and scaling are those of kind 0.
  double rope_theta = 0;
  std::string rope_scaling;              // JSON text of the scaling parameters, "null" if none
  std::string rope_parameters;           // JSON text: a list with one {theta, rotary_dim, scaling} per kind
  LayerSizes rotary_dim;                 // [kind] rotated channels: chunk c = channels (c, c + rotary_dim / 2)
  std::vector<std::int32_t> rope_kinds;  // [model_layers]
  std::vector<double> rope_factors;      // [kind] factor of cos and sin (YaRN, LongRoPE; else 1)
  /// [kind][rotary_dim / 2] radians per token of each chunk, after scaling, for documents of `tokens` tokens.
  std::vector<double> rope_frequencies;
  DType store = DType::kF32;  // attribute `dtype`
  StateSet states;
  std::uint64_t tokens = 0, documents = 0;  // tokens per document

  std::size_t heads_of(std::size_t layer, StateKind kind) const noexcept {
    return (kind == StateKind::kQPre ? query_heads : kv_heads).of(layer);
  }
  /// [heads, tokens, head_dim]
  std::array<std::size_t, 3> shape_of(std::size_t layer, StateKind kind) const noexcept {
    return {heads_of(layer, kind), static_cast<std::size_t>(tokens), head_dim.of(layer)};
  }
  /// Returns the number of values of a layer's largest state.
  std::size_t largest_state() const noexcept;
  /// Returns the number of values of a document's states in all stored layers.
  std::uint64_t values() const noexcept;
};

/// A document that is being written into a capture.
class CaptureDocument {
 public:
  virtual ~CaptureDocument() = default;

  /// Several threads may write datasets at once.
  /// states: [heads, tokens, head_dim] in the stored type.  @throws Error kData on NaN or infinity
  virtual void write_stored(std::int32_t layer, StateKind kind, std::span<const std::byte> states) = 0;
  virtual void write_nll(std::span<const float> nll) = 0;
  /// Makes the document durable. Called once, after the other calls have returned.
  /// @return its record, with the checksum of every dataset
  /// @throws Error kInternal if one of its datasets was not written
  virtual Json store() = 0;
};

/// Writes documents, in any order and several at once, into a capture that is laid out. Several processes may write,
/// each its own documents. A document counts once CaptureWriter::commit() has its record.
class CapturePart {
 public:
  /// Opens another process's capture.  @param layout  the result of that process's CaptureWriter::layout()
  /// @throws Error kEnvironment if OUT.partial is not that process's file: the folder is not shared
  static std::unique_ptr<CapturePart> open(const std::filesystem::path& output, const CaptureHeader& header,
                                           const Json& layout);
  virtual ~CapturePart() = default;

  /// Writes the tokens of a document. The result must not outlive this.
  virtual std::unique_ptr<CaptureDocument> begin_document(std::uint64_t document,
                                                          std::span<const std::int32_t> tokens) = 0;
};

/// Writes a capture crash-safely. Every dataset is laid out first; data are written by pwrite at the datasets' offsets
/// with HDF5 closed; one journal line commits each document. After a kill, a resumed run continues with the first
/// document that is not committed.
class CaptureWriter {
 public:
  struct Options {
    bool force = false, resume = false, lock = true;
  };
  /// Creates OUT.partial and OUT.journal, or continues them with `resume`.
  /// @param identity  must be equal for a resume: options that change results, model, corpus digests, tool version
  /// @throws Error kConflict (OUT exists without force; an unfinished OUT.partial without resume or force; another
  ///         process holds the lock; identity differs), kEnvironment (a full disk is found here, before any forward
  ///         pass).
  static std::unique_ptr<CaptureWriter> open(const std::filesystem::path& output, const CaptureHeader& header,
                                             const Json& identity, const Options& options);
  virtual ~CaptureWriter() = default;

  /// Returns the index of the first document that is not committed yet.
  virtual std::uint64_t next_document() const noexcept = 0;
  virtual void begin_document(std::span<const std::int32_t> tokens) = 0;
  /// Several threads may write datasets of one document at once. All other calls need exclusive access.
  /// states: [heads, tokens, head_dim], converted to the stored type and written immediately.
  virtual void write_states(std::int32_t layer, StateKind kind, TensorView<const float, 3> states) = 0;
  /// Like write_states(), for values [heads, tokens, head_dim] that are already in the stored type.
  virtual void write_stored(std::int32_t layer, StateKind kind, std::span<const std::byte> states) = 0;
  virtual void write_nll(std::span<const float> nll) = 0;
  /// Makes the document durable and commits it. @throws Error kInternal if one of its datasets was not written.
  virtual void commit_document() = 0;

  /// For documents that parts write, here or in other processes, and that commit() commits in order.
  virtual CapturePart& part() noexcept = 0;
  virtual Json layout() const = 0;
  /// @param record  the record of next_document(), from CaptureDocument::store()
  virtual void commit(const Json& record) = 0;

  /// Checks every CRC, writes OUT.manifest.json, renames the capture into place and deletes the journal.
  virtual void finish() = 0;
};

/// Reads a capture. Checks every dataset's CRC-32C while reading, unless the manifest is missing.
class CaptureReader {
 public:
  struct Options {
    bool allow_incomplete = false, skip_corrupt = false;
  };
  /// @throws Error kInput (not a capture, metadata digest differs from the manifest, shapes contradict attributes),
  ///         kUnsupported (newer version), kConflict (unfinished without allow_incomplete; being written).
  static std::unique_ptr<CaptureReader> open(const std::filesystem::path& path, const Options& options);
  virtual ~CaptureReader() = default;

  virtual const CaptureHeader& header() const noexcept = 0;
  /// Returns the identity of the run that wrote the capture (CaptureWriter::open); null without manifest and journal.
  virtual const Json& identity() const noexcept = 0;
  /// Returns the SHA-256 of the header and the checksums of all readable data; without a manifest, of the header and
  /// the tokens.
  virtual std::string sha256() = 0;
  /// Returns false for a finished capture without its manifest: there is nothing to check its data against.
  virtual bool has_checksums() const noexcept = 0;
  /// Returns the number of readable documents (all, or the committed documents of an unfinished capture).
  virtual std::uint64_t documents() const noexcept = 0;
  virtual std::vector<std::int32_t> tokens(std::uint64_t document) = 0;
  virtual std::vector<float> nll(std::uint64_t document) = 0;
  /// out: [heads, tokens, head_dim], widened to f32. @return false if the CRC does not match and skip_corrupt is set.
  /// @throws Error kInput naming the dataset if the CRC does not match; kData on NaN or infinity (layer, head, token).
  virtual bool read_states(std::uint64_t document, std::int32_t layer, StateKind kind, TensorView<float, 3> out) = 0;
  /// Returns the bytes in the stored type.  @throws Error kInput if the CRC does not match
  virtual std::vector<std::byte> read_stored(std::uint64_t document, std::int32_t layer, StateKind kind) = 0;
};

/// Checks all CRCs of a capture and lists errors in `report`. @return number of damaged datasets.
/// @throws as CaptureReader::open; Error kInput for a finished capture without its manifest: only its structure can be
///         checked, not its data.
std::uint64_t verify_capture(const std::filesystem::path& path, const CaptureReader::Options& options, Json& report);

}  // namespace kvs::inline io
