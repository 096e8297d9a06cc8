// SPDX-License-Identifier: Apache-2.0
// Configs of caches as inputs: N102 to N104.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/catalogue/catalogue.h"

namespace kvs::testing {
namespace {

constexpr const char* kElite = "e.json";

TEST_F(Catalogue, N102_ListsThatDoNotFit) {
  expect_done("kvcalibrate", calibrate_words("elitekv", {"--elite", "2", "--out", folder_ / kElite}));
  const std::string sound = slurp(folder_ / kElite);
  const auto refuse = [&](const std::function<void(Json&)>& change, Parts parts) {
    write(kElite, sound);
    edit_json(kElite, [&](Json& config) { change(config["parameters"]); });
    expect_refused("kvcalibrate", {"validate", folder_ / kElite}, 3, parts);
    expect_refused("kvcalibrate", calibrate_words("eval", {"--config", folder_ / kElite}), 3, parts);
  };
  refuse([](Json& parameters) { parameters["elite"].erase(1); }, {kElite, "/parameters/elite"});
  refuse([](Json& parameters) { parameters["elite"][1].erase(1); }, {kElite, "/parameters/elite/1"});
  refuse([](Json& parameters) { parameters["layers"] = {0, 1, 1, 2}; }, {kElite, "/parameters/layers"});
  for (const Json& chunk : {Json(-1), Json(4), Json(1.5), Json("0")})
    refuse([&](Json& parameters) { parameters["elite"][2][1][0] = chunk; }, {kElite, "/parameters/elite/2/1/0"});
  refuse([](Json& parameters) { parameters["elite"][2][1][1] = parameters["elite"][2][1][0]; },
         {kElite, "/parameters/elite/2/1/1"});
  refuse([](Json& parameters) { parameters["r"] = 3; }, {kElite, "/parameters/elite/0/0"});
}

TEST_F(Catalogue, N103_ForAnotherModel) {
  expect_done("kvcalibrate", calibrate_words("elitekv", {"--elite", "2", "--out", folder_ / kElite}));
  write_tiny_model(folder_ / "model", TinyKind::kBiased);
  expect_refused("kvcalibrate", calibrate_words("eval", {"--config", folder_ / kElite}), 7, {kElite, "sha256"});
  edit_json("model/config.json", [](Json& config) { config["rope_theta"] = 500.0; });
  expect_refused("kvcalibrate", calibrate_words("eval", {"--config", folder_ / kElite}), 7,
                 {kElite, "sha256", "rope.theta"});
}

TEST_F(Catalogue, N104_NewerUnknownOrHuge) {
  expect_done("kvcalibrate", calibrate_words("elitekv", {"--elite", "2", "--out", folder_ / kElite}));
  const std::string sound = slurp(folder_ / kElite);
  edit_json(kElite, [](Json& config) { config["version"] = 2; });
  expect_refused("kvcalibrate", {"validate", folder_ / kElite}, 4, {kElite, "/version: found 2, expected at most 1"});
  write(kElite, sound);
  edit_json(kElite, [](Json& config) { config["parameter"] = 1; });
  expect_refused("kvcalibrate", {"validate", folder_ / kElite}, 3,
                 {kElite, "/parameter: found a member", "did you mean parameters?"});
  std::filesystem::resize_file(folder_ / kElite, 100U << 20);
  expect_refused("kvcalibrate", {"validate", folder_ / kElite}, 3, {kElite, "67108864"});
}

}  // namespace
}  // namespace kvs::testing
