// SPDX-License-Identifier: Apache-2.0
#include "model/work.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace kvs::testing {
namespace {

/// Two layers without matrices, of one head of four channels: only scores and their products with V remain.
ModelConfig attention_alone(AttentionConfig second) {
  AttentionConfig first;
  first.query_heads = first.kv_heads = 1;
  first.head_dim = 4;
  second.query_heads = second.kv_heads = 1;
  second.head_dim = 4;
  ModelConfig model;
  model.layer.resize(2);
  model.layer[0].attention = first;
  model.layer[1].attention = second;
  return model;
}

/// Returns the FLOPs of the pairs of both layers, with `past` tokens before the new ones. A pair takes a multiply-add
/// of each of four channels for its score and for its product with V; a token counts half of the pair with itself.
template <typename Positions>
double counted(std::size_t tokens, std::size_t past, const Positions& positions) {
  double pairs = 0;
  for (std::size_t t = past; t < past + tokens; ++t)
    pairs += static_cast<double>(t) + 0.5 + static_cast<double>(positions(t));
  return 4 * 4 * pairs;
}

TEST(Work, AWindowBoundsTheTokensThatATokenReads) {
  AttentionConfig windowed;
  windowed.window = 8;
  const ModelConfig model = attention_alone(windowed);
  const auto positions = [](std::size_t t) { return t < 8 ? static_cast<double>(t) + 0.5 : 8.0; };
  EXPECT_DOUBLE_EQ(2 * layer_flops(model, 5), counted(5, 0, positions));
  EXPECT_DOUBLE_EQ(2 * layer_flops(model, 40), counted(40, 0, positions));
  EXPECT_DOUBLE_EQ(2 * layer_flops(model, 3, 30), counted(3, 30, positions));
}

TEST(Work, AChunkBoundsTheTokensThatATokenReads) {
  AttentionConfig chunked;
  chunked.chunk = 8;
  const ModelConfig model = attention_alone(chunked);
  const auto positions = [](std::size_t t) { return static_cast<double>(t % 8) + 0.5; };
  EXPECT_DOUBLE_EQ(2 * layer_flops(model, 21), counted(21, 0, positions));
  EXPECT_DOUBLE_EQ(2 * layer_flops(model, 6, 13), counted(6, 13, positions));
}

}  // namespace
}  // namespace kvs::testing
