// SPDX-License-Identifier: Apache-2.0
// Packed slots: what stays as it is, what is coded, the order of cells and channels, and refusals.
#include "export/slots/slots.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <random>

#include "tests/codec/codec_config.h"
#include "tests/slots/state.h"

namespace kvs {
namespace {

using test::codec_group;
using test::codec_layer;
using test::codec_model;
using test::expect_error;
using test::kCodecChannels;
using test::kCodecShape;
using test::random_state;
using test::TemporaryDirectory;
using test::TestState;

constexpr std::size_t kTokens = 70, kRow = kCodecShape.kv_heads * kCodecShape.head_dim, kRecent = 16;

std::vector<float> inputs_of(std::span<const std::int32_t> tokens) {
  std::vector<float> rows;
  for (const std::int32_t token : tokens)
    for (std::size_t channel = 0; channel < kCodecChannels; ++channel)
      rows.push_back(std::sin(static_cast<float>(static_cast<std::size_t>(token) + channel)));
  return rows;
}

class Slots : public ::testing::Test {
 protected:
  Slots() {
    model_.d_model = kCodecChannels;
    model_.vocabulary = 64;
  }
  /// Layers 0 and 1 share rows, layer 2 is not coded.
  SlotCoder coder(TransformForm form = TransformForm::kStorage) {
    config_.emplace(test::write_codec_config(folder_, codec_group(form)), 1, [](const auto&...) {});
    return {.config = *config_, .model = model_, .model_sha256 = "m", .threads = 1, .inputs = inputs_of};
  }
  /// Returns the state that a slot's file gives.
  UnpackedState restored(const PackedSlot& slot, const SlotCoder& coder) const {
    std::filesystem::remove(folder_ / "slot");
    write_packed(folder_ / "slot", slot);
    return unpack_state(read_packed(folder_ / "slot"), coder, "slot");
  }
  static float value(const StateRows& rows, std::size_t at) {
    std::uint16_t half = 0;
    std::memcpy(&half, rows.bytes.data() + 2 * at, 2);
    return f16_to_f32(half);
  }
  /// Returns the root mean squared difference of values [first, end).
  static double difference(const StateRows& a, const StateRows& b, std::size_t first, std::size_t end) {
    double sum = 0;
    for (std::size_t n = first; n < end; ++n) sum += std::pow(value(a, n) - value(b, n), 2);
    return std::sqrt(sum / static_cast<double>(end - first));
  }

