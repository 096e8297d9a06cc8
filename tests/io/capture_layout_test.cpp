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

}  // namespace
}  // namespace kvs::test
