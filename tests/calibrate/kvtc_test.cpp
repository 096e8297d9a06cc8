// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "caches/full.h"
#include "calibrate/kvtc/block.h"
#include "calibrate/kvtc/cache.h"
#include "calibrate/kvtc/calibration.h"
#include "calibrate/kvtc/quantiser.h"
#include "core/error.h"
#include "io/file.h"
#include "tests/analyzers/memory_source.h"
#include "tests/calibrate/layer_harness.h"

namespace kvs {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::Pointwise;

// Values of an independent program: tests/golden/make_kvtc_golden.py.
const Json& kvtc_golden() {
  static const Json golden = parse_json(read_text_file(KVS_GOLDEN_DIR "/kvtc.json", 1 << 20), "kvtc.json");
  return golden;
}

constexpr std::size_t kGoldenTokens = 66, kGoldenWidth = 20, kGoldenLayers = 2, kGoldenSinks = 2, kGoldenBlock = 4,
                      kGoldenValues = kGoldenLayers * kGoldenWidth;

/// random_values() of the script.
std::vector<double> golden_random(std::uint64_t seed, std::size_t count) {
  std::vector<double> values(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    values[i] = static_cast<double>((z ^ (z >> 31U)) >> 40U) * 0x1p-23 - 1;
  }
  return values;
}

/// states() of the script: [token, value].
std::vector<float> golden_states(std::uint64_t side) {
  const std::vector<double> mix = golden_random(100 + side, kGoldenValues * kGoldenValues),
                            sources = golden_random(200 + side, kGoldenTokens * kGoldenValues),
                            means = golden_random(300 + side, kGoldenValues);
  std::vector<float> x;
  for (std::size_t token = 0; token < kGoldenTokens; ++token)
    for (std::size_t value = 0; value < kGoldenValues; ++value) {
      double sum = 3 * means[value];
      for (std::size_t n = 0; n < kGoldenValues; ++n)
        sum += sources[token * kGoldenValues + n] * std::pow(0.9, n) * mix[n * kGoldenValues + value];
      if (token < kGoldenSinks) sum *= 100;
      x.push_back(static_cast<float>(std::nearbyint(sum * 4096)) / 4096);
    }
  return x;
}

KvtcMoments golden_moments() {
  const std::vector<float> keys = golden_states(0), values = golden_states(1);
  MemorySource source(
      1, 1, kGoldenTokens, kGoldenWidth,
      [&](std::size_t, std::size_t layer, StateKind kind, std::size_t, std::size_t token, std::size_t channel) {
        return (kind == StateKind::kKPre ? keys : values)[token * kGoldenValues + layer * kGoldenWidth + channel];
      });
  KvtcMoments moments({{{0, 1}, {{1, kGoldenWidth}, {1, kGoldenWidth}}}}, kGoldenSinks, kGoldenBlock);
  moments.add(source, 0);
  return moments;
}

Backend& kvtc_backend() {
  const auto full = make_full_cache();
  return test::LayerHarness(*full, 1, 1).backend();
}

KvtcBasis golden_basis(KvtcMoments::Side side) {
  return kvtc_basis(*make_calibration_ops(kvtc_backend()), golden_moments(), 0, side, 1000);
}

std::vector<KvtcGroup> golden_groups(const Json& groups) {
  std::vector<KvtcGroup> all;
  all.reserve(groups.size());
  for (const Json& group : groups)
    all.push_back({group[0].get<std::size_t>(),
                   static_cast<KvtcType>(std::ranges::find(kKvtcTypeNames, group[1].get<std::string>()) -
                                         kKvtcTypeNames.begin())});
  return all;
}

const Json& golden_plan(const Json& side) {
  return *std::ranges::find(side.at("plans"), side.at("packed_bits"), [](const Json& plan) { return plan.at("bits"); });
}

std::vector<float> golden_rows(const Json& rows) {
  std::vector<float> all;
  for (const Json& row : rows)
    for (const Json& value : row) all.push_back(value.get<float>());
  return all;
}

std::vector<std::uint8_t> bytes_of(const std::string& hex) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t at = 0; at < hex.size(); at += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(at, 2), nullptr, 16)));
  return bytes;
}

/// The bases differ by the rounding of f32 and f16: the energy of all tokens is 1,500.
TEST(Kvtc, ChoosesTheGroupsOfAnIndependentProgram) {
  for (const auto& [name, side] : {std::pair("keys", KvtcMoments::kKeys), std::pair("values", KvtcMoments::kValues)}) {
    const KvtcBasis basis = golden_basis(side);
    for (const Json& expected : kvtc_golden().at(name).at("plans")) {
      const KvtcErrors::Plan plan = basis.errors->plan(expected.at("bits").get<std::size_t>());
      EXPECT_EQ(plan.groups, golden_groups(expected.at("groups"))) << name << ' ' << expected.at("bits");
      const auto error = expected.at("error").get<double>();
      EXPECT_NEAR(plan.error, error, 1e-3 * error + 5e-4) << name << ' ' << expected.at("bits");
    }
  }
}

