// SPDX-License-Identifier: Apache-2.0
#include "export/engines/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace kvs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ModelConfig model_of(std::size_t layers, std::size_t head_dim = 64) {
  ModelConfig model;
  model.layer.assign(layers,
                     {.attention = {.query_heads = 2, .kv_heads = 1, .head_dim = head_dim}, .feed_forward = {}});
  model.context = 64;
  model.ropes.resize(1);
  return model;
}

EngineCache cache_of(const ModelConfig& model, const Json& settings, const Method& method = kFullMethod) {
  return {{.method = &method, .parameters = {{settings, "", ErrorCode::kUsage}}}, model};
}

std::string obstacle_in(const std::string& engine, const EngineCache& cache) {
  return engine_of(engine, "--engine").obstacle(cache);
}
std::string flags_of(const std::string& engine, const EngineCache& cache) {
  EXPECT_EQ(obstacle_in(engine, cache), "") << engine;
  return engine_of(engine, "--engine").use(cache).flags;
}
std::vector<std::string> names_of(const EngineCache& cache) {
  std::vector<std::string> names;
  for (const EngineUse& use : engine_uses(cache)) names.push_back(use.engine);
  return names;
}

TEST(Engines, ExecuteTheFullCacheAt16Bits) {
  const ModelConfig model = model_of(3);
  EXPECT_THAT(names_of(cache_of(model, Json::object())),
              ElementsAre("llama.cpp", "ik_llama.cpp", "vllm", "vllm-modelopt", "sglang", "tensorrt-llm",
                          "transformers", "transformers-kvspectrum"));
  EXPECT_EQ(flags_of("llama.cpp", cache_of(model, Json::object())), "-ctk f16 -ctv f16 -fa on");
}

TEST(Engines, LlamaCppTakesOnePairOfItsTypes) {
  const ModelConfig model = model_of(3);
  const EngineCache mixed = cache_of(model, {{"type_k", "q8_0"}, {"type_v", "q4_0"}});
  EXPECT_THAT(names_of(mixed), ElementsAre("llama.cpp", "transformers-kvspectrum"));
  EXPECT_EQ(flags_of("llama.cpp", mixed), "-ctk q8_0 -ctv q4_0 -fa on");
  EXPECT_TRUE(engine_of("llama.cpp", "").use(mixed).notes.empty());
  EXPECT_THAT(engine_of("llama.cpp", "").use(cache_of(model, {{"type", "q5_1"}})).notes,
              ElementsAre(HasSubstr("GGML_CUDA_FA_ALL_QUANTS")));
  EXPECT_THAT(engine_of("llama.cpp", "").use(cache_of(model, {{"type", "q8_0"}, {"rotate", "off"}})).notes,
              ElementsAre(HasSubstr("LLAMA_ATTN_ROT_DISABLE=1")));
  EXPECT_THAT(obstacle_in("llama.cpp", cache_of(model, {{"type", "fp8"}})),
              StartsWith("found fp8, expected one of none"));
  EXPECT_THAT(obstacle_in("llama.cpp", cache_of(model, {{"type", {"q8_0", "q4_0", "q8_0"}}})),
              HasSubstr("other types in some layers"));
}

TEST(Engines, LlamaCppReadsLayoutAndRotationAsItHasThem) {
  ModelConfig model = model_of(2);
  model.adjacent_pairs = true;
  EXPECT_THAT(obstacle_in("llama.cpp", cache_of(model, {{"type", "q8_0"}, {"layout", "hf"}})), HasSubstr("layout=hf"));
  EXPECT_EQ(obstacle_in("llama.cpp", cache_of(model, {{"type", "q8_0"}})), "");
  model.layer[1].attention.head_dim = 128;
  EXPECT_THAT(obstacle_in("llama.cpp", cache_of(model, {{"type", "q8_0"}})), HasSubstr("rotate=on, expected off"));
  EXPECT_EQ(obstacle_in("llama.cpp", cache_of(model, {{"type", "q8_0"}, {"rotate", "off"}})), "");
  EXPECT_EQ(obstacle_in("llama.cpp", cache_of(model, {{"type", "f16"}})), "");
}

