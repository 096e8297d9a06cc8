// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "export/codec/group_codec.h"

namespace kvs::inline exporting {

/// TransformForm::kRandomAccess: rows of equal bytes.
class RowCodec final : public GroupCodec {
 public:
  using GroupCodec::GroupCodec;

  kvs_codec_group group() const noexcept override;
  std::size_t bound(const kvs_codec_block& block) const override;
  std::size_t encode(CpuCoding& ops, int threads, const kvs_codec_block& block, const GroupStates& states,
                     std::span<std::byte> out) const override;
  kvs_codec_stream inspect(std::span<const std::byte> stream) const override;
  void decode(CpuCoding& ops, int threads, std::span<const std::byte> stream, std::size_t first, std::size_t count,
              const GroupStates& states) const override;
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
    std::size_t row_bytes;                      // of an outlier without its position

    /// Returns the number of sinks among tokens [first, first + count).
    std::size_t sinks_among(std::size_t first, std::size_t count) const noexcept {
      return std::min(count, sinks - std::min(sinks, first));
    }
  };
  struct Outliers;

  StreamRows stream_rows() const noexcept;
  Places places_of(std::size_t sinks, std::size_t coded, std::size_t outliers) const noexcept;
  Places checked_places(const StreamHead& head, std::span<const std::byte> stream) const;
  /// Returns the rows of keys (`keys`; with kLayer all) or of values of `coded` tokens whose codes begin at `codes`.
  StoredRows rows_at(const std::byte* codes, std::size_t coded, bool keys) const;
  /// Calls act(rows of the states, stored rows) for an outlier's keys and values of each layer.
  template <class Act>
  void each_outlier_row(const Parts& parts, const std::byte* row, const Act& act) const;
  void encode_coded(CpuCoding& ops, const kvs_codec_block& block, const Slab& slab, const Parts& parts,
                    const BackendView<const float, 4>& inputs, std::byte* codes, Outliers& outliers) const;
  /// Returns the decoded tokens of a slab of a checked stream, with keys before RoPE.
  Parts read(CpuCoding& ops, std::span<const std::byte> stream, const Places& places, const Slab& slab,
             const BackendView<const float, 4>& inputs) const;
  void put_outliers(CpuCoding& ops, std::span<const std::byte> stream, const Places& places, std::size_t first,
                    const Parts& parts) const;
  /// Returns the sinks among `count` tokens from `first` on, with keys that rotate as if they came after the coded
  /// ones.
  TokenRows::Part late_sinks(CpuCoding& ops, std::span<const std::byte> stream, const Places& places,
                             std::size_t position, std::size_t first, std::size_t count) const;
};

}  // namespace kvs::inline exporting
