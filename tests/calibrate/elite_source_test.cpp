// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "calibrate/elitekv/obstacles.h"
#include "calibrate/elitekv/source.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using ::testing::HasSubstr;

TEST(EliteSource, NormedKeysHaveNoFactors) {
  ModelConfig model;
  EXPECT_EQ(factor_obstacle(model), "");
  model.arithmetic.qk_norm = QkNorm::kHead;
  EXPECT_THAT(factor_obstacle(model), HasSubstr("QK-norm"));
}

TEST(EliteSource, SetsPerQueryHeadNeedKeysOfTheirOwn) {
  ModelConfig model;
  model.layer.assign(1, {.attention = {.query_heads = 4, .kv_heads = 4, .head_dim = 2}, .feed_forward = {}});
  EliteConfig config;
  config.granularity = Granularity::kQueryHead;
  EXPECT_NO_THROW(require_kv_head_sets(config, model, "c.json"));
  model.layer[0].attention.kv_heads = 2;
  test::expect_error(ErrorCode::kUnsupported, "c.json: /calibration/ropelite/granularity: found query-head",
                     [&] { require_kv_head_sets(config, model, "c.json"); });
}

}  // namespace
}  // namespace kvs
