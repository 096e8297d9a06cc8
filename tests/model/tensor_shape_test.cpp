// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_shape.h"

#include <gtest/gtest.h>

namespace kvs {
namespace {

TEST(TensorShape, EveryAxisNamesTheKeysThatGiveItsLength) {
  ModelConfig config;
  config.layer.resize(1);
  config.ropes.resize(1);
  for (int axis = static_cast<int>(TensorAxis::kNone) + 1; axis <= static_cast<int>(TensorAxis::kLaurel); ++axis)
    for (const ModelFormat format : {ModelFormat::kHuggingFace, ModelFormat::kGguf})
      EXPECT_NE(extent_of(static_cast<TensorAxis>(axis), config, 0, format).source, "") << axis;
  EXPECT_EQ(extent_of(TensorAxis::kNone, config, 0, ModelFormat::kGguf).source, "");
}

TEST(TensorShape, LengthsArePrintedWithTheirFactors) {
  ModelConfig config;
  config.layer.resize(1);
  config.layer[0].attention = {.query_heads = 6, .kv_heads = 2, .head_dim = 5};
  const Extent rows = extent_of(TensorAxis::kKeyRows, config, 0, ModelFormat::kGguf);
  EXPECT_EQ(rows.size, 10U);
  EXPECT_EQ(rows.source, "attention.head_count_kv 2 x head size 5");
}

}  // namespace
}  // namespace kvs
