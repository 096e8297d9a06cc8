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
  model.query_heads = 4;
  model.kv_heads = 4;
  EliteConfig config;
  config.granularity = Granularity::kQueryHead;
  EXPECT_NO_THROW(require_kv_head_sets(config, model, "c.json"));
  model.kv_heads = 2;
  test::expect_error(ErrorCode::kUnsupported, "c.json: /calibration/ropelite/granularity: found query-head",
                     [&] { require_kv_head_sets(config, model, "c.json"); });
}

}  // namespace
}  // namespace kvs
