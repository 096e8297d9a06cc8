// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/kernels/spectrum.h"

namespace kvs::test {
namespace {

class SpectrumAttention : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, SpectrumAttention, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& type) { return type_name(type.param); });

TEST_P(SpectrumAttention, IsAttentionOverTheTokensThatItGivesBack) {
  for (const int threads : {1, 3}) {
    const auto backend = make_backend("cpu", GetParam(), threads);
    for (const SpectrumCase& c : spectrum_cases()) {
      const auto found = attend_spectrum(*backend, c, false), expected = attend_spectrum(*backend, c, true);
      ASSERT_EQ(found.size(), expected.size());
      // Scores below 34, off by 34 roundings and the roundings of an FFT of at most 100 samples; bf16 rounds rows and
      // result.
      const double tolerance = GetParam() == DType::kF32 ? 1e-5 : 0.05;
      for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], tolerance) << c << ", " << i;
    }
  }
}

TEST(SpectrumAttentionInput, RefusesWhatItCannotRead) {
  const auto backend = make_backend("cpu", DType::kF32, 1);
  SpectrumCase c = spectrum_cases()[1];
  const Spectrum keys(*backend, c, c.bins, 1), values(*backend, c, c.bins_v, 2);
  const auto row = uploaded<4>(*backend, std::vector<float>(c.kv_heads * c.head_dim), {1, c.kv_heads, 1, c.head_dim});
  const OwnedOperand out(*backend, 1, c.kv_heads * c.head_dim);
  const AttentionInput in{.q = row.view(), .k = row.view(), .v = row.view()};
  KeySpectrum spectrum{keys.view(), values.view(), c.compressed};
  const auto check = [&] { check_spectrum_attention(in, spectrum, out); };
  EXPECT_NO_THROW(check());
  for (auto* const states : {&spectrum.k, &spectrum.v}) {
    const BinnedStates fitting = *states;
    states->grid.bins = (states == &spectrum.k ? values : keys).bins.view();
    EXPECT_THROW(check(), Error);  // other bins than sums
    *states = fitting;
    ++states->grid.samples;
    EXPECT_THROW(check(), Error);  // other samples than the other's
    *states = fitting;
  }
  spectrum.tokens = c.samples + 1;
  EXPECT_THROW(check(), Error);
  c.tokens = kMaxQueryRows / 3 + 1;
  EXPECT_THROW(attend_spectrum(*backend, c, false), Error);
}

}  // namespace
}  // namespace kvs::test
