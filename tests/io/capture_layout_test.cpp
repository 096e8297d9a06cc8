// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/capture_layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/error.h"
#include "tests/io/capture_fixture.h"

namespace kvs::test {
namespace {

/// The header with one change is refused, and the error has the attribute's name.
void expect_refused(const std::string& attribute, const std::function<void(CaptureHeader&)>& change) {
  CaptureHeader header = small_header();
  change(header);
  expect_error(ErrorCode::kInput, attribute, [&] { layout_of(header, "x.h5"); });
}

TEST(CaptureLayout, RopesMapMustFitHeadsLayersAndItself) {
  EXPECT_NO_THROW(layout_of(small_header(), "x.h5"));
  expect_refused("rotary_dim", [](CaptureHeader& header) { header.rotary_dim = 8; });  // of heads of 6
  expect_refused("rotary_dim", [](CaptureHeader& header) { header.rotary_dim = 3; });
  expect_refused("rotary_dim", [](CaptureHeader& header) { header.rotary_dim = 0; });
  expect_refused("rope_factors", [](CaptureHeader& header) { header.rope_factors.clear(); });
  expect_refused("rope_factors", [](CaptureHeader& header) { header.rope_factors = {0}; });
  expect_refused("rope_factors", [](CaptureHeader& header) { header.rope_factors.assign(9, 1.0); });
  expect_refused("rope_kinds", [](CaptureHeader& header) { header.rope_kinds.pop_back(); });
  expect_refused("rope_kinds", [](CaptureHeader& header) { header.rope_kinds[5] = 1; });
  expect_refused("rope_kinds", [](CaptureHeader& header) { header.rope_kinds[5] = -1; });
  expect_refused("rope_frequencies", [](CaptureHeader& header) { header.rope_frequencies.pop_back(); });
  expect_refused("rope_frequencies", [](CaptureHeader& header) { header.rope_frequencies[0] = HUGE_VAL; });
}

TEST(CaptureLayout, HeadersOfSeveralKindsOfRopeSurviveJson) {
  CaptureHeader header = small_header();
  header.rotary_dim = 4;
  header.rope_kinds[31] = 1;
  header.rope_factors = {1, 1.25};
  header.rope_frequencies = {1, 0.1, 1, 0.2};
  EXPECT_NO_THROW(layout_of(header, "x.h5"));
  const Json json = parse_json(dump_json(header_to_json(header), -1), "header");
  const CaptureHeader again = header_from_json(JsonCursor(json, "header"));
  EXPECT_EQ(header_to_json(again), header_to_json(header));
  EXPECT_EQ(again.rope_kinds, header.rope_kinds);
  EXPECT_EQ(again.rope_factors, header.rope_factors);
}

TEST(CaptureLayout, LayersHaveTheirOwnSizes) {
  const CaptureHeader header = mixed_header();
  const CaptureLayout layout = layout_of(header, "x.h5");
  ASSERT_EQ(layout.datasets.size(), 2U + 2 * 3);
  const auto shape_at = [&](std::size_t index) { return layout.datasets[index].shape; };
  EXPECT_EQ(shape_at(2), (std::vector<std::uint64_t>{4, 17, 6}));  // q_pre of layer 1
  EXPECT_EQ(shape_at(4), (std::vector<std::uint64_t>{2, 17, 6}));
  EXPECT_EQ(shape_at(7), (std::vector<std::uint64_t>{1, 17, 8}));  // v of layer 3
  EXPECT_EQ(capture_version(header), 2);
  EXPECT_EQ(capture_version(small_header()), 1);
  EXPECT_EQ(header.largest_state(), 4U * 17 * 8);
  const Json json = parse_json(dump_json(header_to_json(header), -1), "header");
  EXPECT_EQ(header_to_json(header_from_json(JsonCursor(json, "header"))), header_to_json(header));
}

TEST(CaptureLayout, SizesMustFitTheLayersThatHaveACache) {
  const auto refused = [](const std::string& attribute, const std::function<void(CaptureHeader&)>& change) {
    CaptureHeader header = mixed_header();
    change(header);
    expect_error(ErrorCode::kInput, attribute, [&] { layout_of(header, "x.h5"); });
  };
  EXPECT_NO_THROW(layout_of(mixed_header(), "x.h5"));
  refused("kv_heads", [](CaptureHeader& header) { header.kv_heads = LayerSizes({0, 2, 0}); });
  refused("kv_heads", [](CaptureHeader& header) { header.kv_heads = LayerSizes({0, 2, 0, 0}); });
  refused("head_dim", [](CaptureHeader& header) { header.head_dim = LayerSizes({0, 6, 0, 1 << 17}); });
  refused("layers", [](CaptureHeader& header) { header.layers = {0, 1}; });
  refused("layers_without_cache", [](CaptureHeader& header) { header.layers_without_cache = {2, 0}; });
  refused("layers_without_cache", [](CaptureHeader& header) { header.layers_without_cache = {0, 4}; });
  refused("rotary_dim", [](CaptureHeader& header) { header.rotary_dim = LayerSizes({8, 6, 6}); });
  refused("rotary_dim", [](CaptureHeader& header) { header.rope_kinds = {0, 0, 0, 0}; });  // 8 of 6 channels
  refused("rope_frequencies", [](CaptureHeader& header) { header.rope_frequencies.pop_back(); });
}

}  // namespace
}  // namespace kvs::test