TEST(Engines, IkLlamaTakesOtherTypesAtBothEnds) {
  const ModelConfig model = model_of(5);
  const auto with = [&](const Json& types) { return cache_of(model, {{"type", types}, {"rotate", "off"}}); };
  EXPECT_EQ(flags_of("ik_llama.cpp", with({"q8_0", "q8_0", "q4_0", "q4_0", "f16"})),
            "-ctk q4_0 -ctv q4_0 -fa on -ctk-first q8_0,2 -ctv-first q8_0,2 -ctk-last f16,1 -ctv-last f16,1");
  // The middle is the run between two others, else the longer of two.
  EXPECT_EQ(flags_of("ik_llama.cpp", with({"q8_0", "q8_0", "q8_0", "q5_0", "f16"})),
            "-ctk q5_0 -ctv q5_0 -fa on -ctk-first q8_0,3 -ctv-first q8_0,3 -ctk-last f16,1 -ctv-last f16,1");
  EXPECT_EQ(flags_of("ik_llama.cpp", with({"q5_0", "q5_0", "q5_0", "q8_0", "q8_0"})),
            "-ctk q5_0 -ctv q5_0 -fa on -ctk-last q8_0,2 -ctv-last q8_0,2");
  EXPECT_THAT(obstacle_in("ik_llama.cpp", with({"q8_0", "q5_0", "q4_0", "q4_0", "f16"})), HasSubstr("in the middle"));
  EXPECT_THAT(obstacle_in("ik_llama.cpp", cache_of(model, {{"type", "q8_0"}})), HasSubstr("rotate=on"));
  EXPECT_THAT(engine_of("ik_llama.cpp", "").use(with("q4_0")).notes, ElementsAre(HasSubstr("least squares")));
  EXPECT_TRUE(engine_of("ik_llama.cpp", "").use(with("q5_0")).notes.empty());
}

TEST(Engines, IkLlamaTakesOtherNumbersOfLayersForKeysThanForValues) {
  const ModelConfig model = model_of(5);
  const EngineCache cache = cache_of(model, {{"type_k", {"q8_0", "q8_0", "q5_0", "q5_0", "q5_0"}},
                                             {"type_v", {"q5_0", "q5_0", "q5_0", "q5_0", "q8_0"}},
                                             {"rotate", "off"}});
  EXPECT_EQ(flags_of("ik_llama.cpp", cache), "-ctk q5_0 -ctv q5_0 -fa on -ctk-first q8_0,2 -ctv-last q8_0,1");
}

// llama_kv_cache_init compares N with the index of a layer among all layers of the model.
TEST(Engines, IkLlamaCountsLayersWithoutAKvCache) {
  ModelConfig model = model_of(8);
  for (const std::size_t layer : {0, 2, 3, 6}) model.layer[layer].attention.kv_layer = 1;
  ASSERT_EQ(model.cached_layers(), (std::vector<std::size_t>{1, 4, 5, 7}));
  EXPECT_EQ(flags_of("ik_llama.cpp", cache_of(model, {{"type", {"q8_0", "q5_0", "q5_0", "f16"}}, {"rotate", "off"}})),
            "-ctk q5_0 -ctv q5_0 -fa on -ctk-first q8_0,2 -ctv-first q8_0,2 -ctk-last f16,1 -ctv-last f16,1");
  EXPECT_EQ(flags_of("ik_llama.cpp", cache_of(model, {{"type", {"q5_0", "q5_0", "f16", "f16"}}, {"rotate", "off"}})),
            "-ctk f16 -ctv f16 -fa on -ctk-first q5_0,5 -ctv-first q5_0,5");
}

TEST(Engines, VllmTakesOneTypeAndLayersAt16Bits) {
  const ModelConfig model = model_of(6);
  EXPECT_EQ(flags_of("vllm", cache_of(model, {{"type", "fp8"}, {"type_skip_layers", {0, 5}}})),
            "--kv-cache-dtype fp8 --kv-cache-dtype-skip-layers 0 5");
  EXPECT_EQ(engine_of("vllm", "").use(cache_of(model, {{"type", "fp8"}})).exporter, "vllm-fp8");
  EXPECT_EQ(flags_of("vllm", cache_of(model, {{"type", "turboquant_4bit_nc"}})),
            "--kv-cache-dtype turboquant_4bit_nc --kv-cache-dtype-skip-layers 0 1 4 5");
  EXPECT_EQ(engine_of("vllm", "").use(cache_of(model, {{"type", "turboquant_4bit_nc"}})).exporter, "vllm-flags");
  EXPECT_THAT(obstacle_in("vllm", cache_of(model, {{"type", "turboquant_4bit_nc"}, {"type_skip_layers", {0, 1, 5}}})),
              StartsWith("found turboquant_4bit_nc in layer 4, expected 16 bits"));
  EXPECT_EQ(flags_of("vllm", cache_of(model, {{"type", {"nvfp4", "f16", "nvfp4", "nvfp4", "nvfp4", "bf16"}}})),
            "--kv-cache-dtype nvfp4 --kv-cache-dtype-skip-layers 1 5");
  EXPECT_THAT(obstacle_in("vllm", cache_of(model, {{"type", "q8_0"}})), StartsWith("found q8_0, expected one of fp8"));
  EXPECT_THAT(obstacle_in("vllm", cache_of(model, {{"type_k", "fp8"}})), HasSubstr("one type for both"));
  EXPECT_THAT(
      obstacle_in("vllm", cache_of(model, {{"type", {"fp8", "fp8", "fp8", "int8_per_token_head", "fp8", "fp8"}}})),
      HasSubstr("fp8 and int8_per_token_head"));
}

