// SPDX-License-Identifier: Apache-2.0
// Storage types by their engines' names: bytes and values of independent implementations, and the rows that they
// refuse.
#include "caches/kv_types.h"

#include <gtest/gtest.h>

#include <cmath>

#include "caches/cache_shape.h"
#include "caches/parameters.h"
#include "io/file.h"
#include "tests/io/temporary_directory.h"
#include "tests/kernels/held_rows.h"

namespace kvs {
namespace {

KvTypes types_of(const std::vector<std::string>& settings, std::size_t head_dim, std::size_t adjacent_pairs = 0,
                 std::size_t layers = 1, std::size_t layer = 0) {
  Parameters parameters({{parse_settings(settings, "settings"), "", ErrorCode::kUsage}}, layers);
  parameters.select(layer);
  KvTypes types = read_kv_types(
      parameters, layer, {std::vector<LayerShape>(layers, {.kv_heads = 2, .head_dim = head_dim}), adjacent_pairs});
  parameters.check_known();
  return types;
}

std::string hex_digits(std::byte byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  return {kDigits[std::to_integer<unsigned>(byte) / 16], kDigits[std::to_integer<unsigned>(byte) % 16]};
}

std::vector<std::byte> as_bytes(const std::vector<int>& numbers) {
  std::vector<std::byte> bytes;
  bytes.reserve(numbers.size());
  for (const int number : numbers) bytes.push_back(static_cast<std::byte>(number));
  return bytes;
}

/// The vectors of golden/cache_rows.json (its `source` says where they come from).
class StoreVectors : public ::testing::Test {
 protected:
  std::vector<float> values(const char* name) const { return golden_.at(name).get<std::vector<float>>(); }
  /// `got` of the 32 or 64 values against a golden list: six decimals are given.
  void expect_stands_for(const RowType& types, const std::vector<float>& x, const std::vector<float>& expected) {
    const test::CodedRows rows(*backend_, types.format, x, 1, x.size(), types.scales);
    const std::vector<float> got = download(*backend_, rows.decoded().view());
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1.5e-6) << "value " << i;
  }
  std::string hex(const RowType& types, const std::vector<float>& x) {
    std::string text;
    for (const std::byte byte : test::CodedRows(*backend_, types.format, x, 1, x.size()).bytes())
      text += hex_digits(byte);
    return text;
  }

  Json golden_ = parse_json(read_text_file(KVS_GOLDEN_DIR "/cache_rows.json", 1 << 20), "cache_rows.json");
  std::unique_ptr<Backend> backend_ = make_backend("cpu", DType::kF32, 1);
};

TEST_F(StoreVectors, BlocksOfLlamaCppBitForBit) {
  for (const char* const kind : {"q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"}) {
    SCOPED_TRACE(kind);
    const KvTypes types = types_of({std::string("type=") + kind}, 32);
    EXPECT_EQ(hex(types.k, values("x")), golden_.at(kind).at("block").get<std::string>());
    expect_stands_for(types.v, values("x"), golden_.at(kind).at("values").get<std::vector<float>>());
  }
}

TEST_F(StoreVectors, TiesOfLlamaCpp) {
  const auto padded = [](std::vector<float> x) {
    x.resize(32);
    return x;
  };
  const RowType q4 = types_of({"type=q4_0"}, 32).k, q8 = types_of({"type=q8_0"}, 32).k;
  expect_stands_for(q4, padded({0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, 7.5F, -8}), {1, 2, 3, 0, -1, -2, 7, -8, 0});
  expect_stands_for(q4, padded({8, -8, 1, -1}), {8, -7, 1, -1, 0});
  expect_stands_for(q4, padded({-8, 8, 1, -1}), {-8, 7, 1, -1, 0});
  expect_stands_for(q8, padded({0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, 127, -8}), {1, 2, 3, -1, -2, -3, 127, -8, 0});
  for (const char* const kind :
       {"q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "fp8", "fp8_e5m2", "nvfp4", "fp8_per_token_head",
        "int8_per_token_head", "int4_per_token_head", "quarot4", "turboquant_3bit_nc"}) {
    const KvTypes types = types_of({std::string("type=") + kind, "type_skip_layers=none"}, 32);
    expect_stands_for(types.k, padded({}), padded({}));
    expect_stands_for(types.v, padded({}), padded({}));
  }
}

TEST_F(StoreVectors, KiviInGroupsOf32) {
  expect_stands_for({{.kind = RowKind::kKivi4, .group = 32}}, values("x"), values("kivi bits 4"));
  expect_stands_for({{.kind = RowKind::kKivi2, .group = 32}}, values("x"), values("kivi bits 2"));
}

TEST_F(StoreVectors, VllmsFp8AndInt8) {
  expect_stands_for(types_of({"type=fp8"}, 32).k, values("x"), values("fp8 scale 1"));
  const KvTypes scaled = types_of({"type=fp8", "scale_k=" + std::to_string(4.37F / 448)}, 32);
  EXPECT_EQ(scaled.k.scales.size(), 2U);
  RowType exact = scaled.k;
  exact.scales = {4.37F / 448};
  expect_stands_for(exact, values("x"), values("fp8 scale amax/448"));
  expect_stands_for(types_of({"type=int8_per_token_head"}, 32).v, values("x"), values("int8_per_token_head (d 32)"));
}

/// The rows of golden/float_rows.json.
class FloatRows : public ::testing::Test {
 protected:
  template <class T = float>
  std::vector<T> values(const char* name) const {
    return golden_.at(name).get<std::vector<T>>();
  }
  std::vector<float> flat(const char* name) const {
    std::vector<float> all;
    for (const auto& row : golden_.at(name).get<std::vector<std::vector<float>>>())
      all.insert(all.end(), row.begin(), row.end());
    return all;
  }
  test::CodedRows rows(const RowType& type, const std::vector<float>& x, std::size_t width) {
    return {*backend_, type.format, x, 1, width, type.scales};
  }

