#include "policy/token_spectrum.h"

#include <array>

#include "kernels/spectral_ops.h"

namespace kvs {
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
  const std::size_t reals = k_.view().size() + v_.view().size();
  return {.stored = reals * kStoredReal, .used = reals * sizeof(float) + bins_.bytes()};
}

void TokenSpectrum::transform(Backend& backend, const TokenRows::Part& rows, std::size_t samples) {
  const std::vector<std::uint32_t> bins = bins_of_chunks(chunks_, kept_, samples);
  const auto [members, heads, tokens, head_dim] = rows.k.view().shape();
  bins_ = BackendTensor<std::uint32_t, 1>(backend, {bins.size()});
  backend.upload(bins_.view().data(), bins.data(), bins_.bytes());
  k_ = BackendTensor<float, 4>(backend, {heads, bins.size(), 2, head_dim});
  v_ = BackendTensor<float, 4>(backend, k_.view().shape());
  samples_ = samples;
  tokens_ = tokens;
  const auto ops = make_spectral_ops(backend);
  ops->analyze(rows.k.view().slice(0), grid(), k_.view());
  ops->analyze(rows.v.view().slice(0), grid(), v_.view());
}

void TokenSpectrum::add(Backend& backend, BackendView<const float, 4> k, BackendView<const float, 4> v, std::size_t row,
                        Full full) {
  if (tokens_ == samples_ && full == Full::kRebuild) {
    transform(backend, restored(backend), 2 * samples_);
  }
  const std::size_t place = tokens_ < samples_ ? tokens_++ : wrapped_++ % samples_;
  const auto ops = make_spectral_ops(backend);
  ops->add_sample(k.slice(0), row, place, grid(), k_.view());
  ops->add_sample(v.slice(0), row, place, grid(), v_.view());
}

TokenRows::Part TokenSpectrum::restored(Backend& backend) const {
  const std::array<std::size_t, 4> shape{1, k_.view().extent(0), tokens_, k_.view().extent(3)};
  TokenRows::Part rows{BackendTensor<float, 4>(backend, shape), BackendTensor<float, 4>(backend, shape)};
  const auto ops = make_spectral_ops(backend);
  ops->synthesize(k_.view(), grid(), rows.k.view().slice(0));
  ops->synthesize(v_.view(), grid(), rows.v.view().slice(0));
  return rows;
}

}  // namespace kvs