TEST(Engines, TheFloatTypesOfVllmSglangAndTensorRt) {
  const ModelConfig model = model_of(2);
  const EngineCache nvfp4 = cache_of(model, {{"type", "nvfp4"}}), e5m2 = cache_of(model, {{"type", "fp8_e5m2"}});
  EXPECT_THAT(names_of(nvfp4),
              ElementsAre("vllm", "vllm-modelopt", "sglang", "tensorrt-llm", "transformers-kvspectrum"));
  EXPECT_THAT(names_of(e5m2), ElementsAre("vllm", "sglang", "transformers-kvspectrum"));
  EXPECT_EQ(flags_of("vllm", e5m2), "--kv-cache-dtype fp8_e5m2");
  EXPECT_EQ(flags_of("sglang", nvfp4), "--kv-cache-dtype nvfp4");
  EXPECT_EQ(flags_of("tensorrt-llm", nvfp4), "--kv_cache_dtype nvfp4");
  const Json scaled{{"type", "fp8_e5m2"}, {"scale_k", 0.5}};
  EXPECT_THAT(obstacle_in("vllm", cache_of(model, scaled)), HasSubstr("scale_k other than 1, expected 1"));
  EXPECT_THAT(obstacle_in("sglang", cache_of(model, {{"type", "nvfp4"}, {"scale_v", 0.5}})), HasSubstr("scale_v"));
  EXPECT_THAT(engine_of("vllm", "").use(cache_of(model, {{"type", "nvfp4"}, {"scale_v", 0.5}})).notes,
              ElementsAre(HasSubstr("ModelOpt")));
  EXPECT_THAT(obstacle_in("vllm", cache_of(model, {{"type_k", "fp8"}, {"type_v", "nvfp4"}})),
              HasSubstr("found fp8 keys and nvfp4 values, expected one type for both"));
}

TEST(Engines, AMapOfModelOptHoldsFp8AndNvfp4ByLayer) {
  const ModelConfig model = model_of(3);
  const EngineCache mixed = cache_of(model, {{"type", {"fp8", "nvfp4", "f16"}}});
  EXPECT_THAT(names_of(mixed), ElementsAre("vllm-modelopt", "transformers-kvspectrum"));
  EXPECT_EQ(engine_of("vllm-modelopt", "").use(mixed).exporter, "modelopt-map");
  EXPECT_THAT(obstacle_in("vllm", mixed), StartsWith("found fp8 and nvfp4 in layers, expected one type and 16 bits"));
  EXPECT_THAT(obstacle_in("vllm-modelopt", cache_of(model, {{"type_k", "fp8"}, {"type_v", "nvfp4"}})),
              StartsWith("found fp8 keys and nvfp4 values, expected one type for both"));
  EXPECT_THAT(obstacle_in("vllm-modelopt", cache_of(model, {{"type", "fp8_e5m2"}})),
              StartsWith("found fp8_e5m2, expected one of fp8, nvfp4"));
}

TEST(Engines, OfferTheTypesThatTheyExecute) {
  const ModelConfig model = model_of(6);
  const OfferedTypes modelopt = offered_types(engine_of("vllm-modelopt", ""), model, Json::object());
  EXPECT_EQ(modelopt.by_layer, TypesByLayer::kAny);
  EXPECT_THAT(modelopt.settings, ElementsAre(Json{{"type", "f16"}}, Json{{"type", "fp8"}}, Json{{"type", "nvfp4"}}));
  // ggml: every pair of f16 and six types, with what the engine needs and what is given.
  const OfferedTypes ik = offered_types(engine_of("ik_llama.cpp", ""), model, {{"layout", "hf"}});
  EXPECT_EQ(ik.by_layer, TypesByLayer::kEnds);
  ASSERT_EQ(ik.settings.size(), 49U);
  EXPECT_EQ(ik.settings.back(),
            (Json{{"type_k", "iq4_nl"}, {"type_v", "iq4_nl"}, {"rotate", "off"}, {"layout", "hf"}}));
  // Heads of 8 channels have no block of 16.
  EXPECT_THAT(offered_types(engine_of("vllm-modelopt", ""), model_of(6, 8), Json::object()).settings,
              ElementsAre(Json{{"type", "f16"}}, Json{{"type", "fp8"}}));
  try {
    (void)offered_types(engine_of("llama.cpp", ""), model_of(6, 8), Json::object());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("multiple of 32"));
  }
}

