// SPDX-License-Identifier: Apache-2.0
// Spectra of tokens on both devices: their bins, the inverse transform, and attention over them.
#include "tests/kernels/cuda_support.h"
#include "tests/kernels/spectrum.h"

namespace kvs::test {
namespace {

TEST_F(BothDevices, BinsOfTokensAndTheWayBack) {
  for (const SpectrumCase& c : spectrum_cases()) {
    SCOPED_TRACE(testing::Message() << c);
    const auto [cpu, cuda] = both([&](Backend& backend) {
      const Spectrum spectrum(backend, c, c.bins, 1);
      const auto rows =
          uploaded<3>(backend, random_values(c.kv_heads * 3 * c.head_dim, 8), {c.kv_heads, 3, c.head_dim});
      const auto ops = backend.make_spectral_ops();
      ops->add_sample(rows.view(), 2, c.samples - 1, spectrum.grid(), spectrum.sums.view());
      const BackendTensor<float, 3> tokens(backend, {c.kv_heads, c.compressed, c.head_dim});
      ops->synthesize(spectrum.sums.view(), spectrum.grid(), tokens.view());
      return std::pair(download(backend, spectrum.sums.view()), download(backend, tokens.view()));
    });
    // Sums of at most 100 values below 1 in double, rounded to f32 twice.
    expect_close(cuda.first, cpu.first, 1e-6, 0x1p-22);
    expect_close(cuda.second, cpu.second, 1e-6);
  }
}

using SpectrumOnBothDevices = BothDevicesByType;
INSTANTIATE_TEST_SUITE_P(Types, SpectrumOnBothDevices, testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& type) { return type_name(type.param); });

TEST_P(SpectrumOnBothDevices, AttentionOverASpectrum) {
  for (const SpectrumCase& c : spectrum_cases()) {
    SCOPED_TRACE(testing::Message() << c);
    const auto [cpu, cuda] = both([&](Backend& backend) { return attend_spectrum(backend, c, false); });
    // The bound of SpectrumAttention; both sides round only the result to bf16.
    expect_close(cuda, cpu, 1e-5, 2 * half_step(GetParam()));
  }
}

}  // namespace
}  // namespace kvs::test
