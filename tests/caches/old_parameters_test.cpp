// SPDX-License-Identifier: Apache-2.0
#include "caches/old_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caches/parameters.h"
#include "core/old_names.h"

namespace kvs {
namespace {

TEST(OldParameters, HaveTheirNewNamesAtTheSamePlaces) {
  Json config = Json::parse(
      R"({"parameters": {"sinks": 1, "store": "none", "store_k": "store", "store_v": ["q8_0", "store"], "lag": 2},
          "calibration": [{"settings": {"store_skip_layers": [], "store": "f16"}}], "method": "store"})");
  rename_old_parameters(config, "old.json");
  EXPECT_EQ(config.dump(),
            R"({"parameters":{"sinks":1,"type":"none","type_k":"type","type_v":["q8_0","type"],"lag":2},)"
            R"("calibration":[{"settings":{"type_skip_layers":[],"type":"f16"}}],"method":"store"})");
  EXPECT_THAT(old_name_notes(), testing::Contains("old.json: store_v is now type_v"));
  EXPECT_EQ(std::ranges::count(old_name_notes(), "old.json: store is now type"), 1);
}

TEST(OldParameters, StandInSettingsToo) {
  const std::vector<std::string> old{"store=q8_0", "lag=2"};
  EXPECT_EQ(parse_settings(old, "--set"), Json::parse(R"({"type": "q8_0", "lag": 2})"));
}

TEST(OldParameters, AreRefusedNextToTheNewOnes) {
  const std::vector<std::string> both{"store=q8_0", "type=q4_0"};
  try {
    (void)parse_settings(both, "--set");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_STREQ(error.what(), "--set: found store and type, expected one of them");
  }
}

}  // namespace
}  // namespace kvs