TEST(Kvtc, PacksTheCodesOfAnIndependentProgram) {
  for (const std::string name : {"keys", "values"}) {
    const Json& side = kvtc_golden().at(name);
    const std::vector<KvtcGroup> groups = golden_groups(golden_plan(side).at("groups"));
    const std::vector<std::uint8_t> packed = pack_rows(golden_rows(side.at("components")), groups, kGoldenBlock);
    EXPECT_EQ(packed, bytes_of(side.at("packed").get<std::string>())) << name;
    EXPECT_EQ(packed.size(), packed_bytes(groups, kGoldenBlock));
    EXPECT_THAT(unpack_rows(packed, groups, kGoldenBlock), Pointwise(FloatEq(), golden_rows(side.at("decoded"))))
        << name;
  }
}

KvtcPool golden_pool(const Json& golden) {
  KvtcPool pool{.layers = {0, 1}, .keys = {}, .values = {}};
  for (const auto& [name, side, of] :
       {std::tuple("keys", &pool.keys, KvtcMoments::kKeys), std::tuple("values", &pool.values, KvtcMoments::kValues)}) {
    KvtcBasis basis = golden_basis(of);
    side->mean = basis.mean;
    side->groups = golden_groups(golden_plan(golden.at(name)).at("groups"));
    basis.basis.resize(side->components() * kGoldenValues);
    side->basis = std::move(basis.basis);
  }
  return pool;
}

/// The stream is Python's zlib's; states are restored with bases that differ by the rounding of f32 and f16.
TEST(Kvtc, DecodesTheStreamOfAnIndependentProgram) {
  const KvtcProducts products(kvtc_backend(), golden_pool(kvtc_golden()), {}, {{1, kGoldenWidth}, {1, kGoldenWidth}});
  const KvtcBlock block{kGoldenBlock, bytes_of(kvtc_golden().at("stream").get<std::string>())};
  const std::vector<TokenRows::Part> layers = products.decode(kvtc_backend(), block);
  for (std::size_t layer = 0; layer < kGoldenLayers; ++layer)
    for (const auto& [name, part] :
         {std::pair("keys", layers[layer].k.view()), std::pair("values", layers[layer].v.view())}) {
      const std::vector<float> found = download(kvtc_backend(), part);
      for (std::size_t token = 0; token < kGoldenBlock; ++token)
        for (std::size_t channel = 0; channel < kGoldenWidth; ++channel)
          EXPECT_NEAR(found[token * kGoldenWidth + channel],
                      kvtc_golden().at(name).at("rows")[token][layer * kGoldenWidth + channel].get<double>(), 5e-3)
              << name << ' ' << layer << ' ' << token << ' ' << channel;
    }
}

TEST(Kvtc, GroupsDivideTheRangeOfTheirValues) {
  std::vector<float> values{-1, 0, 1, 2};
  quantise_group(KvtcType::kInt2, values);  // −1 and steps of 1
  EXPECT_THAT(values, ElementsAre(-1, 0, 1, 2));
  values = {0, 1.4F, 1.6F, 3};
  quantise_group(KvtcType::kInt2, values);
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 3));
  values = {0, 0.4F, 14.6F, 15};
  quantise_group(KvtcType::kInt4, values);
  EXPECT_THAT(values, ElementsAre(0, 0, 15, 15));
  values = {-448, 1, 17.1F, 448};  // zero is in the middle, and 448 is the scale 1
  quantise_group(KvtcType::kFp8, values);
  EXPECT_THAT(values, ElementsAre(-448, 1, 18, 448));
  values = std::vector<float>(16, 0.5F);
  quantise_group(KvtcType::kInt2, values);
  EXPECT_THAT(values, Each(0.5F));
  values = {1e30F, -1e30F};
  quantise_group(KvtcType::kF16, values);
  EXPECT_THAT(values, ElementsAre(65504, -65504));
}

TEST(Kvtc, RefusesBlocksThatAreNotItsStreams) {
  KvtcPool pool = golden_pool(kvtc_golden());
  const KvtcRows rows{std::vector<float>(kGoldenBlock * pool.keys.components(), 1),
                      std::vector<float>(kGoldenBlock * pool.values.components(), -1)};
  const KvtcBlock block = encode_block(rows, pool, kGoldenBlock);
  EXPECT_THAT(decode_block(block, pool).keys, Each(FloatNear(1, 1e-3)));
  const auto refused = [&](const KvtcBlock& other) { EXPECT_THROW((void)decode_block(other, pool), Error); };
  KvtcBlock other = block;
  other.stream.resize(other.stream.size() - 1);
  refused(other);
  other = block;
  other.stream[other.stream.size() / 2] ^= 0x55U;
  refused(other);
  refused({kGoldenBlock + 1, block.stream});
  refused({kGoldenBlock - 1, block.stream});
  refused({kGoldenBlock, {}});
}

