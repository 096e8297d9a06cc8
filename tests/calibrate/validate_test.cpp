// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "calibrate/config/config.h"
#include "core/error.h"
#include "io/digest.h"
#include "io/file.h"
#include "kvspectrum/config.h"
#include "tests/io/safetensors_bytes.h"
#include "tests/io/temporary_directory.h"

namespace kvs {
namespace {

using ::testing::HasSubstr;

ModelConfig small_model() {
  ModelConfig model;
  model.name = "small";
  model.architecture = "llama";
  model.layer.assign(3, {.attention = {.query_heads = 2, .kv_heads = 1, .head_dim = 4}, .feed_forward = {}});
  model.d_model = 8;
  model.ropes = {{.theta = 1e4, .rotary_dim = 4}};
  return model;
}

class Validate : public ::testing::Test {
 protected:
  /// A valid S-LRD or J-LRD config of layer 1 with r = 1: 2 unrotated key rows and 4 value rows, d_ckv = 3.
  Json elite(bool joint) const {
    std::vector<test::NamedTensor> tensors;
    const auto add = [&](const std::string& name, std::uint64_t rows, std::uint64_t columns) {
      tensors.push_back({name, {rows, columns}, std::vector<float>(rows * columns, 0.5F)});
    };
    if (joint) {
      add("layers.1.down", 3, 8);
      add("layers.1.up", 6, 3);
    } else {
      add("layers.1.down_k", 1, 8);
      add("layers.1.up_k", 2, 1);
      add("layers.1.down_v", 2, 8);
      add("layers.1.up_v", 4, 2);
    }
    const std::string bytes = test::safetensors_bytes(tensors);
    folder_.write("factors.safetensors", bytes);
    Json parameters{{"layers", {1}},
                    {"r", 1},
                    {"d_ckv", 3},
                    {"elite", Json::parse("[[[1]]]")},
                    {"factorization", joint ? "joint" : "separate"},
                    {"whiten", "off"},
                    {"split", "up"}};
    if (!joint) parameters["ranks"] = Json::parse("[[1, 2]]");
    const Json singular = joint ? Json::parse("[[2, 1]]") : Json::parse(R"([{"k": [2], "v": [1]}])");
    Json calibration{
        {"ropelite", {{"norm", 2}, {"granularity", "kv-head"}, {"layers", {1}}, {"error", Json::parse("[[[0.5]]]")}}},
        {"singular_values", singular}};
    return make_config("elitekv", small_model(), std::string(64, 'a'), parameters, calibration,
                       {"kvcalibrate elitekv", "1", {}, 1, 16, 16, 0}, Json::object(),
                       std::vector<ConfigFile>{{"factors.safetensors", sha256_of(bytes)}});
  }
  Json faedkv() const {
    const Json parameters{{"layers", {0, 2}},      {"prefix", 12},       {"sinks", 1},
                          {"recent", 1},           {"chunks", 2},        {"kept", Json::parse("[[0], [1]]")},
                          {"transform", "dft"},    {"spectrum", "half"}, {"key_space", "k_post"},
                          {"update", "corrected"}, {"age", "off"}};
    const Json calibration{{"ablation",
                            {{"protocol", "in-place"},
                             {"key_space", "k_post"},
                             {"chunks", 2},
                             {"layers", {0, 2}},
                             {"ppl_base", 9.5},
                             {"delta", Json::parse("[[0.1, 0], [0, 0.1]]")},
                             {"interval", Json::parse("[[null, null], [[0, 1], null]]")}}}};
    return make_config("faedkv", small_model(), std::string(64, 'a'), parameters, calibration,
                       {"kvcalibrate faedkv", "1", {}, 1, 16, 16, 0}, Json::object(), {});
  }
  /// A file next to the config, as for an elitekv config.
  static Json file_of_factors() {
    return Json::parse("[{\"path\": \"factors.safetensors\", \"sha256\": \"" + std::string(64, 'a') + "\"}]");
  }
  std::string complaint(const Json& config) const {
    try {
      read_config(folder_.write("config.json", dump_json(config)));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInput) << error.what();
      return error.what();
    }
    return "";
  }
  /// Returns the error about a config with one change.
  std::string after(Json config, const std::function<void(Json&)>& change) const {
    change(config);
    return complaint(config);
  }
  test::TemporaryDirectory folder_;
};

TEST_F(Validate, TheMapOfChunksToFrequenciesMustFitTheHeads) {
  Json config = elite(true);
  EXPECT_EQ(complaint(config), "");
  config["model"]["rope"]["frequencies"] = Json::parse("[[1, 0.1, 0.01]]");  // of a head of 4
  EXPECT_THAT(complaint(config), HasSubstr("/model/rope/frequencies/0"));
  config = elite(true);
  config["model"]["rope"]["layer_kinds"] = Json::parse("[0, 0, 1]");  // there is one kind
  EXPECT_THAT(complaint(config), HasSubstr("/model/rope/layer_kinds/2"));
}

TEST_F(Validate, AnEngineGetsSetsAndFactors) {
  for (const bool joint : {true, false}) {
    const auto path = folder_.write("config.json", dump_json(elite(joint)));
    const auto config = kvspectrum::Config::read(path);
    EXPECT_EQ(config.method(), "elitekv");
    EXPECT_EQ(config.layers(), std::vector<std::size_t>{1});
    EXPECT_EQ(config.elite_chunks(1), (std::vector<std::vector<std::size_t>>{{1}}));
    EXPECT_EQ(config.files().front(), path.parent_path() / "factors.safetensors");
    const auto factors = config.factors(1);
    ASSERT_EQ(factors.size(), joint ? 1U : 2U);
    EXPECT_EQ(factors.back().up, joint ? "layers.1.up" : "layers.1.up_v");
    EXPECT_EQ(factors.back().rows, joint ? 6U : 4U);
    EXPECT_EQ(factors.back().rank, joint ? 3U : 2U);
    EXPECT_THROW((void)config.factors(0), kvspectrum::Error);
    EXPECT_THROW((void)config.count("r", 1), kvspectrum::Error);
  }
}

TEST_F(Validate, SizesMayDifferByLayer) {
  for (const bool joint : {true, false}) {
    Json config = elite(joint);
    config["parameters"]["r"] = {1};
    config["parameters"]["d_ckv"] = {3};
    const auto path = folder_.write("config.json", dump_json(config));
    EXPECT_EQ(kvspectrum::Config::read(path).factors(1).back().rank, joint ? 3U : 2U);
    EXPECT_THAT(after(config, [](Json& c) { c["parameters"]["d_ckv"] = {3, 3}; }), HasSubstr("/parameters/d_ckv"));
    EXPECT_THAT(after(config, [](Json& c) { c["parameters"]["r"] = {3}; }),
                HasSubstr("/parameters/r/0: found 3, expected an integer from 0 to 2"));
    EXPECT_THAT(after(config, [](Json& c) { c["parameters"]["r"] = {2}; }), HasSubstr("/parameters/elite/0/0"));
    EXPECT_THAT(after(config, [](Json& c) { c["parameters"]["d_ckv"] = {2}; }),
                HasSubstr(joint ? "tensor layers.1.up: found shape [6,3], expected [6,2]" : "/parameters/ranks/0"));
  }
}

TEST_F(Validate, TakesWhatTheToolWrites) {
  EXPECT_EQ(complaint(faedkv()), "");
  Json chunks_of_values = faedkv();
  chunks_of_values["parameters"]["kept_v"] = Json::parse("[[0, 1], [0]]");
  EXPECT_EQ(complaint(chunks_of_values), "");
  EXPECT_EQ(complaint(elite(true)), "");
  EXPECT_EQ(complaint(elite(false)), "");
}

TEST(ConfigSchema, TheShippedFileHasEveryMethodsParameters) {
  const std::string shipped = read_text_file(KVS_DATA_DIR "/../export/kvspectrum-config.schema.json", 1 << 20);
  EXPECT_TRUE(shipped == config_schema())
      << "kvcalibrate validate --schema > export/kvspectrum-config.schema.json makes it anew";
}

TEST_F(Validate, ReadsAMethodsParametersAsTheMethodDoes) {
  const auto of = [](const Json& parameters) {
    return make_config("dropping", small_model(), std::string(64, 'a'), parameters, Json::object(),
                       {"kvcalibrate eval", "1", {}, 1, 16, 16, 0}, Json::object(), {});
  };
  EXPECT_EQ(complaint(of({{"cache_size", 16}, {"gamma", {0.5, 0.25, 0.5}}})), "");
  EXPECT_EQ(complaint(of({{"cache_size", {16, 8}}, {"layers", {0, 2}}})), "");
  EXPECT_THAT(complaint(of(Json::object())), HasSubstr("config.json: /parameters/cache_size: found nothing"));
  EXPECT_THAT(complaint(of({{"cache_size", 16}, {"gamma", 0.01}})), HasSubstr("/parameters/gamma: found 0.01, which"));
  EXPECT_THAT(complaint(of({{"cache_size", 16}, {"lag", 4}})), HasSubstr("/parameters/lag: found a parameter that"));
  Json many = of({{"cache_size", 16}});
  many["model"]["layers"] = std::uint64_t{1} << 60;
  EXPECT_THAT(complaint(many), HasSubstr("/model/layers"));
}

TEST_F(Validate, SaysWhatItFoundAndExpectedOfAValue) {
  EXPECT_THAT(after(faedkv(), [](Json& c) { c["parameters"]["sinks"] = "ten"; }),
              HasSubstr("config.json: /parameters/sinks: found \"ten\", expected a whole number of at least 0"));
  EXPECT_THAT(after(faedkv(), [](Json& c) { c["parameters"]["transform"] = "fft"; }),
              HasSubstr(R"(/parameters/transform: found "fft", expected one of dft, dct)"));
  EXPECT_THAT(after(faedkv(), [](Json& c) { c["parameters"]["kept"][1][0] = -1; }),
              HasSubstr("/parameters/kept: found an array of 1 elements, expected numbers below 2, or none"));
  EXPECT_THAT(after(faedkv(), [](Json& c) { c["parameters"]["kept_v"] = Json::array({2}); }),
              HasSubstr("/parameters/kept_v: found an array of 1 elements, expected numbers below 2, or none"));
  EXPECT_THAT(after(faedkv(), [](Json& c) { c["parameters"]["kept_v"] = Json::parse("[[1], []]"); }),
              HasSubstr("/parameters/kept_v: found no chunk that is kept"));
  EXPECT_THAT(after(faedkv(), [](Json& c) { c["model"]["head_dim"] = 5; }), HasSubstr("a multiple of 2"));
}

TEST_F(Validate, NamesAMissingMemberAndTheOneThatWasMeant) {
  EXPECT_THAT(after(faedkv(), [](Json& c) { c["parameters"].erase("prefix"); }),
              HasSubstr("/parameters/prefix: found nothing, expected a whole number of at least "));
  EXPECT_THAT(after(faedkv(), [](Json& c) { c["parameters"]["sink"] = 3; }),
              HasSubstr("/parameters/sink: found a parameter that the method does not have"));
}

TEST_F(Validate, ComparesListsWithEachOther) {
  EXPECT_THAT(after(faedkv(), [](Json& c) { c["parameters"]["kept"].push_back(Json::array({0})); }),
              HasSubstr("/parameters/kept"));
  EXPECT_THAT(after(faedkv(), [](Json& c) { c["parameters"]["kept"][0] = {0, 0}; }), HasSubstr("each number once"));
  EXPECT_THAT(after(elite(true), [](Json& c) { c["parameters"]["elite"][0][0] = {2}; }), HasSubstr("/elite/0/0/0"));
}

TEST_F(Validate, ARacesListsHaveALayerEach) {
  Json race = faedkv();
  Json& ablation = race["calibration"]["ablation"];
  ablation["documents"] = Json::parse("[[2, 3], [1, 2]]");
  ablation["undecided"] = Json::parse("[[], [0, 1]]");
  EXPECT_EQ(complaint(race), "");
  EXPECT_THAT(after(race, [](Json& c) { c["calibration"]["ablation"]["documents"][1] = {2}; }),
              HasSubstr("/ablation/documents/1"));
  EXPECT_THAT(after(race, [](Json& c) { c["calibration"]["ablation"]["documents"][0][0] = 0; }),
              HasSubstr("/ablation/documents/0/0"));
  EXPECT_THAT(after(race, [](Json& c) { c["calibration"]["ablation"]["undecided"][0] = {2}; }),
              HasSubstr("/ablation/undecided/0/0"));
}

TEST_F(Validate, ComparesRanksWithTheFactorsShapes) {
  EXPECT_THAT(after(elite(true), [](Json& c) { c["parameters"]["d_ckv"] = 4; }),
              HasSubstr("factors.safetensors: tensor layers.1.up: found shape [6,3], expected [6,4]"));
  EXPECT_THAT(after(elite(false), [](Json& c) { c["parameters"]["ranks"][0] = {2, 2}; }), HasSubstr("/ranks/0"));
  EXPECT_THAT(after(elite(false),
                    [](Json& c) {
                      c["parameters"]["ranks"][0] = {2, 1};
                    }),
              HasSubstr("tensor layers.1.up_k: found shape [2,1], expected [2,2]"));
  EXPECT_THAT(after(elite(true), [](Json& c) { c["calibration"]["singular_values"] = Json::array(); }),
              HasSubstr("/calibration/singular_values"));
}

TEST_F(Validate, EveryMethodsListsHaveSomeLayersInOrder) {
  for (const Json& config : {elite(true), elite(false), faedkv()})
    for (const char* const layers : {"[]", "[2, 0]", "[1, 1]", "[3]"}) {
      const std::string found = after(config, [&](Json& c) { c["parameters"]["layers"] = Json::parse(layers); });
      EXPECT_THAT(found, HasSubstr("/parameters/layers")) << layers;
    }
}

TEST_F(Validate, AnAblationFitsTheParameters) {
  const auto ablation = [&](const char* member, const char* value) {
    return after(faedkv(), [&](Json& c) { c["calibration"]["ablation"][member] = Json::parse(value); });
  };
  EXPECT_THAT(ablation("layers", "[]"), HasSubstr("/calibration/ablation/layers: found an array of 0"));
  EXPECT_THAT(ablation("layers", "[0, 0, 9]"), HasSubstr("what /parameters/layers says"));
  EXPECT_THAT(ablation("chunks", "1"), HasSubstr("found 1, expected 2, what /parameters/chunks says"));
  EXPECT_THAT(ablation("key_space", "\"k_pre\""), HasSubstr("/calibration/ablation/key_space"));
  EXPECT_THAT(ablation("delta", "[[0.1, 0]]"), HasSubstr("/calibration/ablation/delta: found an array of 1"));
  EXPECT_THAT(ablation("interval", "[[null, null], [null]]"), HasSubstr("/calibration/ablation/interval/1"));
  const auto without = [&](const char* name) { return after(faedkv(), [&](Json& c) { c["parameters"].erase(name); }); };
  EXPECT_THAT(without("chunks"), HasSubstr("/parameters/prefix"));  // 22 chunks, more than the number of its bins
  EXPECT_THAT(without("layers"), HasSubstr("/parameters/kept"));    // three layers
}

TEST_F(Validate, FactorsAndWhatTheConfigSaysOfThemBelongTogether) {
  const auto changed = [&](bool joint, const char* place, const char* value) {
    return after(elite(joint), [&](Json& c) { c[Json::json_pointer(place)] = Json::parse(value); });
  };
  EXPECT_THAT(changed(true, "/files", "[]"), HasSubstr("/files: found nothing, expected a value that goes with"));
  EXPECT_THAT(changed(true, "/parameters/d_ckv", "null"), HasSubstr("/parameters/d_ckv: found nothing"));
  EXPECT_THAT(changed(true, "/parameters/ranks", "[[1, 2]]"), HasSubstr("/parameters/ranks: found"));
  EXPECT_THAT(changed(false, "/parameters/factorization", "\"joint\""), HasSubstr("/parameters/ranks: found"));
  EXPECT_THAT(changed(true, "/parameters/factorization", "\"separate\""), HasSubstr("/parameters/ranks: found not"));
  EXPECT_THAT(changed(false, "/calibration/singular_values", "[[2, 1]]"), HasSubstr("/singular_values/0"));
  EXPECT_THAT(changed(false, "/parameters/ranks", "[[1, 2], [1, 2]]"), HasSubstr("/parameters/ranks"));
  EXPECT_THAT(changed(true, "/parameters/type", "[\"q8_0\", \"q8_0\"]"), HasSubstr("/parameters/type"));
  EXPECT_THAT(changed(true, "/calibration/ropelite/layers", "[0]"), HasSubstr("/calibration/ropelite/layers"));
  EXPECT_THAT(changed(true, "/calibration/ropelite/error", "[[[0.5, 0.1]]]"), HasSubstr("/ropelite/error/0/0"));
}

TEST_F(Validate, AllMethodsHaveTheirRopesListsAndNoFilesOfOthers) {
  const auto changed = [&](const char* place, const char* value) {
    return after(faedkv(), [&](Json& c) { c[Json::json_pointer(place)] = Json::parse(value); });
  };
  EXPECT_THAT(changed("/model/rope/frequencies", "[[1]]"), HasSubstr("/model/rope/frequencies/0"));
  EXPECT_THAT(changed("/model/rope/factors", "[1, 1]"), HasSubstr("/model/rope/factors"));
  EXPECT_THAT(changed("/model/rope/layer_kinds", "[0, 0]"), HasSubstr("/model/rope/layer_kinds"));
  EXPECT_THAT(changed("/model/rope/rotary_dim", "6"), HasSubstr("/model/rope/rotary_dim"));
  EXPECT_THAT(changed("/model/query_heads", "4611686018427387904"), HasSubstr("/model/query_heads"));
  EXPECT_THAT(after(faedkv(), [](Json& c) { c["files"] = file_of_factors(); }),
              HasSubstr("/files: found an array of 1"));
}

TEST_F(Validate, ComparesFilesWithTheirDigests) {
  const Json config = elite(true);
  folder_.write("factors.safetensors", "other bytes");
  EXPECT_THAT(complaint(config), HasSubstr("/files/0/sha256"));
  EXPECT_THAT(after(config, [](Json& c) { c["files"][0]["path"] = "../factors.safetensors"; }),
              HasSubstr("a plain file name"));
}

}  // namespace
}  // namespace kvs
