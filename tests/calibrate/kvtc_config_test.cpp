// SPDX-License-Identifier: Apache-2.0
// A kvtc config, as written and with one fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "calibrate/config/config.h"
#include "calibrate/kvtc/config.h"
#include "core/error.h"
#include "io/digest.h"
#include "kvspectrum/config.h"
#include "tests/io/safetensors_bytes.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using ::testing::HasSubstr;

class KvtcConfigs : public ::testing::Test {
 protected:
  using Change = std::function<void(Json&)>;
  using TensorChange = std::function<void(std::vector<test::NamedTensor>&)>;

  /// Layer 1 has 12 keys of a token, which are 16 components; layer 2 is not coded.
  static KvtcConfig config() {
    const KvtcSide keys{.mean = std::vector<float>(24, 0.5F),
                        .basis = std::vector<float>(std::size_t{32} * 24, 0.25F),
                        .groups = {{16, KvtcType::kFp8}, {16, KvtcType::kInt2}}},
        values{.mean = std::vector<float>(24, -1),
               .basis = std::vector<float>(std::size_t{16} * 24, 0.75F),
               .groups = std::vector<KvtcGroup>(16, {1, KvtcType::kF16})};
    return {.tokens = {.sinks = 2, .recent = 3, .block = 4, .type = KvtcRecent::kQ8_0},
            .pools = {{{0, 1}, keys, values}},
            .window = 100,
            .bytes = 5000,
            .bits = 1.5,
            .code_bytes = 12.5};
  }
  /// Written and read again.
  KvtcConfig read(const Change& change = {}, const TensorChange& tensor_change = {}) {
    std::vector<test::NamedTensor> tensors;
    for (const OutputTensor& tensor : kvtc_tensors(config().pools)) {
      std::vector<float> values(tensor.rows() * tensor.columns());
      tensor.read(0, tensor.rows(), values);
      tensors.push_back({tensor.name, tensor.shape, values});
    }
    if (tensor_change) tensor_change(tensors);
    const std::string bytes = test::safetensors_bytes(tensors);
    folder_.write("k.safetensors", bytes);
    ModelConfig model;
    model.name = model.architecture = "llama";
    model.layer.assign(3, {.attention = {.query_heads = 6, .kv_heads = 3, .head_dim = 4}, .feed_forward = {}});
    model.d_model = 16;
    model.ropes = {{.theta = 1e4, .rotary_dim = 4}};
    Json json = make_config("kvtc", model, std::string(64, 'a'), kvtc_parameters(config()), kvtc_calibration(config()),
                            {"kvcalibrate kvtc", "1", {}, 1, 16, 16, 0}, Json::object(),
                            std::vector<ConfigFile>{{"k.safetensors", sha256_of(bytes)}});
    if (change) change(json);
    const auto path = folder_.write("k.json", dump_json(json));
    return read_kvtc_pools(read_config(path), path);
  }
  std::string complaint(const Change& change, const TensorChange& tensor_change = {}) {
    try {
      (void)read(change, tensor_change);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput) << error.what();
      return error.what();
    }
    return "";
  }
  /// Returns the error about one value of the only pool.
  std::string with(const std::string& pointer, const Json& value) {
    return complaint([&](Json& json) { json["parameters"]["pools"][0][Json::json_pointer(pointer)] = value; });
  }

  test::TemporaryDirectory folder_;
};

