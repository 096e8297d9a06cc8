// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "kvspectrum/codec.h"
#include "tests/codec/codec_config.h"

namespace kvs::test {

using Bytes = std::vector<std::byte>;

inline constexpr std::size_t kCodecHeads = kCodecShape.kv_heads, kCodecDim = kCodecShape.head_dim;

/// An open config of write_codec_config().
class Codec {
 public:
  explicit Codec(const std::filesystem::path& config, std::uint32_t threads = 1) {
    const std::vector<std::uint32_t> heads(3, kCodecHeads), dims(3, kCodecDim);
    const kvs_codec_options options{.layers = 3,
                                    .kv_heads = heads.data(),
                                    .head_dim = dims.data(),
                                    .sha256 = nullptr,
                                    .threads = threads,
                                    .device = nullptr};
    EXPECT_EQ(kvs_codec_open(KVS_CODEC_VERSION, config.c_str(), &options, &codec_), KVS_CODEC_OK) << kvs_codec_error();
  }
  ~Codec() { kvs_codec_close(codec_); }
  Codec(const Codec&) = delete;

  // NOLINTNEXTLINE(google-explicit-constructor): an argument of the C functions
  operator const kvs_codec*() const { return codec_; }
  kvs_codec_layout layout() const {
    kvs_codec_layout layout{};
    EXPECT_EQ(kvs_codec_layout_of(codec_, kCodecLayer, &layout), KVS_CODEC_OK);
    return layout;
  }
  kvs_codec_group group() const {
    kvs_codec_group group{};
    EXPECT_EQ(kvs_codec_group_of(codec_, kCodecLayer, &group), KVS_CODEC_OK) << kvs_codec_error();
    return group;
  }
  Bytes encode(const kvs_codec_block& block, const kvs_codec_states& states) const {
    return encoded(block, [&](Bytes& stream, std::size_t& bytes) {
      return kvs_codec_encode(codec_, &block, &states, stream.data(), stream.size(), &bytes);
    });
  }
  /// @param states  [layer of the group]
  Bytes encode(const kvs_codec_block& block, const std::vector<kvs_codec_states>& states,
               const kvs_codec_inputs* inputs) const {
    return encoded(block, [&](Bytes& stream, std::size_t& bytes) {
      return kvs_codec_encode_group(codec_, &block, states.data(), inputs, stream.data(), stream.size(), &bytes);
    });
  }
  kvs_codec_stream inspect(const Bytes& stream) const {
    kvs_codec_stream content{};
    EXPECT_EQ(kvs_codec_inspect(codec_, stream.data(), stream.size(), &content), KVS_CODEC_OK) << kvs_codec_error();
    return content;
  }
  void decode(const Bytes& stream, std::uint32_t first, std::uint32_t count, const kvs_codec_states& states) const {
    EXPECT_EQ(kvs_codec_decode(codec_, stream.data(), stream.size(), first, count, &states), KVS_CODEC_OK)
        << kvs_codec_error();
  }
  void decode(const Bytes& stream, std::uint32_t first, std::uint32_t count,
              const std::vector<kvs_codec_states>& states, const kvs_codec_inputs* inputs) const {
    EXPECT_EQ(kvs_codec_decode_group(codec_, stream.data(), stream.size(), first, count, states.data(), inputs),
              KVS_CODEC_OK)
        << kvs_codec_error();
  }

 private:
  template <class Encode>
  Bytes encoded(const kvs_codec_block& block, const Encode& encode) const {
    std::size_t bytes = 0;
    EXPECT_EQ(kvs_codec_bound(codec_, &block, &bytes), KVS_CODEC_OK) << kvs_codec_error();
    Bytes stream(bytes);
    EXPECT_EQ(encode(stream, bytes), KVS_CODEC_OK) << kvs_codec_error();
    stream.resize(bytes);
    return stream;
  }

  kvs_codec* codec_ = nullptr;
};

/// Keys and values of tokens, [head, token, channel], like in a cache.
template <class T>
struct Tokens {
  explicit Tokens(std::size_t count) : tokens(count), k(kCodecHeads * count * kCodecDim), v(k.size()) {}

  /// The states of tokens from `first` on.
  kvs_codec_states states(std::size_t first = 0, bool rotated = false) {
    return {.k = k.data() + first * kCodecDim,
            .v = v.data() + first * kCodecDim,
            .k_token_stride = kCodecDim,
            .k_head_stride = tokens * kCodecDim,
            .v_token_stride = kCodecDim,
            .v_head_stride = tokens * kCodecDim,
            .type = std::is_same_v<T, float> ? KVS_CODEC_F32 : KVS_CODEC_BF16,
            .rotated = rotated ? 1U : 0U};
  }
  std::size_t tokens;
  std::vector<T> k, v;
};

inline Tokens<float> random_tokens(std::size_t count, std::uint32_t seed = 1) {
  Tokens<float> tokens(count);
  tokens.k = random_values(tokens.k.size(), seed);
  tokens.v = random_values(tokens.v.size(), seed + 1);
  return tokens;
}

inline kvs_codec_block block_of(std::uint32_t tokens, std::uint64_t first = 0) {
  return {.layer = kCodecLayer, .tokens = tokens, .first_position = first, .coded_before = 0, .outliers_before = 0};
}

}  // namespace kvs::test
