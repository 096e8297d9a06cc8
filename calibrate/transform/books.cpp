// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/books.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "caches/token_rows.h"
#include "calibrate/transform/bits.h"
#include "calibrate/transform/trellis_store.h"
#include "core/dtype.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::size_t kStates = 256;
/// From this number of bits on, entries are spread before they are fitted to real coefficients, whose tails are heavier
/// than Gaussian ones: Lloyd's iteration does not move entries to regions without values.
constexpr std::size_t kSpreadBits = 4;

/// Changes the density of entries from a normal to a Cauchy distribution. At high rates the best density is the cube
/// root of that of the values, and Cauchy's belongs to Student's t with five degrees of freedom. Source: Bennett
/// (1948), Bell System Technical Journal 27(3).
float spread(float entry) {
  const double below = std::erfc(-static_cast<double>(entry) / std::numbers::sqrt2) / 2;
  return static_cast<float>(std::tan(std::numbers::pi * (below - 0.5)));
}

/// Gaussian values by Box & Muller's transform: the C++ standard does not fix the results of its distributions.
std::vector<float> gaussian(std::size_t count) {
  std::mt19937 random(1);
  const auto uniform = [&] { return (static_cast<double>(random()) + 0.5) / 0x1p32; };
  std::vector<float> values;
  for (std::size_t n = 0; n < count; ++n) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    values.push_back(static_cast<float>(radius * std::cos(2 * std::numbers::pi * uniform())));
  }
  return values;
}

/// Some rows and their codes.
class CodedSamples {
 public:
  CodedSamples(Backend& backend, const TrellisSamples& samples, const std::vector<float>& books)
      : samples_(&samples), values_(samples.bits.size()), count_(samples.rows.size() / values_) {
    const double most = *std::ranges::max_element(samples.variances);
    for (const double variance : samples.variances) weights_.push_back(static_cast<float>(variance / most));
    RowBuffer buffer(trellis_store(books, trellis_coefficients(samples.bits, weights_)));
    const BackendTensor<float, 4> rows(backend, {1, 1, count_, values_});
    backend.upload(rows.view().data(), samples.rows.data(), rows.bytes());
    buffer.append(backend, rows.view(), 0, count_);
    held_ = download(backend, buffer.copy(backend, 0, count_).view());
    row_bytes_ = buffer.held().bytes(1);
    bytes_.resize(count_ * row_bytes_);
    backend.download(bytes_.data(), buffer.held().data, bytes_.size());
  }

  std::size_t count() const noexcept { return count_; }
  double cost(std::size_t row) const {
    double sum = 0;
    for (std::size_t n = 0; n < values_; ++n) {
      const std::size_t at = row * values_ + n;
      const double error = static_cast<double>(held_[at]) - static_cast<double>(samples_->rows[at]);
      sum += static_cast<double>(weights_[n]) * error * error;
    }
    return sum;
  }
  /// Calls use(entry of the books, value, cost of a squared error) for each coded value of a row.
  template <class Use>
  void each(std::size_t row, Use use) const {
    const auto* const from = reinterpret_cast<const std::uint8_t*>(bytes_.data()) + row * row_bytes_;
    const auto gain = static_cast<double>(f16_to_f32(static_cast<std::uint16_t>(from[0] | from[1] << 8)));
    std::size_t last = 15;  // bit of the row at which the state ends: codecs/trellis.h
    for (std::size_t n = 0; n < values_; ++n) {
      const std::size_t bits = samples_->bits[n];
      if (bits == 0) continue;
      last += bits;
      const unsigned window = static_cast<unsigned>(from[last / 8 - 1]) << 8 | from[last / 8];
      use(bits * kStates + (window >> (7 - last % 8)) % kStates,
          static_cast<double>(samples_->rows[row * values_ + n]) / gain, samples_->variances[n] * gain * gain);
    }
  }

 private:
  const TrellisSamples* samples_;
  std::size_t values_, count_, row_bytes_ = 0;
  std::vector<float> weights_, held_;
  std::vector<std::byte> bytes_;
};

}  // namespace

TrellisBooks::TrellisBooks(Backend& backend) : backend_(&backend), books_(gaussian(kTrellisBooks)) {
  constexpr std::size_t kRows = 768, kValues = 64, kIterations = 16;
  std::fill_n(books_.begin(), kStates, 0.0F);
  std::vector<TrellisSamples> samples;
  const std::vector<float> rows = gaussian(kRows * kValues);
  for (std::size_t bits = 1; bits <= kMaxBits; ++bits)
    samples.push_back({rows, std::vector(kValues, bits), std::vector(kValues, 1.0)});
  for (std::size_t n = 0; n < kIterations; ++n) fit(samples, 0);
  for (std::size_t entry = kSpreadBits * kStates; entry < kTrellisBooks; ++entry) books_[entry] = spread(books_[entry]);
}

std::vector<double> TrellisBooks::fit(std::span<const TrellisSamples> all, double outliers,
                                      const std::function<void(std::size_t)>& done) {
  std::vector<double> sums(kTrellisBooks), weights(kTrellisBooks), greatest;
  for (std::size_t n = 0; n < all.size(); ++n) {
    if (done) done(n);
    const CodedSamples coded(*backend_, all[n], books_);
    std::vector<double> costs(coded.count());
    for (std::size_t row = 0; row < costs.size(); ++row) costs[row] = coded.cost(row);
    std::vector<double> sorted = costs;
    std::ranges::sort(sorted);
    const auto left_out = static_cast<std::size_t>(outliers * static_cast<double>(costs.size()));
    greatest.push_back(sorted[sorted.size() - 1 - left_out]);
    for (std::size_t row = 0; row < costs.size(); ++row)
      if (costs[row] <= greatest.back())
        coded.each(row, [&](std::size_t entry, double value, double weight) {
          sums[entry] += weight * value;
          weights[entry] += weight;
        });
  }
  for (std::size_t entry = 0; entry < books_.size(); ++entry)
    if (weights[entry] > 0) books_[entry] = static_cast<float>(sums[entry] / weights[entry]);
  return greatest;
}

}  // namespace kvs::inline calibrate
