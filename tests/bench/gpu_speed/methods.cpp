// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "analyzers/chunk_grid.h"
#include "calibrate/elitekv/jlrd.h"
#include "calibrate/elitekv/ropelite.h"
#include "eval/ablation_forward.h"
#include "kernels/calibration_ops.h"
#include "kernels/spectral_ops.h"
#include "states/live_source.h"
#include "tests/bench/gpu_speed/session.h"

namespace kvs::bench {

Json measure_ropelite(Session& s) {
  const ModelConfig& c = s.config();
  std::vector<std::size_t> layers(c.layers());
  std::iota(layers.begin(), layers.end(), 0);
  const auto ops = make_calibration_ops(*s.backend);
  LiveSource source(*s.decoder, {s.document(s.tokens)});
  const EliteGeometry geometry{layers, c.query_heads(), c.kv_heads(), c.head_dim() / 2};
  double picks = 0;
  const double time = median_seconds(3, [&] {
    RopeStatistics statistics(geometry, false);
    statistics.add(*ops, source, 0);
    picks = seconds([&] {
      for (std::size_t layer = 0; layer < c.layers(); ++layer) {
        const auto grams = statistics.grams(layer, Granularity::kQueryHead);
        for (std::size_t head = 0; head < c.query_heads(); ++head) {
          const std::size_t size = geometry.chunks * geometry.chunks;
          const std::span<const double> gram = std::span(grams).subspan(head * size, size);
          const auto found = pick_elite({gram, {geometry.chunks, geometry.chunks}}, geometry.chunks / 2);
          check(std::isfinite(found.errors.back()), "an error of RoPElite is not finite");
        }
      }
    });
  });
  return {{"seconds", time}, {"of_which_picks", picks}, {"forward_seconds", s.forward_seconds()}};
}

/// 22 chunks of some evenly spread layers, scaled to all layers: a layer's cost falls linearly with its index.
Json measure_ablation(Session& s) {
  constexpr std::size_t kChunks = 22;
  const std::size_t tokens = std::min<std::size_t>(s.tokens, 1024), layers = s.config().layers();
  const std::size_t sampled = std::min<std::size_t>(layers, 4);
  const AblationSetup setup{.continuation = false, .tokens = tokens};
  const auto ops = s.backend->make_spectral_ops();
  AblationForward forward(*s.decoder, *ops, setup, 16384);
  const ChunkGrid grid{.chunks = kChunks, .samples = setup.filtered()};
  std::array<std::size_t, kChunks> all{};
  std::iota(all.begin(), all.end(), std::size_t{0});
  const std::vector<double> gains = ablation_gains(grid, all);
  const auto ids = s.document(tokens);
  const auto run = [&] {
    forward.begin(ids);
    for (std::size_t n = 0; n < sampled; ++n) {
      const auto sums =
          forward.variants((2 * n + 1) * layers / (2 * sampled), {gains, {kChunks, gains.size() / kChunks}});
      check(std::isfinite(sums.front()), "an ablation's NLL is not finite");
    }
    (void)forward.base();
  };
  const double time = median_seconds(3, run), variants = static_cast<double>(sampled * kChunks);
  return {{"tokens", tokens},
          {"layers_timed", sampled},
          {"seconds_per_variant", time / variants},
          {"seconds_scaled_to_all", time / static_cast<double>(sampled) * static_cast<double>(layers)}};
}

/// Joint factorisation of some layers' keys and values, r = a quarter of the chunks, scaled to all layers.
Json measure_jlrd(Session& s) {
  const ModelConfig& c = s.config();
  const std::size_t timed = std::min<std::size_t>(c.layers(), 4), r = c.head_dim() / 8;
  std::vector<std::size_t> chunks(r);
  std::iota(chunks.begin(), chunks.end(), 0);
  const std::vector<std::vector<std::size_t>> elite(c.kv_heads(), chunks);
  const std::size_t rank = no_extra_parameters_rank(c.d_model, c.kv_heads(), c.head_dim(), r);
  const auto ops = make_calibration_ops(*s.backend);
  const auto factorise_layer = [&](std::size_t layer) {
    std::vector<double> joint =
        unrotated_rows(s.source->projection(layer, 'k'), elite, c.head_dim(), c.rotary_dim(), c.d_model);
    const std::vector<float> values = s.source->projection(layer, 'v');
    joint.insert(joint.end(), values.begin(), values.end());
    const auto factors = factorise(*ops, joint, c.d_model, rank, SingularSplit::kUp, {});
    check(std::isfinite(factors.up.front()) && factors.singular.front() > 0, "the factors are not finite");
  };
  factorise_layer(0);  // one-time work of a library would be scaled with the layers
  const double time = seconds([&] {
    for (std::size_t layer = 0; layer < timed; ++layer) factorise_layer(layer);
  });
  return {{"layers_timed", timed},
          {"rank", rank},
          {"seconds_scaled_to_all", time / static_cast<double>(timed) * static_cast<double>(c.layers())}};
}

/// The DCT and its inverse, from states to states, compared with a copy; more heads than a layer has, so that caches
/// and launches count for little. A value crosses memory at least as 4 bytes read and 8 written by the reordering, 8
/// and 8 by either transform in double and by the gains between them, 8 read and 4 written at the end: 72 bytes. A copy
/// moves 8 (4 read, 4 written).
Json measure_dct(Session& s) {
  constexpr double kBytesPerValue = 72;
  constexpr std::size_t kHeads = 256;
  const std::size_t head_dim = s.config().head_dim(), head_size = s.tokens * head_dim;
  const BackendTensor<float, 3> states(*s.backend, {kHeads, s.tokens, head_dim});
  const BackendTensor<float, 4> out(*s.backend, {1, kHeads, s.tokens, head_dim});
  std::vector<float> host(kHeads * head_size), filtered(head_size);
  for (std::size_t n = 0; n < host.size(); ++n) host[n] = random_value(n);
  s.backend->upload(states.view().data(), host.data(), states.bytes());
  const auto ops = s.backend->make_spectral_ops();
  std::vector<double> gains(s.tokens, 1.0);
  gains[0] = 0;  // removes each channel's mean
  const double time = median_seconds(5, [&] {
    ops->filter(states.view(), Transform::kDct, 0, s.tokens, {gains, {1, s.tokens}}, out.view());
    wait_for(*s.backend, out.view().data());
  });
  s.backend->download(filtered.data(), out.view().data(), head_size * sizeof(float));
  for (std::size_t channel = 0; channel < head_dim; ++channel) {
    double mean = 0;
    for (std::size_t at = channel; at < head_size; at += head_dim) mean += host[at];
    mean /= static_cast<double>(s.tokens);
    for (std::size_t at = channel; at < head_size; at += head_dim)
      check(std::abs(host[at] - mean - filtered[at]) < 1e-6, "a filtered value is wrong");
  }
  constexpr int kCopies = 20;
  const double copied = median_seconds(3,
                                       [&] {
                                         for (int n = 0; n < kCopies; ++n)
                                           s.backend->copy(out.view().data(), states.view().data(), states.bytes());
                                         wait_for(*s.backend, out.view().data());
                                       }) /
                        kCopies;
  const auto values = static_cast<double>(host.size());
  return {{"seconds", time},
          {"gb_per_second", kBytesPerValue * values / time / 1e9},
          {"copy_gb_per_second", 8 * values / copied / 1e9}};
}

}  // namespace kvs::bench