constexpr std::size_t kPoolHeads = 1, kPoolWidth = 8, kPoolTokens = 40;

/// Two layers, components of which are the values in reverse order; 8 bits each.
KvtcPool reversing_pool() {
  constexpr std::size_t kAll = 2 * kPoolHeads * kPoolWidth;
  KvtcSide side{.mean = std::vector<float>(kAll, 0.25F),
                .basis = std::vector<float>(kAll * kAll),
                .groups = {{kAll, KvtcType::kFp8}}};
  for (std::size_t n = 0; n < kAll; ++n) side.basis[n * kAll + kAll - 1 - n] = 1;
  return {.layers = {0, 1}, .keys = side, .values = side};
}

class KvtcCacheTest : public ::testing::Test {
 protected:
  using Caches = std::vector<std::unique_ptr<LayerCache>>;

  static Caches caches(const KvtcTokens& tokens) {
    return make_kvtc_caches(std::make_shared<const KvtcProducts>(
        kvtc_backend(), reversing_pool(), tokens,
        std::vector<KvtcHeads>{{kPoolHeads, kPoolWidth}, {kPoolHeads, kPoolWidth}}));
  }
  std::vector<float> feed(Caches& caches, std::size_t layer, std::size_t token, std::size_t count, std::size_t window,
                          float query = 0) {
    return test::LayerHarness(*caches[layer], kPoolHeads, kPoolWidth, window, 0.3F)
        .feed(k_[layer], v_[layer], kPoolTokens, token, query, count);
  }
  /// Feeds all tokens but the last to both layers, at most `most` at once and no more than the caches take.
  void feed_all(Caches& caches, std::size_t most, std::size_t window) {
    for (std::size_t token = 0, count = 0; token + 1 < kPoolTokens; token += count) {
      count = std::min({most, kPoolTokens - 1 - token, caches[0]->max_tokens_per_call()});
      for (std::size_t layer = 0; layer < caches.size(); ++layer) (void)feed(caches, layer, token, count, window);
    }
  }
  static std::size_t stored(const Caches& caches) { return caches[0]->bytes().stored + caches[1]->bytes().stored; }
  static std::vector<float> states(std::uint32_t seed) {
    return test::random_values(kPoolHeads * kPoolTokens * kPoolWidth, seed);
  }

  std::vector<float> k_[2] = {states(1), states(2)}, v_[2] = {states(3), states(4)};
};

TEST_F(KvtcCacheTest, HoldsTheSameAtOnceAndTokenByToken) {
  for (const std::size_t window : {0, 12})
    for (const KvtcTokens& tokens :
         {KvtcTokens{3, 4, 5, KvtcRecent::kF16}, KvtcTokens{1, 0, 2, KvtcRecent::kQ8_0}, KvtcTokens{0, 3, 1}}) {
      SCOPED_TRACE(::testing::Message() << tokens.block << ", window " << window);
      Caches whole = caches(tokens), single = caches(tokens), groups = caches(tokens);
      feed_all(whole, kPoolTokens, window);
      feed_all(single, 1, window);
      feed_all(groups, 3, window);
      EXPECT_EQ(stored(whole), stored(single));
      EXPECT_EQ(stored(whole), stored(groups));
      for (std::size_t layer = 0; layer < 2; ++layer) {
        const std::vector<float> read = feed(whole, layer, kPoolTokens - 1, 1, window, 0.7F);
        EXPECT_EQ(read, feed(single, layer, kPoolTokens - 1, 1, window, 0.7F));
        EXPECT_EQ(read, feed(groups, layer, kPoolTokens - 1, 1, window, 0.7F));
      }
    }
}

/// Values of a group are within 1 of 0, so that fp8 has errors of at most 1 / 28; keys and values of the sinks and of
/// recent tokens have none.
TEST_F(KvtcCacheTest, ReadsWhatItsBlocksDecodeTo) {
  for (const std::size_t window : {0, 12}) {
    Caches coded = caches({2, 4, 5});
    feed_all(coded, kPoolTokens, window);
    for (std::size_t layer = 0; layer < 2; ++layer) {
      const auto plain = make_full_cache();
      test::LayerHarness exactly(*plain, kPoolHeads, kPoolWidth, window, 0.3F);
      (void)exactly.feed(k_[layer], v_[layer], kPoolTokens, 0, 0, kPoolTokens - 1);
      const std::vector<float> expected = exactly.feed(k_[layer], v_[layer], kPoolTokens, kPoolTokens - 1, 0.7F, 1),
                               found = feed(coded, layer, kPoolTokens - 1, 1, window, 0.7F);
      double error = 0;
      for (std::size_t n = 0; n < found.size(); ++n) error = std::max(error, std::abs(1.0 * found[n] - expected[n]));
      EXPECT_LT(error, 0.05) << window;
      EXPECT_GT(error, 1e-5) << window;
    }
  }
}