  Json golden_ = parse_json(read_text_file(KVS_GOLDEN_DIR "/float_rows.json", 1 << 20), "float_rows.json");
  std::unique_ptr<Backend> backend_ = make_backend("cpu", DType::kF32, 1);
};

TEST_F(FloatRows, E5m2RoundsAndSaturatesAsTorch) {
  const std::vector<float> edges = values("e5m2 edges");  // every number, and the ties between two
  EXPECT_EQ(rows(types_of({"type=fp8_e5m2"}, edges.size()).k, edges, edges.size()).bytes(),
            as_bytes(values<int>("e5m2 of edges")));
  const KvTypes types = types_of({"type=fp8_e5m2", "scale_k=0.25"}, 64);
  const test::CodedRows coded = rows(types.k, flat("x"), 64);
  EXPECT_EQ(download(*backend_, coded.decoded().view()), flat("e5m2 values"));
  EXPECT_EQ(rows(types.v, {1e9F, -1e9F}, 2).bytes(), as_bytes({0x7b, 0xfb}));
}

TEST_F(FloatRows, NvFp4HasTheScalesAndCodesOfCompressedTensors) {
  RowType type = types_of({"type=nvfp4"}, 64).v;
  type.scales = {golden_.at("nvfp4 g").get<float>()};
  const test::CodedRows coded = rows(type, flat("x"), 64);
  std::string expected, found;
  for (const std::string& row : values<std::string>("nvfp4 bytes")) expected += row;
  for (const std::byte byte : coded.bytes()) found += hex_digits(byte);
  EXPECT_EQ(found, expected);
  const std::vector<float> decoded = download(*backend_, coded.decoded().view()), golden = flat("nvfp4 values");
  for (std::size_t i = 0; i < golden.size(); ++i)
    EXPECT_NEAR(decoded[i], golden[i], 2e-7F * std::abs(golden[i])) << "value " << i;
}

TEST_F(FloatRows, NvFp4TakesFourAndAHalfBitsAValue) {
  EXPECT_EQ(rows_bytes({.kind = RowKind::kNvFp4}, 64, 10) * 8, 64U * 10 * 9 / 2);
  // A scale of the layer's largest magnitude over 2688 uses the whole range of e4m3: 2688 = 6 · 448.
  std::vector<float> x(16, 0.5F);
  x[3] = -2688;
  EXPECT_EQ(download(*backend_, rows(types_of({"type=nvfp4"}, 16).k, x, 16).decoded().view())[3], -2688);
  // Values beyond saturate: 6 · 448.
  x[3] = 1e6F;
  EXPECT_EQ(download(*backend_, rows(types_of({"type=nvfp4"}, 16).k, x, 16).decoded().view())[3], 2688);
}

TEST_F(StoreVectors, RotationsAndLayouts) {
  const auto expect = [&](const std::vector<std::string>& settings, std::size_t adjacent_pairs,
                          const std::string& name) {
    SCOPED_TRACE(name);
    const KvTypes types = types_of(settings, 64, adjacent_pairs);
    expect_stands_for(types.k, values("x64"), values((name + " K of x64").c_str()));
    expect_stands_for(types.v, values("x64"), values((name + " V of x64").c_str()));
  };
  expect({"type=q4_0"}, 0, "q4_0+rot");
  expect({"type=q4_0", "layout=hf"}, 64, "q4_0+rot");
  expect({"type=q4_0", "rotate=off"}, 64, "q4_0+norm");
  expect({"type=q4_0"}, 64, "q4_0+rot+norm");
  expect({"type=quarot4"}, 64, "quarot4");
  expect({"type=int4_per_token_head"}, 64, "int4_per_token_head");
  expect({"type=turboquant_4bit_nc", "type_skip_layers=none"}, 64, "turboquant_4bit_nc");
}

TEST_F(StoreVectors, OnlyChannelsThatRotateBecomeAdjacent) {
  const std::vector<float> x = values("x64");
  constexpr std::size_t kRotated = 32;  // as in GLM-4, half of a head: pairs (c, c + 16), in ggml (2c, 2c + 1)
  std::vector<float> in_file = x;
  for (std::size_t c = 0; c < kRotated / 2; ++c) {
    in_file[2 * c] = x[c];
    in_file[2 * c + 1] = x[c + kRotated / 2];
  }
  for (const char* const rotate : {"rotate=off", "rotate=on"}) {
    SCOPED_TRACE(rotate);
    const RowType plain = types_of({"type=q8_0", rotate}, 64).k, ours = types_of({"type=q8_0", rotate}, 64, kRotated).k;
    EXPECT_EQ(hex(ours, x), hex(plain, in_file));
    std::vector<float> expected =
        download(*backend_, test::CodedRows(*backend_, plain.format, in_file, 1, x.size()).decoded().view());
    std::vector<float> reordered = expected;
    for (std::size_t c = 0; c < kRotated / 2; ++c) {
      reordered[c] = expected[2 * c];
      reordered[c + kRotated / 2] = expected[2 * c + 1];
    }
    expect_stands_for(ours, x, reordered);
  }
}

TEST(ReadStore, SidesOverrideBothAndLayersMayBeLeftOut) {
  const KvTypes types = types_of({"type=q8_0", "type_v=q4_0"}, 64);
  EXPECT_EQ(types.k.format.kind, RowKind::kQ8_0);
  EXPECT_EQ(types.v.format.kind, RowKind::kQ4_0);
  EXPECT_EQ(types_of({"type=q8_0", "type_k=none"}, 64).k.format.kind, RowKind::kF32);
  EXPECT_EQ(types_of({"type=q8_0,q4_0"}, 64, 0, 2, 1).k.format.kind, RowKind::kQ4_0);
  EXPECT_EQ(types_of({"type=fp8", "type_skip_layers=0"}, 64, 0, 2, 0).k.format.kind, RowKind::kF16);
  // vLLM leaves TurboQuant's first and last two layers at 16 bits.
  for (const std::size_t layer : {std::size_t{1}, std::size_t{4}})
    EXPECT_EQ(types_of({"type=turboquant_k8v4"}, 64, 0, 6, layer).k.format.kind, RowKind::kF16);
  EXPECT_EQ(types_of({"type=turboquant_k8v4"}, 64, 0, 6, 2).k.format.kind, RowKind::kE4m3);
}

TEST(ReadStore, Fp8KeysWithNvFp4ValuesHaveScalesOfTheirOwn) {
  const KvTypes types = types_of({"type_k=fp8", "type_v=nvfp4", "scale_k=0.5", "scale_v=0.25"}, 64);
  EXPECT_EQ(types.k.format.kind, RowKind::kE4m3);
  EXPECT_EQ(types.v.format.kind, RowKind::kNvFp4);
  EXPECT_EQ(types.k.scales, (std::vector<float>{0.5F, 0.5F}));
  EXPECT_EQ(types.v.scales, (std::vector<float>{0.25F, 0.25F}));
}

TEST(ReadStore, RotatesAsLlamaCppDoes) {
  const auto runs = [](std::size_t head_dim) {
    const KvTypes types = types_of({"type=q8_0"}, head_dim);
    return std::pair(types.k.format.hadamard, types.v.format.hadamard);
  };
  EXPECT_EQ(runs(64), std::pair(64U, 64U));
  EXPECT_EQ(runs(128), std::pair(128U, 64U));
  EXPECT_EQ(runs(192), std::pair(64U, 64U));
  EXPECT_EQ(runs(96), std::pair(0U, 0U));
}

TEST(ReadStore, RefusesHeadsThatDoNotDivide) {
  const auto refused = [](const std::string& kind, std::size_t head_dim) {
    test::expect_error(ErrorCode::kUnsupported, kind + ": found a head_dim of " + std::to_string(head_dim),
                       [&] { (void)types_of({"type=" + kind}, head_dim); });
  };
  refused("q8_0", 80);
  refused("quarot4", 96);
  refused("turboquant_4bit_nc", 96);
  refused("int4_per_token_head", 33);
  refused("nvfp4", 24);
  test::expect_error(ErrorCode::kUsage, "type: found \"q3_0\", expected one of none, f16",
                     [] { (void)types_of({"type=q3_0"}, 64); });
  test::expect_error(ErrorCode::kUsage, "scale_k: found 0, expected a number from", [] {
    (void)types_of({"type=fp8", "scale_k=0"}, 64);
  });
}

}  // namespace
}  // namespace kvs
