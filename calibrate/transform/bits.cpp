#include "calibrate/transform/bits.h"

#include <numeric>
#include <queue>
#include <utility>

namespace kvs {
namespace {

/// The next bit of a coefficient.
struct Step {
  double gain = 0;
  std::size_t layer = 0, coefficient = 0;

  /// Ties: the first one comes first.
  friend bool operator<(const Step& a, const Step& b) {
    if (a.gain != b.gain) return a.gain < b.gain;
    return std::pair(b.layer, b.coefficient) < std::pair(a.layer, a.coefficient);
  }
};

double gain(double variance, std::size_t bits) { return variance * (kTrellisError[bits] - kTrellisError[bits + 1]); }

}  // namespace

std::size_t code_bytes(std::span<const std::size_t> bits) noexcept {
  return (std::reduce(bits.begin(), bits.end()) + 7) / 8;
}

std::vector<std::vector<std::size_t>> allocate_bits(std::span<const std::vector<double>> variances, std::size_t bytes) {
  std::vector<std::vector<std::size_t>> bits;
  std::vector<std::size_t> used(variances.size());  // bits of each layer
  std::priority_queue<Step> steps;
  for (std::size_t layer = 0; layer < variances.size(); ++layer) {
    bits.emplace_back(variances[layer].size());
    for (std::size_t n = 0; n < variances[layer].size(); ++n) steps.push({gain(variances[layer][n], 0), layer, n});
  }
  // A layer that begins a byte pays for all of it; once no byte is left, those that are begun are filled.
  for (std::size_t left = bytes; !steps.empty();) {
    const auto [of, layer, n] = steps.top();
    steps.pop();
    const bool begins = used[layer] % 8 == 0;
    if (begins && left == 0) continue;
    left -= begins ? 1 : 0;
    ++used[layer];
    if (++bits[layer][n] < kMostBits) steps.push({gain(variances[layer][n], bits[layer][n]), layer, n});
  }
  return bits;
}

}  // namespace kvs
