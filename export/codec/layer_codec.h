#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "calibrate/transform/coder.h"
#include "export/codec/stream.h"
#include "kernels/cpu/coding.h"
#include "kvspectrum/codec.h"

namespace kvs::inline exporting {

/// The rotation of a layer's keys.
struct LayerRope {
  std::vector<double> frequencies;  // [chunk], radians per token
  double factor = 1;                // of cos and sin
};

/// Codes blocks of one layer. Constant after its construction.
class LayerCodec {
 public:
  LayerCodec(CodingOps& ops, const TransformLayer& layer, const TransformShape& shape, LayerRope rope,
             const StreamId& id);

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

 private:
  struct Places;
  struct Outliers;

  std::size_t sinks_of(std::uint64_t first_position, std::size_t tokens) const noexcept;
  Places places_of(std::size_t sinks, std::size_t coded, std::size_t outliers) const noexcept;
  Places checked_places(const StreamHead& head, std::span<const std::byte> stream) const;
  /// Returns the rows of keys (`keys`; with kLayer all) or of values of `coded` tokens whose codes begin at `codes`.
  StoredRows rows_at(const std::byte* codes, std::size_t coded, bool keys) const;
  StoredRows outlier_rows(const std::byte* rows) const noexcept;
  void encode_coded(CpuCoding& ops, const kvs_codec_block& block, const TokenRows::Part& part, std::size_t first,
                    std::size_t sinks, std::span<std::byte> out, Outliers& outliers) const;
  void put_coded(CpuCoding& ops, std::span<const std::byte> stream, const Places& places, std::size_t first,
                 TokenRows::Part& part, std::size_t to) const;
  void put_outliers(CpuCoding& ops, std::span<const std::byte> stream, const Places& places, std::size_t first,
                    TokenRows::Part& part) const;
  void rotate(CpuCoding& ops, const TokenRows::Part& part, std::size_t position, RopeDirection direction) const;

  TransformProducts products_;
  std::size_t layer_;
  LayerRope rope_;
  StreamId id_;
};

}  // namespace kvs::inline exporting
