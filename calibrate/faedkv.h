#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/spectral_ops.h"

namespace kvs {

/// How a spectrum over `samples` tokens is cut into chunks: chunk c = bins [⌊cB/C⌋, ⌊(c+1)B/C⌋) of B bins.
/// Source: FAEDKV, chunked spectrum. Deviation: with the half spectrum (default) a bin's mirror image goes with it, so
/// that filtered states stay real; `full_spectrum` is the paper's literal N bins with the real part taken afterwards.
struct ChunkGrid {
  Transform transform = Transform::kDft;
  bool full_spectrum = false;  // DFT only
  std::size_t chunks = 22, samples = 0;

  /// B: samples for the DCT and the full spectrum, ⌊samples/2⌋ + 1 for the half spectrum.
  std::size_t bins() const noexcept;
  std::size_t first_bin(std::size_t chunk) const noexcept { return first_bin_of(chunk, chunks, bins()); }
};

/// Gains of SpectralOps::filter that keep exactly the chunks of `kept`: [bins_of(transform, samples)].
/// Full spectrum: the real part of the filtered signal is the half spectrum with weight (keep[k] + keep[N−k]) / 2.
std::vector<double> gains_keeping(const ChunkGrid& grid, std::span<const std::size_t> kept);
/// Row n keeps all chunks but ablated[n]: [ablated.size(), bins_of(transform, samples)].
std::vector<double> ablation_gains(const ChunkGrid& grid, std::span<const std::size_t> ablated);

/// NLL sums of an ablation, by document.
struct AblationSums {
  std::size_t scored_per_document = 0;
  std::vector<double> base;  // [document]
  /// [document][layer][chunk]; nothing where a race (calibrate/chunk_race.h) left the chunk out.
  std::vector<std::vector<std::vector<std::optional<double>>>> ablated;

  std::size_t layers() const noexcept { return ablated.front().size(); }
  /// Of one layer: [chunk][document], the mean NLL of the document's scored tokens without the chunk minus that of the
  /// unchanged model.
  std::vector<std::vector<std::optional<double>>> losses(std::size_t layer) const;
};

struct AblationResult {
  double nll_base = 0, nll_error = 0;      // mean of all scored tokens, nats, and its standard error over documents
  std::vector<std::vector<double>> delta;  // [layer][chunk]: (PPL − PPL_base) / PPL_base (growth()) over its documents
  std::vector<std::vector<std::size_t>> documents;  // [layer][chunk]: how many those are
  /// 95 % interval of each Δ over documents; none below two documents. Student's t on the paired difference of a
  /// document's mean NLL, mapped by exp(·) − 1.
  std::vector<std::vector<std::optional<std::pair<double, double>>>> interval;
};

/// PPL = exp(mean NLL over all scored tokens of all documents). Sums run in document order.
/// @param sums  every chunk in at least one document
AblationResult ablation_result(const AblationSums& sums);

/// How many of `chunks` a share r keeps: ⌊r·chunks + ½⌋, at least 1, at most all.
std::size_t kept_count(double share, std::size_t chunks) noexcept;
/// The `count` chunks with the largest Δ (lowest index on ties), ascending.
std::vector<std::size_t> most_important(std::span<const double> delta, std::size_t count);
/// Δ of one layer mapped linearly so that its least is 0 and its largest 1; all 0 if they are equal.
std::vector<double> scaled_to_unit(std::span<const double> delta);

}  // namespace kvs
