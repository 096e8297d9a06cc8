// SPDX-License-Identifier: Apache-2.0
#include "calibrate/faedkv/token_spectrum.h"

#include <array>

#include "kernels/spectral_ops.h"

namespace kvs::inline calibrate {
namespace {

std::vector<std::uint32_t> bins_of_chunks(std::size_t chunks, const std::vector<std::size_t>& kept,
                                          std::size_t samples) {
  const std::size_t all = bins_of(Transform::kDft, samples);
  std::vector<std::uint32_t> bins;
  for (const std::size_t chunk : kept)
    for (std::size_t bin = first_bin_of(chunk, chunks, all); bin < first_bin_of(chunk + 1, chunks, all); ++bin)
      bins.push_back(static_cast<std::uint32_t>(bin));
  return bins;
}

}  // namespace

CacheBytes TokenSpectrum::bytes() const noexcept {
  constexpr std::size_t kStoredReal = 2;
  CacheBytes bytes;
  for (const States* const states : {&k_, &v_})
    bytes += {.stored = states->sums.view().size() * kStoredReal, .used = states->sums.bytes() + states->bins.bytes()};
  return bytes;
}

void TokenSpectrum::transform(Backend& backend, const TokenRows::Part& rows, std::size_t samples) {
  const auto [members, heads, tokens, head_dim] = rows.k.view().shape();
  samples_ = samples;
  tokens_ = tokens;
  const auto ops = backend.make_spectral_ops();
  for (const auto& [states, x] : {std::pair(&k_, rows.k.view()), std::pair(&v_, rows.v.view())}) {
    const std::vector<std::uint32_t> bins = bins_of_chunks(chunks_, states->kept, samples);
    states->bins = BackendTensor<std::uint32_t, 1>(backend, {bins.size()});
    backend.upload(states->bins.view().data(), bins.data(), states->bins.bytes());
    states->sums = BackendTensor<float, 4>(backend, {heads, bins.size(), 2, head_dim});
    ops->analyze(x.slice(0), grid(*states), states->sums.view());
  }
}

void TokenSpectrum::add(Backend& backend, BackendView<const float, 4> k, BackendView<const float, 4> v, std::size_t row,
                        Full full) {
  if (tokens_ == samples_ && full == Full::kRebuild) {
    transform(backend, restored(backend), 2 * samples_);
  }
  const std::size_t place = tokens_ < samples_ ? tokens_++ : wrapped_++ % samples_;
  const auto ops = backend.make_spectral_ops();
  ops->add_sample(k.slice(0), row, place, grid(k_), k_.sums.view());
  ops->add_sample(v.slice(0), row, place, grid(v_), v_.sums.view());
}

TokenRows::Part TokenSpectrum::restored(Backend& backend) const {
  const std::array<std::size_t, 4> shape{1, k_.sums.view().extent(0), tokens_, k_.sums.view().extent(3)};
  TokenRows::Part rows{BackendTensor<float, 4>(backend, shape), BackendTensor<float, 4>(backend, shape)};
  const auto ops = backend.make_spectral_ops();
  ops->synthesize(k_.sums.view(), grid(k_), rows.k.view().slice(0));
  ops->synthesize(v_.sums.view(), grid(v_), rows.v.view().slice(0));
  return rows;
}

}  // namespace kvs::inline calibrate
