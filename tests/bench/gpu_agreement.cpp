// SPDX-License-Identifier: Apache-2.0
// Measures the differences between GPU and CPU on one document in f32: NLL, spectra, RoPElite picks (p = 2), FAEDKV Δ.
// Checks that layers streamed through the device give the same bits. Prints one line of JSON on stdout; exit status 1
// if a bound is broken.
//
// Usage: gpu_agreement MODEL [TEXT | -] [TOKENS = 512] [DEVICE = cuda]        (-: ids of a fixed sequence)
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "analyzers/chunk_grid.h"
#include "analyzers/spectrum.h"
#include "calibrate/elitekv/ropelite.h"
#include "core/error.h"
#include "eval/ablation_forward.h"
#include "io/file.h"
#include "io/json.h"
#include "kernels/calibration_ops.h"
#include "kernels/spectral_ops.h"
#include "model/decoder.h"
#include "states/live_source.h"
#include "tests/bench/program.h"

namespace {

using kvs::Json;

constexpr std::size_t kChunks = 8;                              // of the ablation
constexpr double kNll = 2e-3, kSpectrum = 1e-3, kDelta = 2e-3;  // the bounds
constexpr kvs::Granularity kGranularity = kvs::Granularity::kQueryHead;

struct Results {
  std::vector<float> nll;
  kvs::Spectrum spectrum;
  std::vector<std::vector<std::size_t>> picks;  // [layer · head]
  std::vector<double> delta;                    // [layer · chunk], some layers
};

std::vector<double> ablation_delta(kvs::Decoder& decoder, kvs::SpectralOps& ops, std::span<const std::int32_t> ids) {
  const kvs::AblationSetup setup{.continuation = false, .tokens = ids.size()};
  std::array<std::size_t, kChunks> all{};
  std::iota(all.begin(), all.end(), std::size_t{0});
  const std::vector<double> gains = kvs::ablation_gains({.chunks = kChunks, .samples = setup.filtered()}, all);
  kvs::AblationForward forward(decoder, ops, setup);
  forward.begin(ids);
  const std::size_t layers = decoder.model().config().layers();
  std::vector<double> sums;
  for (const std::size_t layer : {std::size_t{0}, layers / 2, layers - 1}) {
    if (!sums.empty() && layer == 0) continue;  // a model of one layer
    const auto variants = forward.variants(layer, {gains, {kChunks, gains.size() / kChunks}});
    sums.insert(sums.end(), variants.begin(), variants.end());
  }
  const double base = forward.base();
  for (double& sum : sums) sum = std::expm1((sum - base) / static_cast<double>(setup.scored()));
  return sums;
}

Results run(const kvs::ModelSource& source, const std::string& device, const std::vector<std::int32_t>& ids) {
  const auto backend = kvs::make_backend(device, kvs::DType::kF32);
  const kvs::Model model(source, *backend);
  kvs::Decoder decoder(model);
  const auto spectral = backend->make_spectral_ops();
  const auto calibration = kvs::make_calibration_ops(*backend);
  const kvs::ModelConfig& c = source.config();
  std::vector<std::size_t> layers(c.layers());
  std::iota(layers.begin(), layers.end(), 0);
  kvs::LiveSource states(decoder, {ids});

  Results results;
  results.nll = kvs::document_nll(decoder, ids);
  kvs::SpectrumAccumulator spectra(*spectral, {.layers = layers, .kv_heads = c.kv_heads(), .head_dim = c.head_dim()},
                                   ids.size());
  spectra.add_document(states, 0);
  results.spectrum = spectra.result();
  kvs::RopeStatistics statistics({layers, c.query_heads(), c.kv_heads(), c.head_dim() / 2}, false);
  statistics.add(*calibration, states, 0);
  const std::size_t chunks = c.head_dim() / 2;
  for (std::size_t layer = 0; layer < c.layers(); ++layer) {
    const std::vector<double> grams = statistics.grams(layer, kGranularity);
    for (std::size_t head = 0; head < c.query_heads(); ++head) {
      const std::span<const double> gram = std::span(grams).subspan(head * chunks * chunks, chunks * chunks);
      results.picks.push_back(kvs::pick_elite({gram, {chunks, chunks}}, chunks / 2).chunks);
    }
  }
  results.delta = ablation_delta(decoder, *spectral, ids);
  return results;
}

/// Returns the largest difference, relative to the expected value if `relative`. @throws Error kData if a difference is
/// not finite, because no maximum would show it.
template <class T>
double largest_difference(const std::vector<T>& found, const std::vector<T>& expected, bool relative) {
  if (found.size() != expected.size())
    throw kvs::Error(kvs::ErrorCode::kData, "gpu_agreement",
                     "found " + std::to_string(found.size()) + " values, expected " + std::to_string(expected.size()));
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double difference = std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
    const double share = relative ? difference / std::abs(static_cast<double>(expected[i])) : difference;
    if (!std::isfinite(share))
      throw kvs::Error(kvs::ErrorCode::kData, "gpu_agreement",
                       "found " + std::to_string(found[i]) + " as value " + std::to_string(i) + ", expected " +
                           std::to_string(expected[i]));
    worst = std::max(worst, share);
  }
  return worst;
}

