// SPDX-License-Identifier: Apache-2.0
#include "export/codec/storage_codec.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>

#include "calibrate/transform/storage_blocks.h"
#include "core/error.h"

namespace kvs::inline exporting {
namespace {

/// A block begins with the number of its words, and its words with a state of two.
constexpr std::size_t kLengthBytes = sizeof(std::uint32_t), kLeastWords = 2;

/// Calls work(n) for n below `count` on some threads. @throws what a call throws, after all calls
template <class Work>
void each_in_parallel(int threads, std::size_t count, const Work& work) {
  std::exception_ptr failure;  // exceptions must not leave a parallel region
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (count > 1)
  for (std::size_t n = 0; n < count; ++n) try {
      work(n);
    } catch (...) {
#pragma omp critical(kvs_codec_blocks)
      failure = std::current_exception();
    }
  if (failure) std::rethrow_exception(failure);
}

void append_block(const LevelBlock& block, std::vector<std::byte>& to) {
  const auto words = static_cast<std::uint32_t>(block.words.size());
  const std::size_t at = to.size();
  to.resize(at + block.bytes());
  std::memcpy(to.data() + at, &words, kLengthBytes);
  std::memcpy(to.data() + at + kLengthBytes, block.words.data(), words * sizeof(std::uint16_t));
}

}  // namespace

kvs_codec_group StorageCodec::group() const noexcept {
  kvs_codec_group group = GroupCodec::group();
  group.form = KVS_CODEC_FORM_STORAGE;
  group.block_tokens = static_cast<std::uint32_t>(products().recent);
  return group;
}

/// Returns the number of tokens of a slab.
std::size_t StorageCodec::unit() const noexcept {
  return products().recent * std::max<std::size_t>(1, kSlab / products().recent);
}

std::size_t StorageCodec::blocks_of(const StreamHead& head) const noexcept {
  if (head.tokens == head.sinks) return 0;
  const std::uint64_t first = head.first_position + head.sinks - products().sinks,
                      end = first + head.tokens - head.sinks, recent = products().recent;
  return (end + recent - 1) / recent - first / recent;
}

std::size_t StorageCodec::codes_at(const StreamHead& head) const noexcept {
  return StreamHead::kBytes + head.sinks * sink_bytes();
}

std::size_t StorageCodec::bound(const kvs_codec_block& block) const {
  check_block(block);
  const StreamHead head = head_of(block, StreamRows::kBlocks);
  return codes_at(head) + blocks_of(head) * (kLengthBytes + kLeastWords * sizeof(std::uint16_t)) +
         (head.tokens - head.sinks) * coefficients() * kMaxLevelBytes;
}

std::size_t StorageCodec::encode(CpuCoding& ops, int threads, const kvs_codec_block& block, const GroupStates& states,
                                 std::span<std::byte> out) const {
  check_block(block);
  const StreamHead head = head_of(block, StreamRows::kBlocks);
  if (codes_at(head) > out.size()) return bound(block);
  std::vector<std::byte> codes;
  encode_slabs(
      ops, threads, block, unit(), states,
      [&](const Slab& slab, const Parts& parts, const BackendView<const float, 4>& inputs) {
        if (slab.first < head.sinks)
          return write_sinks(parts, out.data() + StreamHead::kBytes + slab.first * sink_bytes());
        for (const LevelBlock& of_slab : encode_slab(ops, threads, block.first_position + slab.first, parts, inputs))
          append_block(of_slab, codes);
      });
  const std::size_t bytes = codes_at(head) + codes.size();
  if (bytes > out.size()) return bytes;
  write_head(head, out);
  std::ranges::copy(codes, out.begin() + static_cast<std::ptrdiff_t>(codes_at(head)));
  return bytes;
}

/// Codes the tokens of a slab, the first of which is at `position`.
std::vector<LevelBlock> StorageCodec::encode_slab(CpuCoding& ops, int threads, std::uint64_t position,
                                                  const Parts& parts, const BackendView<const float, 4>& inputs) const {
  const RowValues values = values_of(ops, parts, inputs);
  const std::size_t count = values.k.extent(2), size = coefficients();
  std::vector<Slab> cuts;
  cuts.reserve(count / products().recent + 2);
  for (std::size_t at = 0; at < count; at += cuts.back().count)
    cuts.push_back({at, std::min<std::size_t>(count - at, slab_end(position + at, products().recent) - position - at)});
  std::vector<LevelBlock> blocks(cuts.size());
  each_in_parallel(threads, cuts.size(), [&](std::size_t n) {
    blocks[n] = encode_block(products(), values.k.span().subspan(cuts[n].first * size, cuts[n].count * size));
  });
  return blocks;
}

std::vector<StorageCodec::Place> StorageCodec::checked_places(const StreamHead& head,
                                                              std::span<const std::byte> stream) const {
  check_head(head, StreamRows::kBlocks);
  check_field("outliers", head.outliers, 0);
  const auto fail = [&](const std::string& where, std::size_t words) {
    throw Error(ErrorCode::kData, "stream: " + where,
                "found " + std::to_string(words) + " words in a stream of " + std::to_string(stream.size()) +
                    " bytes, expected at least " + std::to_string(kLeastWords) + ", and all of them");
  };
  std::size_t at = codes_at(head);
  const std::size_t blocks = blocks_of(head),
                    least = at + blocks * (kLengthBytes + kLeastWords * sizeof(std::uint16_t));
  if (stream.size() < least)
    throw Error(ErrorCode::kData, "stream: bytes",
                "found " + std::to_string(stream.size()) + ", expected at least " + std::to_string(least));
  std::vector<Place> places;
  places.reserve(blocks);
  for (std::size_t first = head.sinks; first < head.tokens; first += places.back().tokens) {
    const std::uint64_t position = head.first_position + first;
    const std::string where = "block " + std::to_string(places.size());
    if (stream.size() - at < kLengthBytes) fail(where, 0);
    std::uint32_t words = 0;
    std::memcpy(&words, stream.data() + at, kLengthBytes);
    at += kLengthBytes;
    if (words < kLeastWords || words > (stream.size() - at) / sizeof(std::uint16_t)) fail(where, words);
    places.push_back(
        {.first = first,
         .tokens = std::min<std::size_t>(head.tokens - first, slab_end(position, products().recent) - position),
         .words = at,
         .count = words});
    at += words * sizeof(std::uint16_t);
  }
  check_field("bytes", stream.size(), at);
  return places;
}

kvs_codec_stream StorageCodec::inspect(std::span<const std::byte> stream) const {
  const StreamHead head = read_head(stream);
  (void)checked_places(head, stream);
  return content_of(head);
}

void StorageCodec::decode(CpuCoding& ops, int threads, std::span<const std::byte> stream, std::size_t first,
                          std::size_t count, const GroupStates& states) const {
  const StreamHead head = read_head(stream);
  const std::vector<Place> places = checked_places(head, stream);
  decode_slabs(ops, threads, head, {first, count}, unit(), states,
               [&](const Slab& slab, const BackendView<const float, 4>& inputs) {
                 return read(ops, threads, stream, places, slab, inputs);
               });
}

GroupCodec::Parts StorageCodec::read(CpuCoding& ops, int threads, std::span<const std::byte> stream,
                                     std::span<const Place> places, const Slab& slab,
                                     const BackendView<const float, 4>& inputs) const {
  if (places.empty() || slab.first < places.front().first)
    return read_sinks(ops, stream.data() + StreamHead::kBytes + slab.first * sink_bytes(), slab.count);
  const std::size_t size = coefficients(), end = slab.first + slab.count;
  const auto first = std::ranges::upper_bound(places, slab.first, {}, &Place::first) - 1,
             last = std::ranges::lower_bound(places, end, {}, &Place::first);
  const std::span<const Place> held(first, last);
  const RowBuffer::Part rows(ops.memory(), {1, 1, slab.count, size});
  each_in_parallel(threads, held.size(), [&](std::size_t n) {
    const Place& place = held[n];
    LevelBlock block{std::vector<std::uint16_t>(place.count), place.tokens};
    std::memcpy(block.words.data(), stream.data() + place.words, place.count * sizeof(std::uint16_t));
    const std::size_t from = std::max(slab.first, place.first), to = std::min(end, place.first + place.tokens);
    decode_block(products(), block, from - place.first,
                 rows.view().span().subspan((from - slab.first) * size, (to - from) * size));
  });
  return parts_of(ops, rows.view(), inputs);
}

}  // namespace kvs::inline exporting
