// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "calibrate/transform/level_coder.h"
#include "export/codec/group_codec.h"

namespace kvs::inline exporting {

/// TransformForm::kStorage: blocks of levels, of which each decodes alone. Blocks end where those of the programs'
/// cache end, so the streams of consecutive tokens that are cut there have the blocks of one stream.
class StorageCodec final : public GroupCodec {
 public:
  using GroupCodec::GroupCodec;

  kvs_codec_group group() const noexcept override;
  std::size_t bound(const kvs_codec_block& block) const override;
  std::size_t encode(CpuCoding& ops, int threads, const kvs_codec_block& block, const GroupStates& states,
                     std::span<std::byte> out) const override;
  kvs_codec_stream inspect(std::span<const std::byte> stream) const override;
  void decode(CpuCoding& ops, int threads, std::span<const std::byte> stream, std::size_t first, std::size_t count,
              const GroupStates& states) const override;

 private:
  /// A block of levels of a stream.
  struct Place {
    std::size_t first, tokens;  // from the first token of the stream
    std::size_t words, count;   // offset in the stream; number
  };

  std::size_t coefficients() const noexcept { return products().scales.size(); }
  std::size_t unit() const noexcept;
  std::size_t blocks_of(const StreamHead& head) const noexcept;
  std::size_t codes_at(const StreamHead& head) const noexcept;
  std::vector<LevelBlock> encode_slab(CpuCoding& ops, int threads, std::uint64_t position, const Parts& parts,
                                      const BackendView<const float, 4>& inputs) const;
  std::vector<Place> checked_places(const StreamHead& head, std::span<const std::byte> stream) const;
  Parts read(CpuCoding& ops, int threads, std::span<const std::byte> stream, std::span<const Place> places,
             const Slab& slab, const BackendView<const float, 4>& inputs) const;
};

}  // namespace kvs::inline exporting