  TemporaryDirectory folder_;
  ModelConfig model_ = codec_model();
  std::optional<ConfigCodec> config_;
};

TEST_F(Slots, CodedTokensAreNearAndOthersAreEqual) {
  for (const TransformForm form : {TransformForm::kStorage, TransformForm::kRandomAccess}) {
    const SlotCoder with = coder(form);
    const TestState made = random_state(kTokens, 3, kRow);
    const PackedSlot slot = pack_state(made.state, with, "state");
    const UnpackedState back = restored(slot, with);
    EXPECT_EQ(back.state.tokens, made.state.tokens);
    ASSERT_EQ(back.state.caches.size(), 1U);
    EXPECT_EQ(back.state.caches[0].positions, made.state.caches[0].positions);
    for (std::size_t layer = 0; layer < 3; ++layer) {
      const StateLayer &found = back.state.caches[0].layers[layer], &given = made.state.caches[0].layers[layer];
      const std::size_t coded = layer < 2 ? (kTokens - kRecent) * kRow : 0, all = kTokens * kRow;
      for (const auto& [a, b] : {std::pair(found.keys, given.keys), std::pair(found.values, given.values)}) {
        EXPECT_EQ(difference(a, b, coded, all), 0) << layer;
        if (layer == 2) continue;
        EXPECT_GT(difference(a, b, 3 * kRow, coded), 1e-3) << layer;
        EXPECT_LT(difference(a, b, 3 * kRow, coded), form == TransformForm::kStorage ? 0.5 : 0.7) << layer;
        EXPECT_LT(difference(a, b, 0, 3 * kRow), 1e-3) << "sinks";
      }
    }
  }
}

TEST_F(Slots, TheStreamIsTheCodecs) {
  const SlotCoder with = coder();
  const TestState made = random_state(kTokens, 3, kRow);
  const PackedSlot slot = pack_state(made.state, with, "state");
  const auto stream = slot.parts.at("stream.0").bytes;
  const kvs_codec_stream content = config_->of_stream(stream).inspect(stream);
  EXPECT_EQ(content.tokens, kTokens - kRecent);
  EXPECT_EQ(slot.parts.count("stream.1") + slot.parts.count("stream.2"), 0U);
  EXPECT_EQ(slot.parts.at("keys.0").shape, (std::vector<std::uint64_t>{kRecent, kRow}));
  EXPECT_EQ(slot.parts.at("values.2").shape, (std::vector<std::uint64_t>{kTokens, kRow}));
}

/// The same values under another order of cells give the same streams.
TEST_F(Slots, CellsMayHaveAnyOrder) {
  const SlotCoder with = coder();
  const TestState made = random_state(kTokens, 3, kRow);
  TestState shuffled = made;
  std::vector<std::size_t> cells(kTokens);
  for (std::size_t n = 0; n < kTokens; ++n) cells[n] = n;
  std::mt19937 random(3);
  std::shuffle(cells.begin(), cells.end(), random);
  StateCache& cache = shuffled.state.caches[0];
  for (std::size_t cell = 0; cell < kTokens; ++cell) cache.positions[cell] = static_cast<std::int32_t>(cells[cell]);
  for (std::size_t n = 0; n < shuffled.rows.size(); ++n) {
    for (std::size_t cell = 0; cell < kTokens; ++cell)
      std::memcpy(shuffled.rows[n].data() + 2 * cell * kRow, made.rows[n].data() + 2 * cells[cell] * kRow, 2 * kRow);
    StateLayer& layer = cache.layers[n / 2];
    (n % 2 == 0 ? layer.keys : layer.values).bytes = shuffled.rows[n];
  }
  EXPECT_EQ(pack_state(shuffled.state, with, "state").parts.at("stream.0").bytes,
            pack_state(made.state, with, "state").parts.at("stream.0").bytes);
}

TEST_F(Slots, TransposedValuesGiveTheSameStreamsAndComeBackTransposed) {
  const SlotCoder with = coder();
  const TestState made = random_state(kTokens, 3, kRow);
  TestState turned = made;
  turned.state.caches[0].transposed = true;
  for (std::size_t n = 1; n < made.rows.size(); n += 2) {
    for (std::size_t cell = 0; cell < kTokens; ++cell)
      for (std::size_t of_cell = 0; of_cell < kRow; ++of_cell)
        std::memcpy(turned.rows[n].data() + 2 * (of_cell * kTokens + cell),
                    made.rows[n].data() + 2 * (cell * kRow + of_cell), 2);
    turned.state.caches[0].layers[n / 2].values.bytes = turned.rows[n];
  }
  const PackedSlot plain = pack_state(made.state, with, "state"), slot = pack_state(turned.state, with, "state");
  EXPECT_EQ(slot.parts.at("stream.0").bytes, plain.parts.at("stream.0").bytes);
  const UnpackedState a = restored(slot, with), b = restored(plain, with);
  EXPECT_TRUE(a.state.caches[0].transposed);
  for (std::size_t cell = 0; cell < kTokens; ++cell)
    for (std::size_t of_cell = 0; of_cell < kRow; ++of_cell)
      ASSERT_EQ(value(a.state.caches[0].layers[0].values, of_cell * kTokens + cell),
                value(b.state.caches[0].layers[0].values, cell * kRow + of_cell));
}

/// ggml stores rotate-half order's channels c and c + n/2 at 2c and 2c + 1.
TEST_F(Slots, KeysOfAdjacentPairsAreReordered) {
  const TestState made = random_state(kTokens, 3, kRow);
  TestState paired = made;
  for (std::size_t n = 0; n < made.rows.size(); n += 2) {
    for (std::size_t at = 0; at < kTokens * kRow; ++at) {
      const std::size_t channel = at % 32, half = 16;
      const std::size_t to = at - channel + (channel < half ? 2 * channel : 2 * (channel - half) + 1);
      std::memcpy(paired.rows[n].data() + 2 * to, made.rows[n].data() + 2 * at, 2);
    }
    paired.state.caches[0].layers[n / 2].keys.bytes = paired.rows[n];
  }
  const PackedSlot plain = pack_state(made.state, coder(), "state");
  model_.adjacent_pairs = true;
  const SlotCoder with = coder();
  const PackedSlot slot = pack_state(paired.state, with, "state");
  EXPECT_EQ(slot.parts.at("stream.0").bytes, plain.parts.at("stream.0").bytes);
  EXPECT_EQ(slot.parts.at("keys.2").bytes, plain.parts.at("keys.2").bytes);
  EXPECT_TRUE(std::ranges::equal(restored(slot, with).state.caches[0].layers[2].keys.bytes, paired.rows[4]));
}

TEST_F(Slots, AShortSlotStaysAsItIs) {
  const SlotCoder with = coder();
  const TestState made = random_state(kRecent, 3, kRow);
  const PackedSlot slot = pack_state(made.state, with, "state");
  EXPECT_FALSE(slot.parts.contains("stream.0"));
  EXPECT_TRUE(std::ranges::equal(restored(slot, with).state.caches[0].layers[0].keys.bytes, made.rows[0]));
}

TEST_F(Slots, LayersWithAWindowHaveTheirOwnTokens) {
  model_.layer[0].attention.window = model_.layer[2].attention.window = 40;
  config_.emplace(test::write_codec_config(folder_, codec_layer(TransformRows::kLayer)), 1, [](const auto&...) {});
  const SlotCoder with{.config = *config_, .model = model_, .model_sha256 = "m", .threads = 1, .inputs = inputs_of};
  TestState made = random_state(kTokens, 1, kRow);
  made.rows.reserve(6);
  StateCache& windowed = made.state.caches.emplace_back();
  for (std::size_t token = 30; token < kTokens; ++token) windowed.positions.push_back(static_cast<std::int32_t>(token));
  windowed.layers.resize(2);
  test::fill_rows(made, windowed, kRow);
  const PackedSlot slot = pack_state(made.state, with, "state");
  const UnpackedState back = restored(slot, with);
  ASSERT_EQ(back.state.caches.size(), 2U);
  EXPECT_EQ(back.state.caches[1].positions, windowed.positions);
  EXPECT_LT(difference(back.state.caches[0].layers[0].keys, made.state.caches[0].layers[0].keys, 0, kTokens * kRow),
            0.5);
  EXPECT_TRUE(std::ranges::equal(back.state.caches[1].layers[1].values.bytes, made.rows[5]));
  const SlotCoder grouped = coder();
  expect_error(ErrorCode::kUnsupported, "in two caches", [&] { pack_state(made.state, grouped, "state"); });
}

TEST_F(Slots, RefusesStatesOfOtherModels) {
  const SlotCoder with = coder();
  const auto refused = [&](const TestState& made, ErrorCode code, const char* part) {
    expect_error(code, part, [&] { pack_state(made.state, with, "state"); });
  };
  refused(random_state(5, 2, kRow), ErrorCode::kConflict, "found 2 layers, expected 3 as the model has");
  refused(random_state(5, 3, 32), ErrorCode::kConflict, "layer 0: found 32 values a cell, expected 64");
  TestState gap = random_state(kTokens, 3, kRow);
  gap.state.caches[0].positions[9] = 99;
  refused(gap, ErrorCode::kUnsupported, "position: found 10, expected 9");
  gap.state.caches[0].positions[9] = -1;
  refused(gap, ErrorCode::kUnsupported, "position: found -1, expected 0");
  TestState few = random_state(kTokens, 3, kRow);
  few.state.tokens.resize(20);
  refused(few, ErrorCode::kInput, "tokens: found 20 for 54 positions");
  TestState types = random_state(kTokens, 3, kRow);
  types.state.caches[0].layers[1].keys.type = DType::kBF16;
  refused(types, ErrorCode::kUnsupported, "layer 1: found bf16 keys and f16 values");
  types.state.caches[0].layers[1].values.type = DType::kBF16;
  refused(types, ErrorCode::kUnsupported, "found bf16 and f16 in layers that share rows");
  TestState ids = random_state(kTokens, 3, kRow);
  ids.state.tokens[9] = 64;
  refused(ids, ErrorCode::kInput, "tokens: found id 64, expected 0 to 63");
  TestState far = random_state(kTokens, 3, kRow);
  for (std::int32_t& position : far.state.caches[0].positions) position += 1 << 24;
  refused(far, ErrorCode::kInput, "first_position: found 16777216");
  TestState infinite = random_state(kTokens, 3, kRow);
  infinite.rows[4][1] = std::byte{0x7c};
  infinite.state.caches[0].layers[2].keys.bytes = infinite.rows[4];
  refused(infinite, ErrorCode::kData, "state: layer 2: found NaN, infinity or a value beyond f16");
  TestState caches = random_state(kTokens, 3, kRow);
  caches.state.caches.push_back(caches.state.caches[0]);
  refused(caches, ErrorCode::kConflict, "found 2 caches, expected 1");
  model_.d_model = 16;
  refused(random_state(kTokens, 3, kRow), ErrorCode::kConflict, "prediction: found 5 channels, expected 16");
}

TEST_F(Slots, RefusesDamagedSlots) {
  const SlotCoder with = coder();
  const PackedSlot slot = pack_state(random_state(kTokens, 3, kRow).state, with, "state");
  const auto refused = [&](const auto& damage, ErrorCode code, const char* part) {
    PackedSlot damaged = slot;
    damage(damaged);
    expect_error(code, part, [&] { restored(damaged, with); });
  };
  refused([](PackedSlot& s) { s.head.tensors_sha256[0] ^= 1; }, ErrorCode::kConflict, "another config");
  refused([](PackedSlot& s) { s.head.caches.clear(); }, ErrorCode::kInput, "caches: found 0");
  refused([](PackedSlot& s) { s.head.caches[0].tokens = 0; }, ErrorCode::kInput, "tokens: found 0");
  refused([](PackedSlot& s) { s.head.caches[0].tokens = 1U << 30; }, ErrorCode::kInput, "tokens: found 1073741824");
  refused([](PackedSlot& s) { s.head.caches[0].first_position = 1U << 24; }, ErrorCode::kInput, "first_position");
  refused([](PackedSlot& s) { s.head.caches[0].streams = 1U << 31; }, ErrorCode::kInput, "streams");
  refused([](PackedSlot& s) { s.head.caches[0].layers.pop_back(); }, ErrorCode::kConflict,
          "layers: found 2, expected the model's 3");
  refused([](PackedSlot& s) { s.head.caches[0].layers[0].type = "q8_0"; }, ErrorCode::kInput, "found q8_0");
  refused([](PackedSlot& s) { s.head.caches[0].tokens += 1; }, ErrorCode::kData, "stream: tokens: found 54");
  refused([](PackedSlot& s) { s.parts.erase("keys.2"); }, ErrorCode::kInput, "tensor keys.2: found none");
  refused([](PackedSlot& s) { s.parts.erase("stream.0"); }, ErrorCode::kInput, "tensor stream.0: found none");
  refused([](PackedSlot& s) { s.parts["stream.0"].type = "I8"; }, ErrorCode::kInput, "found I8 [");
  refused([](PackedSlot& s) { s.parts["stream.0"].bytes[30] ^= std::byte{1}; }, ErrorCode::kData, "stream");
  refused([](PackedSlot& s) { s.tokens.resize(3); }, ErrorCode::kInput, "tokens: found 3");
  refused([](PackedSlot& s) { s.head.state_version = 2; }, ErrorCode::kUnsupported, "state_version: found 2");
  refused([](PackedSlot& s) { s.head.model_sha256 = "n"; }, ErrorCode::kConflict, "/model_sha256: found n, expected m");
  refused([](PackedSlot& s) { s.head.caches[0].tokens = 1U << 23; }, ErrorCode::kData, "tokens: found 54");
  refused([](PackedSlot& s) { s.parts["x"] = s.parts["keys.2"]; }, ErrorCode::kInput, "tensor x");
  refused([](PackedSlot& s) { s.head.format = "kvspectrum-slot/9"; }, ErrorCode::kUnsupported, "kvspectrum-slot/9");
}

TEST_F(Slots, ADamagedByteIsFound) {
  const SlotCoder with = coder();
  write_packed(folder_ / "slot", pack_state(random_state(kTokens, 3, kRow).state, with, "state"));
  const std::string bytes = test::read_all(folder_ / "slot");
  const std::size_t tensors = bytes.find("{\"format\"");
  std::mt19937 random(4);
  for (int run = 0; run < 300; ++run) {
    std::string damaged = bytes;
    const std::size_t at = tensors + random() % (bytes.size() - tensors);
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    expect_error(ErrorCode::kInput, ": the file is damaged", [&] { read_packed(folder_.write("damaged", damaged)); });
  }
}

}  // namespace
}  // namespace kvs
