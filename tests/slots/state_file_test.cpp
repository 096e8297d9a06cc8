// SPDX-License-Identifier: Apache-2.0
// llama.cpp's state files: the layout byte by byte, what was written is read again, and refusals.
#include "export/slots/state_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/slots/state.h"

namespace kvs {
namespace {

using test::expect_error;
using test::fill_rows;
using test::parsed;
using test::random_state;
using test::state_bytes;
using test::TemporaryDirectory;
using test::TestState;

/// Replaces an integer of 32 bits.
std::string with_word(std::string bytes, std::size_t at, std::uint32_t word) {
  std::memcpy(bytes.data() + at, &word, sizeof word);
  return bytes;
}

void expect_equal(const StateFile& found, const StateFile& expected) {
  EXPECT_EQ(found.tokens, expected.tokens);
  ASSERT_EQ(found.caches.size(), expected.caches.size());
  for (std::size_t n = 0; n < found.caches.size(); ++n) {
    const StateCache &a = found.caches[n], &b = expected.caches[n];
    EXPECT_EQ(a.positions, b.positions);
    EXPECT_EQ(std::tuple(a.streams, a.stream, a.sequence, a.transposed),
              std::tuple(b.streams, b.stream, b.sequence, b.transposed));
    ASSERT_EQ(a.layers.size(), b.layers.size());
    for (std::size_t layer = 0; layer < a.layers.size(); ++layer) {
      const auto expect_rows = [](const StateRows& one, const StateRows& other) {
        EXPECT_EQ(one.type, other.type);
        EXPECT_EQ(one.values, other.values);
        EXPECT_TRUE(std::ranges::equal(one.bytes, other.bytes));
      };
      expect_rows(a.layers[layer].keys, b.layers[layer].keys);
      expect_rows(a.layers[layer].values, b.layers[layer].values);
    }
  }
}

TEST(SlotState, HasLlamaCppsLayout) {
  const TemporaryDirectory folder;
  TestState made = random_state(2, 1, 4);
  made.state.tokens = {5, 9};
  made.state.caches[0].sequence = 3;
  std::string expected;
  const auto words = [&](std::initializer_list<std::uint32_t> all) {
    for (const std::uint32_t word : all) expected.append(reinterpret_cast<const char*>(&word), 4);
  };
  const auto rows = [&](std::size_t n) {
    expected.append(reinterpret_cast<const char*>(made.rows[n].data()), made.rows[n].size());
  };
  words({0x67677371, 3, 2, 5, 9});  // kind, version, tokens
  words({1, 2, 0, 1, 3, 1, 1, 3});  // streams, cells: position, sequences, sequence
  words({0, 1, 1, 8, 0});           // transposed, layers, type, bytes of a row in 64 bits
  rows(0);
  words({1, 8, 0});
  rows(1);
  EXPECT_EQ(state_bytes(folder, made.state), expected);
  made.state.caches[0].transposed = true;
  const std::string transposed = state_bytes(folder, made.state);
  expected.resize(expected.size() - 12 - 16);
  expected = with_word(expected, 52, 1);
  words({1, 2, 4});  // type, bytes of a value, values of a cell
  rows(1);
  EXPECT_EQ(transposed, expected);
}

TEST(SlotState, WhatWasWrittenIsRead) {
  const TemporaryDirectory folder;
  for (const bool transposed : {false, true}) {
    TestState made = random_state(5, 3, 8, transposed);
    expect_equal(parsed(state_bytes(folder, made.state)), made.state);
    made.state.caches[0].streams = 4;
    made.state.caches[0].stream = 2;
    expect_equal(parsed(state_bytes(folder, made.state)), made.state);
  }
}

TEST(SlotState, AModelWithWindowsHasTwoCaches) {
  const TemporaryDirectory folder;
  TestState made = random_state(5, 2, 8);
  made.rows.reserve(12);
  StateCache& windowed = made.state.caches.emplace_back();
  windowed.positions = {3, 4, 2};
  windowed.layers.resize(3);
  fill_rows(made, windowed, 8);
  expect_equal(parsed(state_bytes(folder, made.state)), made.state);
}

TEST(SlotState, OtherFilesAreRefusedByName) {
  const TemporaryDirectory folder;
  const std::string bytes = state_bytes(folder, random_state(2, 1, 4).state);
  expect_error(ErrorCode::kInput, "found the state of a whole context",
               [&] { parsed(with_word(bytes, 0, 0x6767736e)); });
  expect_error(ErrorCode::kInput, "found a packed slot",
               [&] { parsed("\x10" + std::string(7, '\0') + R"({"a": 1}xxxxxxxx)"); });
  expect_error(ErrorCode::kUnsupported, "byte 48: sequence: found 1, expected 0 as in the cells before",
               [&] { parsed(with_word(bytes, 48, 1)); });
  expect_error(ErrorCode::kInput, "byte 52: transposed: found 7, expected 0 or 1",
               [&] { parsed(with_word(bytes, 52, 7)); });
  expect_error(ErrorCode::kInput, "byte 20: number of streams: found 300, expected 1 to 256",
               [&] { parsed(with_word(bytes, 20, 300)); });
  expect_error(ErrorCode::kInput, "found a file of another kind", [&] { parsed(with_word(bytes, 0, 1)); });
  expect_error(ErrorCode::kUnsupported, "byte 4: version: found 2, expected 3",
               [&] { parsed(with_word(bytes, 4, 2)); });
  expect_error(ErrorCode::kUnsupported, "byte 60: type, by ggml's number: found 8",
               [&] { parsed(with_word(bytes, 60, 8)); });
  expect_error(ErrorCode::kInput, "found 9, expected whole values", [&] { parsed(with_word(bytes, 64, 9)); });
  expect_error(ErrorCode::kUnsupported, "byte 32: sequences of a cell: found 2, expected 1",
               [&] { parsed(with_word(bytes, 32, 2)); });
  expect_error(ErrorCode::kUnsupported, "found 1 more bytes", [&] { parsed(bytes + bytes.substr(20) + "x"); });
  expect_error(ErrorCode::kInput, "number of cells: found none",
               [&] { parsed(with_word(bytes.substr(0, 28), 24, 0)); });
}

TEST(SlotState, EveryTruncationAndLargeCountIsRefused) {
  const TemporaryDirectory folder;
  const std::string bytes = state_bytes(folder, random_state(3, 2, 4, true).state);
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_THROW(parsed(bytes.substr(0, size)), Error) << size;
  for (std::size_t at = 8; at + 4 <= bytes.size(); at += 4)
    for (const std::uint32_t word : {0x7fffffffU, 0xffffffffU, 0x80000000U}) {
      try {
        parsed(with_word(bytes, at, word));
      } catch (const Error&) {  // refused, or a value that any integer may have
      }
    }
}

TEST(SlotState, DamagedBytesAreRefusedOrRead) {
  const TemporaryDirectory folder;
  const std::string bytes = state_bytes(folder, random_state(3, 2, 4).state);
  std::mt19937 random(1);
  int refused = 0;
  for (int run = 0; run < 2000; ++run) {
    std::string damaged = bytes;
    for (int n = 0; n < 3; ++n) damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      parsed(damaged);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace kvs
