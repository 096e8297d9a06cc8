// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kvtc/block.h"

#include <zlib.h>

#include <string>

#include "calibrate/kvtc/quantiser.h"
#include "core/error.h"

namespace kvs::inline calibrate {

KvtcBlock encode_block(const KvtcRows& rows, const KvtcPool& pool, std::size_t tokens) {
  std::vector<std::uint8_t> codes = pack_rows(rows.keys, pool.keys.groups, tokens);
  const std::vector<std::uint8_t> values = pack_rows(rows.values, pool.values.groups, tokens);
  codes.insert(codes.end(), values.begin(), values.end());
  uLongf size = compressBound(static_cast<uLong>(codes.size()));
  KvtcBlock block{tokens, std::vector<std::uint8_t>(size)};
  const int status =
      compress2(block.stream.data(), &size, codes.data(), static_cast<uLong>(codes.size()), Z_BEST_COMPRESSION);
  if (status != Z_OK) throw Error(ErrorCode::kEnvironment, "kvtc", "found no memory for zlib");
  block.stream.resize(size);
  return block;
}

KvtcRows decode_block(const KvtcBlock& block, const KvtcPool& pool) {
  const std::size_t keys = packed_bytes(pool.keys.groups, block.tokens),
                    all = keys + packed_bytes(pool.values.groups, block.tokens);
  std::vector<std::uint8_t> codes(all);
  uLongf size = static_cast<uLongf>(all);
  const int status = uncompress(codes.data(), &size, block.stream.data(), static_cast<uLong>(block.stream.size()));
  if (status != Z_OK || size != all)
    throw Error(ErrorCode::kData, "kvtc",
                "found a block that is no zlib stream of " + std::to_string(all) + " bytes, expected one");
  const std::span<const std::uint8_t> packed = codes;
  return {unpack_rows(packed.first(keys), pool.keys.groups, block.tokens),
          unpack_rows(packed.subspan(keys), pool.values.groups, block.tokens)};
}

}  // namespace kvs::inline calibrate
