// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "calibrate/transform/coder.h"
#include "export/codec/key_rope.h"
#include "export/codec/stream.h"
#include "kernels/cpu/coding.h"
#include "kvspectrum/codec.h"

namespace kvs::inline exporting {

/// Positions are exact as f32 up to this one.
inline constexpr std::uint64_t kMaxPosition = std::uint64_t{1} << 24;

/// What a caller gives for a block.
struct GroupStates {
  std::span<const kvs_codec_states> layers;  // [layer of the group]
  const kvs_codec_inputs* inputs = nullptr;  // with a prediction
};

/// Codes blocks of the layers that share a row: a group of layers, often a single one. Constant after its construction.
class GroupCodec {
 public:
  /// @param ropes  [layer of the group]
  GroupCodec(CodingOps& ops, const TransformLayer& layer, const TransformShape& shape,
             std::vector<std::shared_ptr<const KeyRope>> ropes, const StreamId& id);
  virtual ~GroupCodec() = default;

  std::span<const std::uint32_t> layers() const noexcept { return layers_; }
  /// Returns the number of channels of the embeddings that rows are predicted from; 0: no prediction.
  std::size_t channels() const noexcept;
  virtual kvs_codec_group group() const noexcept;
  /// Returns the largest number of bytes of the block's stream. @throws Error kUsage for a block that no sequence has
  virtual std::size_t bound(const kvs_codec_block& block) const = 0;
  /// Encodes a block.
  /// @param ops  of the calling thread
  /// @return the bytes of the stream; more than `out` has if it does not fit
  virtual std::size_t encode(CpuCoding& ops, int threads, const kvs_codec_block& block, const GroupStates& states,
                             std::span<std::byte> out) const = 0;
  /// Checks a stream of this group. @throws Error kData unless every position and length is right
  virtual kvs_codec_stream inspect(std::span<const std::byte> stream) const = 0;
  /// Decodes tokens [first, first + count) of a stream's block. @throws Error like inspect(); kUsage for other tokens
  virtual void decode(CpuCoding& ops, int threads, std::span<const std::byte> stream, std::size_t first,
                      std::size_t count, const GroupStates& states) const = 0;

 protected:
  using Parts = std::vector<TokenRows::Part>;  // [layer of the group]

  /// Tokens [first, first + count) of a block, which are either all sinks or all coded.
  struct Slab {
    std::size_t first, count;
  };

  /// Largest number of tokens that are in f32 at the same time, unless a block of the storage form has more.
  static constexpr std::size_t kSlab = 512;

  const TransformProducts& products() const noexcept { return products_; }
  std::size_t sink_bytes() const noexcept;
  const KeyRope& rope(std::size_t layer) const noexcept { return *ropes_[layer]; }
  /// Returns the number of sinks among `tokens` tokens from a position on.
  std::size_t sinks_of(std::uint64_t first_position, std::size_t tokens) const noexcept;

  /// Returns the end of the slab that begins at a position: of sinks, or of at most `unit` coded tokens. Slabs of coded
  /// tokens end at multiples of `unit` after the sinks.
  std::uint64_t slab_end(std::uint64_t position, std::size_t unit) const noexcept;

  /// Calls code(slab, states before RoPE, inputs) for the slabs of a block in their order. Throws Interrupted between
  /// them on a signal, in a program that records signals.
  /// @param unit  of slab_end()
  using Code = std::function<void(const Slab&, const Parts&, const BackendView<const float, 4>&)>;
  void encode_slabs(CpuCoding& ops, int threads, const kvs_codec_block& block, std::size_t unit,
                    const GroupStates& states, const Code& code) const;
  /// Writes what read(slab, inputs) returns to the states of tokens [first, first + count) of a stream.
  using Read = std::function<Parts(const Slab&, const BackendView<const float, 4>&)>;
  void decode_slabs(CpuCoding& ops, int threads, const StreamHead& head, const Slab& tokens, std::size_t unit,
                    const GroupStates& states, const Read& read) const;

  /// Returns the rows of tokens. @param parts  keys before RoPE
  RowValues values_of(CpuCoding& ops, const Parts& parts, const BackendView<const float, 4>& inputs) const;
  /// kLayer: returns the states of rows [1, 1, token, coefficient].
  Parts parts_of(CpuCoding& ops, const BackendView<const float, 4>& rows,
                 const BackendView<const float, 4>& inputs) const;
  void write_sinks(const Parts& parts, std::byte* to) const;
  Parts read_sinks(CpuCoding& ops, const std::byte* from, std::size_t count) const;
  StreamHead head_of(const kvs_codec_block& block, StreamRows rows) const;
  static kvs_codec_stream content_of(const StreamHead& head) noexcept;
  /// @throws Error kData unless a stream's head has this group's id, layer, rows and sinks, and positions that exist
  void check_head(const StreamHead& head, StreamRows rows) const;
  /// Rotates keys of a layer of the group, whose first token is at `position`.
  void rotate(CpuCoding& ops, std::size_t layer, const TokenRows::Part& part, std::size_t position,
              RopeDirection direction) const;

 private:
  void check_group_states(const GroupStates& states) const;

  TransformProducts products_;
  std::vector<std::uint32_t> layers_;
  std::vector<std::shared_ptr<const KeyRope>> ropes_;
  StreamId id_;
};

/// @throws Error kUsage for tokens or positions that no sequence has
void check_block(const kvs_codec_block& block);
/// @throws Error kUsage unless the block has tokens [first, first + count), at least `least`
void check_tokens(const StreamHead& head, std::size_t first, std::size_t count, std::size_t least);
/// @throws Error kData naming the field of a stream unless found equals expected
void check_field(const char* field, std::uint64_t found, std::uint64_t expected);

}  // namespace kvs::inline exporting
