// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>

#include "kernels/spectral_ops.h"
#include "tests/kernels/support.h"

namespace kvs::test {

/// Attention of a few tokens over a spectrum, over rows, and over themselves.
struct SpectrumCase {
  std::size_t query_heads, kv_heads, head_dim, tokens;
  std::size_t past;                         // rows
  std::size_t samples, compressed;          // of the grid, and tokens in it
  std::vector<std::uint32_t> bins, bins_v;  // of keys and of values
  float softcap = 0;
};

inline std::ostream& operator<<(std::ostream& out, const SpectrumCase& c) {
  return out << c.query_heads << " heads of " << c.head_dim << " on " << c.kv_heads << ", " << c.tokens
             << " tokens after " << c.compressed << " of " << c.samples << " samples in " << c.bins.size()
             << " bins of keys, " << c.bins_v.size() << " of values, and " << c.past << " rows, cap " << c.softcap;
}

/// Odd and even grids, full and not, with and without the bins that are their own mirror images; more than one token;
/// values in the same bins as keys, in more bins, in fewer, and in others.
inline std::vector<SpectrumCase> spectrum_cases() {
  return {{.query_heads = 1,
           .kv_heads = 1,
           .head_dim = 2,
           .tokens = 1,
           .past = 0,
           .samples = 1,
           .compressed = 1,
           .bins = {0},
           .bins_v = {0}},
          {.query_heads = 6,
           .kv_heads = 2,
           .head_dim = 20,
           .tokens = 1,
           .past = 5,
           .samples = 45,
           .compressed = 45,
           .bins = {0, 1, 2, 3, 5, 8, 9, 13, 22},
           .bins_v = {0}},
          {.query_heads = 4,
           .kv_heads = 2,
           .head_dim = 34,
           .tokens = 3,
           .past = 40,
           .samples = 64,
           .compressed = 41,
           .bins = {0, 4},
           .bins_v = {0, 4, 5, 31, 32}},
          {.query_heads = 3,
           .kv_heads = 3,
           .head_dim = 16,
           .tokens = 8,
           .past = 1,
           .samples = 100,
           .compressed = 100,
           .bins = {7, 8, 50},
           .bins_v = {0, 3, 8, 49},
           .softcap = 2}};
}

/// Random states as some bins in a backend's memory.
struct Spectrum {
  Spectrum(Backend& backend, const SpectrumCase& c, const std::vector<std::uint32_t>& numbers, std::uint32_t seed)
      : bins(backend, {numbers.size()}),
        sums(backend, {c.kv_heads, numbers.size(), 2, c.head_dim}),
        samples(c.samples) {
    backend.upload(bins.view().data(), numbers.data(), bins.bytes());
    const auto values = random_values(c.kv_heads * c.compressed * c.head_dim, seed);
    backend.make_spectral_ops()->analyze(uploaded<3>(backend, values, {c.kv_heads, c.compressed, c.head_dim}).view(),
                                         grid(), sums.view());
  }
  BinGrid grid() const { return {bins.view(), samples}; }
  BinnedStates view() const { return {sums.view(), grid()}; }

  BackendTensor<std::uint32_t, 1> bins;
  BackendTensor<float, 4> sums;
  std::size_t samples;
};

/// @param as_rows  the spectrum's tokens are first transformed back and precede the other rows
inline std::vector<float> attend_spectrum(Backend& backend, const SpectrumCase& c, bool as_rows) {
  const Spectrum spectrum_k(backend, c, c.bins, 1), spectrum_v(backend, c, c.bins_v, 2);
  const auto random = [&](std::size_t heads, std::size_t tokens, std::uint32_t seed) {
    return random_values(heads * tokens * c.head_dim, seed);
  };
  const auto upload = [&](const std::vector<float>& values, std::size_t heads, std::size_t tokens) {
    return uploaded<4>(backend, values, {1, heads, tokens, c.head_dim});
  };
  const std::size_t before = as_rows ? c.compressed : 0;
  const auto past = [&](const Spectrum& spectrum, std::uint32_t seed) {
    const BackendTensor<float, 3> tokens(backend, {c.kv_heads, c.compressed, c.head_dim});
    backend.make_spectral_ops()->synthesize(spectrum.sums.view(), spectrum.grid(), tokens.view());
    const std::vector<float> middle = download(backend, tokens.view()), others = random(c.kv_heads, c.past, seed);
    std::vector<float> rows;
    for (std::size_t head = 0; head < c.kv_heads; ++head)
      for (const auto& [values, count] : {std::pair(&middle, before), std::pair(&others, c.past)}) {
        const auto first = values->begin() + static_cast<std::ptrdiff_t>(head * count * c.head_dim);
        rows.insert(rows.end(), first, first + static_cast<std::ptrdiff_t>(count * c.head_dim));
      }
    return upload(rows, c.kv_heads, before + c.past);
  };
  const auto past_k = past(spectrum_k, 3), past_v = past(spectrum_v, 4);
  const auto q = upload(random(c.query_heads, c.tokens, 5), c.query_heads, c.tokens);
  const auto k = upload(random(c.kv_heads, c.tokens, 6), c.kv_heads, c.tokens),
             v = upload(random(c.kv_heads, c.tokens, 7), c.kv_heads, c.tokens);
  AttentionInput in{.q = q.view(), .k = k.view(), .v = v.view(), .softcap = c.softcap};
  if (before + c.past > 0) in.past = {past_k.view(), past_v.view(), before + c.past};
  const OwnedOperand out(backend, c.tokens, c.query_heads * c.head_dim);
  if (as_rows)
    backend.attention(in, out);
  else
    backend.spectrum_attention(in, {spectrum_k.view(), spectrum_v.view(), c.compressed}, out);
  return out.values();
}

}  // namespace kvs::test
