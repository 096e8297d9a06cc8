// SPDX-License-Identifier: Apache-2.0
// Coded rows on CUDA: the bytes of the CPU, and attention over the codes as over the decoded values.
#include "tests/kernels/cuda_support.h"
#include "tests/kernels/held_rows.h"

namespace kvs::test {
namespace {

class CudaRows : public BothDevices {};

TEST_F(CudaRows, BytesAndValuesAreThoseOfTheCpu) {
  constexpr std::size_t kHeads = 2, kRows = 32, kWidth = 64;
  auto values = random_values(kHeads * kRows * kWidth, 7);
  std::fill_n(values.begin(), kWidth, 0.0F);            // a row of zeros
  std::fill_n(values.begin() + kWidth, kWidth, -2.5F);  // a constant one
  for (const RowFormat& format : all_formats()) {
    const std::vector<float> scales = format.is_scaled() ? std::vector<float>{0.003F, 0.5F} : std::vector<float>{};
    const auto [cpu, cuda] = both([&](Backend& backend) {
      const CodedRows rows(backend, format, values, kHeads, kWidth, scales);
      return std::pair(rows.bytes(), download(backend, rows.decoded().view()));
    });
    EXPECT_EQ(cpu.first, cuda.first) << "kind " << static_cast<int>(format.kind);
    EXPECT_EQ(cpu.second, cuda.second) << "kind " << static_cast<int>(format.kind);
  }
}

TEST_F(CudaRows, AttentionOverTwoPartsOfAPast) {
  constexpr std::size_t kHeads = 2, kRows = 64, kWidth = 64, kEarly = 32;
  const RowFormat keys{.kind = RowKind::kKivi4, .across_tokens = true, .group = 32},
      others{.kind = RowKind::kQ8_0, .hadamard = 64};
  const auto [cpu, cuda] = both([&](Backend& backend) {
    const CodedRows k(backend, keys, random_values(kHeads * kRows * kWidth, 4), kHeads, kWidth),
        v(backend, others, random_values(kHeads * kRows * kWidth, 5), kHeads, kWidth);
    const auto late_k = k.decoded(kEarly), late_v = v.decoded(kRows - 5);
    PastKv past(k.held(), v.held());
    past.k.count = kEarly;
    past.v.count = kRows - 5;
    past.late_k = {late_k.view(), kRows - kEarly};
    past.late_v = {late_v.view(), 5};
    const auto q = uploaded<4>(backend, random_values(4 * kWidth, 1), {1, 4, 1, kWidth}),
               own = uploaded<4>(backend, random_values(kHeads * kWidth, 2), {1, kHeads, 1, kWidth});
    const OwnedOperand out(backend, 1, 4 * kWidth);
    backend.attention({.q = q.view(), .k = own.view(), .v = own.view(), .past = past, .scale = 0.2F}, out);
    return out.values();
  });
  expect_close(cuda, cpu, 2e-6);
}

TEST_F(CudaRows, KeysAreRotatedAtTheirSlots) {
  constexpr std::size_t kRows = 40, kWidth = 64, kChunks = 32;
  std::vector<float> cosine, sine;
  for (std::size_t i = 0; i < kRows * kChunks; ++i) {
    cosine.push_back(std::cos(0.01F * static_cast<float>(i)));
    sine.push_back(std::sin(0.01F * static_cast<float>(i)));
  }
  const auto [cpu, cuda] = both([&](Backend& backend) {
    const auto cosines = uploaded<2>(backend, cosine, {kRows, kChunks}),
               sines = uploaded<2>(backend, sine, {kRows, kChunks});
    const CodedRows rows(backend, {.kind = RowKind::kQ5_1}, random_values(kRows * kWidth, 4), 1, kWidth);
    PastKv past(rows.held(), rows.held());
    past.v.format = rows.held().format;
    past.slots = {cosines.view(), sines.view()};
    const auto q = uploaded<4>(backend, random_values(9 * kWidth, 1), {1, 1, 9, kWidth}),
               own = uploaded<4>(backend, random_values(9 * kWidth, 2), {1, 1, 9, kWidth});
    const OwnedOperand out(backend, 9, kWidth);
    backend.attention({.q = q.view(), .k = own.view(), .v = own.view(), .past = past, .scale = 0.2F}, out);
    return out.values();
  });
  expect_close(cuda, cpu, 2e-6);
}

}  // namespace
}  // namespace kvs::test