/// The NLL of two passes with space for two layers and the head: each pass reads all layers again.
std::vector<float> streamed_nll(const kvs::ModelSource& source, const std::string& device,
                                const std::vector<std::int32_t>& ids) {
  const auto backend = kvs::make_backend(device, kvs::DType::kF32);
  std::size_t room = 0;
  {
    const kvs::Model whole(source, *backend);
    room = whole.head().bytes() + 2 * whole.placement().layer_bytes;
  }
  const kvs::Model model(source, *backend, {}, room);
  kvs::Decoder decoder(model);
  (void)kvs::document_nll(decoder, ids);
  return kvs::document_nll(decoder, ids);
}

std::vector<std::int32_t> document(const kvs::ModelSource& source, const std::string& text, std::size_t tokens) {
  std::vector<std::int32_t> ids;
  if (text != "-") {
    ids = source.load_tokenizer()->encode(kvs::read_text_file(text, std::size_t{64} << 20));
  } else {
    for (std::size_t n = 0; n < tokens; ++n)
      ids.push_back(static_cast<std::int32_t>((n * 7919 + 13) % source.config().vocabulary));
  }
  if (ids.size() < tokens) throw kvs::Error(kvs::ErrorCode::kData, text, "holds too few tokens");
  ids.resize(tokens);
  return ids;
}

int compare_devices(int argc, char** argv) {
  const auto source = kvs::ModelSource::open(argv[1]);
  const auto ids = document(*source, argc > 2 ? argv[2] : "-", argc > 3 ? std::stoul(argv[3]) : 512);
  const Results cpu = run(*source, "cpu", ids), gpu = run(*source, argc > 4 ? argv[4] : "cuda", ids);
  const double nll = largest_difference(gpu.nll, cpu.nll, false);
  double spectrum = 0;
  for (const kvs::StateKind state : cpu.spectrum.states)
    spectrum = std::max(spectrum,
                        largest_difference(gpu.spectrum.power[state].values, cpu.spectrum.power[state].values, true));
  const double delta = largest_difference(gpu.delta, cpu.delta, false);
  const double streamed = largest_difference(streamed_nll(*source, argc > 4 ? argv[4] : "cuda", ids), gpu.nll, false);
  std::size_t different = 0;
  for (std::size_t i = 0; i < cpu.picks.size(); ++i) different += cpu.picks[i] != gpu.picks[i] ? 1U : 0U;
  const bool holds = nll <= kNll && spectrum <= kSpectrum && delta <= kDelta && different == 0 && streamed == 0;
  const Json line{{"section", "agreement"},    {"model", argv[1]},
                  {"tokens", ids.size()},      {"nll", nll},
                  {"spectrum", spectrum},      {"heads", cpu.picks.size()},
                  {"picks_differ", different}, {"delta", delta},
                  {"streamed", streamed},      {"holds", holds}};
  std::printf("%s\n", kvs::dump_json(line, -1).c_str());
  return holds ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return kvs::bench::run_program(argc, argv, 1, "gpu_agreement MODEL [TEXT|-] [TOKENS] [DEVICE]", compare_devices);
}
