// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/storage_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "calibrate/transform/level_coder.h"
#include "calibrate/transform/level_trellis.h"
#include "core/interrupt.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::size_t kRounds = 10;

/// What coding some blocks gives.
struct Coded {
  LevelCounts counts;
  double bytes = 0;
};

/// Blocks [first, last) of a group's samples, one piece of the work.
struct Piece {
  std::size_t group, first, last;
};

std::vector<Piece> pieces_of(std::span<const StorageSamples> groups) {
  constexpr std::size_t kBlocks = 32;
  std::vector<Piece> pieces;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const StorageSamples& samples = groups[group];
    const std::size_t blocks = samples.rows.size() / samples.coefficients() / samples.block;
    for (std::size_t first = 0; first < blocks; first += kBlocks)
      pieces.push_back({group, first, std::min(first + kBlocks, blocks)});
  }
  return pieces;
}

/// Returns the coded coefficients of a block in steps, [token, coefficient].
std::vector<float> block_of(const StorageSamples& samples, std::size_t block, std::size_t coded, double step) {
  const std::size_t all = samples.coefficients();
  std::vector<float> rows;
  rows.reserve(samples.block * coded);
  for (std::size_t row = block * samples.block; row < (block + 1) * samples.block; ++row)
    for (std::size_t n = 0; n < coded; ++n)
      rows.push_back(samples.rows[row * all + n] * static_cast<float>(std::sqrt(samples.variances[n]) / step));
  return rows;
}

Coded code(const StorageSamples& samples, const Piece& piece, const EntropyModel& model, double step) {
  Coded coded;
  const std::vector<std::uint8_t> scales = coded_scales(samples.variances, step);
  if (scales.empty()) return coded;
  const LevelTrellis trellis(model);
  for (std::size_t block = piece.first; block < piece.last; ++block) {
    const std::vector<float> rows = block_of(samples, block, scales.size(), step);
    const std::vector<std::int32_t> magnitudes = trellis.choose_block(rows, scales);
    coded.bytes += static_cast<double>(encode_levels(model, magnitudes, scales).bytes());
    for_each_level(model, magnitudes, scales, [&](std::size_t index, std::size_t context, std::uint32_t quantiser) {
      coded.counts.add(context, scales[index % scales.size()], quantiser, std::abs(magnitudes[index]),
                       std::abs(rows[index]));
    });
  }
  return coded;
}

/// One round. @return the counts of all pieces, and the bytes of a token of each group
std::pair<LevelCounts, std::vector<double>> code_all(std::span<const StorageSamples> groups, const EntropyModel& model,
                                                     double step) {
  const std::vector<Piece> pieces = pieces_of(groups);
  std::vector<Coded> coded(pieces.size());
#pragma omp parallel for schedule(dynamic)
  for (std::size_t n = 0; n < pieces.size(); ++n) coded[n] = code(groups[pieces[n].group], pieces[n], model, step);
  std::pair<LevelCounts, std::vector<double>> sum{{}, std::vector<double>(groups.size())};
  for (std::size_t n = 0; n < pieces.size(); ++n) {
    sum.first += coded[n].counts;
    sum.second[pieces[n].group] += coded[n].bytes;
  }
  for (std::size_t group = 0; group < groups.size(); ++group)
    sum.second[group] /= static_cast<double>(groups[group].rows.size() / groups[group].coefficients());
  return sum;
}

double document_bytes(std::span<const StorageSamples> groups, std::span<const double> of_token) {
  double bytes = 0;
  for (std::size_t group = 0; group < groups.size(); ++group)
    bytes += of_token[group] * static_cast<double>(groups[group].tokens);
  return bytes;
}

/// Returns the step at which Gaussian coefficients would take `bytes`: ½ log2(σ² / D) bits each, with D the error of a
/// step.
double first_step(std::span<const StorageSamples> groups, double bytes) {
  constexpr double kError = 0.25;  // squared steps
  const auto needed = [&](double step) {
    double bits = 0;
    for (const StorageSamples& group : groups)
      for (const double variance : group.variances)
        bits += std::max(0.0, 0.5 * std::log2(variance / (kError * step * step))) * static_cast<double>(group.tokens);
    return bits / 8;
  };
  double low = 0, high = 0;  // exponents of 2
  for (const StorageSamples& group : groups) high = std::max(high, group.variances.front());
  high = 0.5 * std::log2(high) + 2;
  low = high - 64;
  for (int n = 0; n < 60; ++n) {
    const double middle = (low + high) / 2;
    (needed(std::exp2(middle)) > bytes ? low : high) = middle;
  }
  return std::exp2(high);
}

}  // namespace

std::vector<std::uint8_t> coded_scales(std::span<const double> variances, double step) {
  std::vector<std::uint8_t> scales;
  for (const double variance : variances) {
    const std::size_t scale = scale_class(std::sqrt(variance) / step);
    if (scale == kScaleClasses) break;
    scales.push_back(static_cast<std::uint8_t>(scale));
  }
  return scales;
}

std::size_t most_coded(std::span<const double> variances, double bytes) {
  if (!(variances.front() > 0)) return 1;
  constexpr double kRoom = 4;
  StorageSamples of_token;
  for (const double variance : variances) of_token.variances.push_back(std::max(variance, 0.0));
  const double step = first_step({&of_token, 1}, bytes) / kRoom;
  return std::max<std::size_t>(1, coded_scales(of_token.variances, step).size());
}

StorageFit fit_storage(std::span<const StorageSamples> groups, double bytes, const StorageProgress& progress) {
  EntropyModel model = laplacian_model();
  double x = std::log(first_step(groups, bytes)), slope = -1, last_x = 0, last_y = 0;
  StorageFit fit;
  for (std::size_t round = 0; round < kRounds; ++round) {
    check_interrupt();
    progress(round, kRounds);
    const auto [counts, of_token] = code_all(groups, model, std::exp(x));
    fit.step = std::exp(x);
    fit.bytes.clear();
    for (const double token : of_token) fit.bytes.push_back(static_cast<std::size_t>(std::ceil(token)));
    model = counts.model(model);
    const double y = std::log(document_bytes(groups, of_token) / bytes);
    constexpr double kNear = 1e-4, kSteepest = -4, kFlattest = -0.3;
    if (round > 1 && std::abs(x - last_x) > kNear)
      slope = std::clamp((y - last_y) / (x - last_x), kSteepest, kFlattest);
    last_x = x;
    last_y = y;
    if (round + 2 < kRounds) x -= y / slope;  // the last two rounds fit the model alone
  }
  fit.model = std::make_shared<const EntropyModel>(std::move(model));
  return fit;
}

}  // namespace kvs::inline calibrate