TEST_F(KvtcCacheTest, CountsSinksWaitingTokensAndBlocks) {
  Caches pool = caches({3, 4, 5});
  EXPECT_EQ(pool[0]->max_tokens_per_call(), 12U);
  EXPECT_THROW((void)feed(pool, 0, 0, 13, 0), Error);
  for (std::size_t layer = 0; layer < 2; ++layer) (void)feed(pool, layer, 0, 12, 0);
  EXPECT_EQ(pool[0]->max_tokens_per_call(), 5U);  // a block is coded
  constexpr std::size_t kRow = 2 * kPoolHeads * kPoolWidth * 2;
  EXPECT_EQ(pool[1]->bytes().stored, (3 + 4) * kRow);
  EXPECT_EQ(pool[1]->peak().stored, (3 + 9) * kRow);
  // 5 tokens of 16 codes, a shift and a scale each, for keys and values: 200 bytes, which random codes hardly shrink.
  const std::size_t block = pool[0]->bytes().stored - (3 + 4) * kRow;
  EXPECT_GT(block, 150U);
  EXPECT_LT(block, 220U);
}

TEST_F(KvtcCacheTest, DropsBlocksThatNoTokenReads) {
  Caches pool = caches({3, 4, 5});
  feed_all(pool, kPoolTokens, 6);
  constexpr std::size_t kRow = 2 * kPoolHeads * kPoolWidth * 2;
  // Positions 3 + 5n on are blocks; the last token reads 6 positions, so at most two blocks and waiting tokens are
  // held.
  EXPECT_LT(pool[0]->bytes().stored, 9 * kRow + 2 * 220);
  EXPECT_LE(pool[1]->bytes().stored, 9 * kRow);
}

TEST(KvtcCalibration, FillsTheBudgetWithTheCodesOfTheText) {
  const KvtcMoments moments = golden_moments();
  const auto ops = make_calibration_ops(kvtc_backend());
  const auto progress = [](std::string_view, std::size_t, std::size_t) {};
  std::size_t before = 0;
  for (const double share : {0.2, 0.3, 0.5}) {
    KvtcPlan plan{.bytes = 0, .tokens = 1000, .held = {.sinks = 2, .recent = 4, .block = kGoldenBlock}};
    plan.bytes = static_cast<std::size_t>(share * 2 * 2 * kGoldenValues * 1000);
    const KvtcBases bases(*ops, moments, kvtc_bits(moments.pools(), plan, kKvtcMaxGain), progress);
    const KvtcConfig found = calibrate_kvtc(bases, moments, plan, progress);
    EXPECT_LE(found.code_bytes * 990, kvtc_code_bytes(moments.pools(), plan));
    EXPECT_GE(found.code_bytes * 990, 0.7 * static_cast<double>(kvtc_code_bytes(moments.pools(), plan)));
    const std::size_t components = found.pools[0].keys.components() + found.pools[0].values.components();
    EXPECT_GE(components, before);
    before = components;
  }
  KvtcPlan none{.bytes = 3000, .tokens = 1000, .held = {.sinks = 2, .recent = 4, .block = kGoldenBlock}};
  const KvtcBases bases(*ops, moments, 1, progress);
  EXPECT_THROW((void)calibrate_kvtc(bases, moments, none, progress), Error);
}

TEST(KvtcCalibration, PoolsLayersThatDropTokensAtTheSameTime) {
  ModelConfig model;
  model.layer.resize(6);
  for (std::size_t n = 0; n < 6; ++n) {
    AttentionConfig& attention = model.layer[n].attention;
    attention.query_heads = attention.kv_heads = 2;
    attention.head_dim = 4;
    attention.window = n % 3 == 2 ? 0 : 7;
  }
  const std::vector<KvtcLayers> pools = kvtc_pools(model);
  ASSERT_EQ(pools.size(), 2U);
  EXPECT_THAT(pools[0].layers, ElementsAre(2, 5));
  EXPECT_THAT(pools[1].layers, ElementsAre(0, 1, 3, 4));
  for (LayerConfig& layer : model.layer) layer.attention.head_dim = 2000;  // 4,000 values a layer: two fit
  const std::vector<KvtcLayers> cut = kvtc_pools(model);
  ASSERT_EQ(cut.size(), 3U);
  EXPECT_THAT(cut[1].layers, ElementsAre(0, 1));
  EXPECT_THAT(cut[2].layers, ElementsAre(3, 4));
}

}  // namespace
}  // namespace kvs