TEST(Engines, SglangTakesOneScaleForKeysAndValues) {
  const ModelConfig model = model_of(2);
  EXPECT_EQ(flags_of("sglang", cache_of(model, {{"type", "fp8"}})), "--kv-cache-dtype fp8_e4m3");
  EXPECT_THAT(obstacle_in("sglang", cache_of(model, {{"type", "fp8"}, {"scale_k", 0.5}})), HasSubstr("other scales"));
  const EngineCache equal = cache_of(model, {{"type", "fp8"}, {"scale_k", {0.5, 2.0}}, {"scale_v", {0.5, 2.0}}});
  EXPECT_THAT(engine_of("sglang", "").use(equal).notes, ElementsAre(HasSubstr("--quantization-param-path")));
  EXPECT_EQ(obstacle_in("tensorrt-llm", cache_of(model, {{"type", "fp8"}, {"scale_k", 0.5}})), "");
}

TEST(Engines, VllmNamesTheScalesOfAFamily) {
  ModelConfig model = model_of(2);
  model.architecture = "llama";
  EXPECT_EQ(engine_of("vllm", "").scale_module(model), "self_attn");
  model.architecture = "qwen3_5_moe";
  EXPECT_EQ(engine_of("vllm", "").scale_module(model), "self_attn.attn");
  EXPECT_EQ(engine_of("llama.cpp", "").scale_module, nullptr);
}

TEST(Engines, OtherMethodsRunInThePackageAlone) {
  ModelConfig model = model_of(2);
  const Json settings{{"cache_size", 32}};
  EXPECT_THAT(names_of(cache_of(model, settings, kStreamingMethod)), ElementsAre("transformers-kvspectrum"));
  EXPECT_THAT(obstacle_in("transformers", cache_of(model, settings, kStreamingMethod)), StartsWith("found streaming"));
  const EngineCache coded = cache_of(model, {{"cache_size", 32}, {"type", "q8_0"}}, kStreamingMethod);
  EXPECT_THAT(names_of(coded), ElementsAre("transformers-kvspectrum"));
  EXPECT_THAT(names_of(cache_of(model, Json::object(), kKiviMethod)), ElementsAre("transformers-kvspectrum"));
  model.layer[1].attention.window = 16;
  EXPECT_EQ(obstacle_in("transformers-kvspectrum", cache_of(model, settings, kStreamingMethod)), "");
}

TEST(Engines, ThePackageRunsTheMethodsThatItHasFilesFor) {
  EXPECT_EQ(obstacle_in("transformers-kvspectrum", cache_of(model_of(3), Json::object(), kKvtcMethod)),
            "found kvtc, expected a method of the package kvspectrum");
}

TEST(Engines, ThePackageRunsTheModelsThatItTakes) {
  const auto obstacle = [](const auto& change) {
    ModelConfig model = model_of(2);
    change(model);
    return obstacle_in("transformers-kvspectrum", cache_of(model, Json::object()));
  };
  EXPECT_EQ(obstacle([](ModelConfig&) {}), "");
  EXPECT_THAT(obstacle([](ModelConfig& model) { model.architecture = "gpt_neox"; }), HasSubstr("self_attn"));
  EXPECT_THAT(obstacle([](ModelConfig& model) { model.arithmetic.norms_after_rope = true; }),
              HasSubstr("norms of queries and keys after RoPE"));
  for (const RopeScaling::Type type : {RopeScaling::Type::kDynamic, RopeScaling::Type::kLongRope})
    EXPECT_THAT(obstacle([&](ModelConfig& model) { model.ropes[0].scaling.type = type; }),
                HasSubstr("change with the length"));
  EXPECT_EQ(obstacle([](ModelConfig& model) { model.ropes[0].scaling.type = RopeScaling::Type::kYarn; }), "");
  EXPECT_THAT(obstacle([](ModelConfig& model) { model.layer[1].attention.sinks = true; }), HasSubstr("sinks"));
  EXPECT_THAT(obstacle([](ModelConfig& model) { model.layer[1].attention.chunk = 8; }), HasSubstr("chunks"));
  EXPECT_THAT(obstacle([](ModelConfig& model) { model.layer[1].attention.softcap = 30; }), HasSubstr("cap"));
}

TEST(Engines, AnUnknownNameIsRefusedWithANearOne) {
  try {
    engine_of("vlm", "--engine");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("found 'vlm', expected one of llama.cpp"));
    EXPECT_THAT(error.what(), HasSubstr("vllm"));
  }
}

}  // namespace
}  // namespace kvs