TEST_F(KvtcConfigs, ComeBackAsTheyWere) {
  const KvtcConfig found = read(), expected = config();
  EXPECT_EQ(found.tokens.sinks, 2U);
  EXPECT_EQ(found.tokens.recent, 3U);
  EXPECT_EQ(found.tokens.block, 4U);
  EXPECT_EQ(found.tokens.type, KvtcRecent::kQ8_0);
  EXPECT_EQ(found.window, 100U);
  EXPECT_EQ(found.bytes, 5000U);
  ASSERT_EQ(found.pools.size(), 1U);
  EXPECT_EQ(found.pools[0].layers, expected.pools[0].layers);
  EXPECT_EQ(found.pools[0].keys.groups, expected.pools[0].keys.groups);
  EXPECT_EQ(found.pools[0].keys.basis, expected.pools[0].keys.basis);
  EXPECT_EQ(found.pools[0].values.groups, expected.pools[0].values.groups);
  EXPECT_EQ(found.pools[0].values.mean, expected.pools[0].values.mean);
  EXPECT_EQ(shared_bytes(found.pools), 2U * 24 * 4 + (32U + 16) * 24 * 2);
}

TEST_F(KvtcConfigs, AreReadByEngines) {
  (void)read();
  const auto config = kvspectrum::Config::read(folder_.path() / "k.json");
  EXPECT_EQ(config.method(), "kvtc");
  EXPECT_EQ(config.layers(), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(config.count("block", 1), 4U);
  EXPECT_EQ(config.word("recent_type", 1), "q8_0");
  EXPECT_EQ(config.files().size(), 1U);
}

TEST_F(KvtcConfigs, HoldLayersAndGroupsThatFit) {
  EXPECT_THAT(with("/layers", Json::array()), HasSubstr("/parameters/pools/0/layers"));
  EXPECT_THAT(with("/layers", {1, 0}),
              HasSubstr("/parameters/pools/0/layers/1: found 0, expected layers in ascending"));
  EXPECT_THAT(with("/layers", {0, 3}), HasSubstr("/parameters/pools/0/layers/1: found 3"));
  EXPECT_THAT(with("/keys/0/type", "f16"), HasSubstr("/parameters/pools/0/keys/0/type: found \"f16\""));
  EXPECT_THAT(with("/values/0/size", 16), HasSubstr("/parameters/pools/0/values/0/type: found \"f16\""));
  EXPECT_THAT(with("/keys/0/size", 32), HasSubstr("/parameters/pools/0/keys/0/size: found 32"));
  EXPECT_THAT(with("/keys/1/count", 2), HasSubstr("/parameters/pools/0/keys/1/count: found 2"));
  EXPECT_THAT(with("/keys/0/count", 0), HasSubstr("/parameters/pools/0/keys/0/count: found 0"));
  EXPECT_THAT(with("/keys", Json::array()), HasSubstr("/parameters/pools/0/keys"));
  EXPECT_THAT(complaint([](Json& json) {
                Json& pools = json["parameters"]["pools"];
                pools.push_back(pools[0]);
              }),
              HasSubstr("/parameters/pools/1/layers/0: found 0, expected a layer that no other pool has"));
  EXPECT_THAT(complaint([](Json& json) { json["parameters"]["block"] = 0; }), HasSubstr("/parameters/block"));
  EXPECT_THAT(complaint([](Json& json) { json["parameters"]["recent_type"] = "f32"; }),
              HasSubstr("/parameters/recent_type"));
}

TEST_F(KvtcConfigs, HaveTheirTensors) {
  for (const std::string name :
       {"pools.0.keys.mean", "pools.0.keys.basis", "pools.0.values.mean", "pools.0.values.basis"}) {
    EXPECT_THAT(complaint({},
                          [&](auto& tensors) {
                            std::erase_if(tensors, [&](const auto& tensor) { return tensor.name == name; });
                          }),
                HasSubstr("tensor " + name + ": found none"));
    EXPECT_THAT(
        complaint({},
                  [&](auto& tensors) {
                    for (test::NamedTensor& tensor : tensors)
                      if (tensor.name == name) {
                        tensor.values.resize(tensor.values.size() / tensor.shape.front() * (tensor.shape.front() + 1));
                        tensor.shape.front() += 1;
                      }
                  }),
        HasSubstr("tensor " + name + ": found shape"));
  }
}

}  // namespace
}  // namespace kvs
