// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "calibrate/transform/coder.h"
#include "export/codec/key_rope.h"
#include "export/codec/stream.h"
#include "kernels/cpu/coding.h"
#include "kvspectrum/codec.h"

namespace kvs::inline exporting {

/// @throws Error kUsage unless the block has tokens [first, first + count), at least `least`
void check_tokens(const StreamHead& head, std::size_t first, std::size_t count, std::size_t least);

/// Codes blocks of one layer. Constant after its construction.
class LayerCodec {
 public:
  LayerCodec(CodingOps& ops, const TransformLayer& layer, const TransformShape& shape,
             std::shared_ptr<const KeyRope> rope, const StreamId& id);

  kvs_codec_layout layout() const noexcept;
  /// Returns the largest number of bytes of the block's stream. @throws Error kUsage for a block that no sequence has
  std::size_t bound(const kvs_codec_block& block) const;
  /// Encodes a block.
  /// @param ops  of the calling thread
  /// @return the bytes of the stream; more than `out` has if it does not fit
  std::size_t encode(CpuCoding& ops, int threads, const kvs_codec_block& block, const kvs_codec_states& states,
                     std::span<std::byte> out) const;
  /// Checks a stream of this layer. @throws Error kData unless every position and length is right
  kvs_codec_stream inspect(std::span<const std::byte> stream) const;
  /// Decodes tokens [first, first + count) of a stream's block. @throws Error like inspect(); kUsage for other tokens
  void decode(CpuCoding& ops, int threads, std::span<const std::byte> stream, std::size_t first, std::size_t count,
              const kvs_codec_states& states) const;
  /// kHead: computes the attention of queries over tokens [first, first + count) of a stream's block, from their codes.
  /// @param out  [query_head, head_dim];  @param log_sums  [query_head]: ln Σ exp(score) over these tokens
  /// @throws Error like decode(); kUsage for queries that do not fit the layer, and with kLayer
  void attend(CpuCoding& ops, int threads, std::span<const std::byte> stream, std::size_t first, std::size_t count,
              const kvs_codec_queries& queries, float* out, float* log_sums) const;

 private:
  /// Where the parts of a stream are.
  struct Places {
    std::size_t sinks, coded, outliers;         // numbers of tokens
    std::size_t codes, positions, rows, bytes;  // offsets of the parts; bytes of all
    std::size_t sink_bytes, row_bytes;          // of a sink; of an outlier without its position

    /// Returns the number of sinks among tokens [first, first + count).
    std::size_t sinks_among(std::size_t first, std::size_t count) const noexcept {
      return std::min(count, sinks - std::min(sinks, first));
    }
  };
  struct Outliers;

  std::size_t sinks_of(std::uint64_t first_position, std::size_t tokens) const noexcept;
  Places places_of(std::size_t sinks, std::size_t coded, std::size_t outliers) const noexcept;
  Places checked_places(const StreamHead& head, std::span<const std::byte> stream) const;
  /// Returns the rows of keys (`keys`; with kLayer all) or of values of `coded` tokens whose codes begin at `codes`.
  StoredRows rows_at(const std::byte* codes, std::size_t coded, bool keys) const;
  StoredRows outlier_rows(const std::byte* rows) const noexcept;
  void encode_coded(CpuCoding& ops, const kvs_codec_block& block, const TokenRows::Part& part, std::size_t first,
                    std::size_t sinks, std::span<std::byte> out, Outliers& outliers) const;
  /// Returns decoded tokens [first, first + count) of a checked stream, with keys before RoPE.
  TokenRows::Part read_tokens(CpuCoding& ops, std::span<const std::byte> stream, const Places& places,
                              std::size_t first, std::size_t count) const;
  void put_coded(CpuCoding& ops, std::span<const std::byte> stream, const Places& places, std::size_t first,
                 TokenRows::Part& part, std::size_t to) const;
  void put_outliers(CpuCoding& ops, std::span<const std::byte> stream, const Places& places, std::size_t first,
                    TokenRows::Part& part) const;
  /// Returns the sinks among `count` tokens from `first` on, with keys that rotate as if they came after the coded
  /// ones.
  TokenRows::Part late_sinks(CpuCoding& ops, std::span<const std::byte> stream, const Places& places,
                             std::size_t position, std::size_t first, std::size_t count) const;
  void rotate(CpuCoding& ops, const TokenRows::Part& part, std::size_t position, RopeDirection direction) const;

  TransformProducts products_;
  std::size_t layer_;
  std::shared_ptr<const KeyRope> rope_;
  StreamId id_;
};

}  // namespace kvs::inline exporting
