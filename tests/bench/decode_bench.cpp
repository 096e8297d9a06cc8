// SPDX-License-Identifier: Apache-2.0
// Decoding with a cache and with the full cache: tokens per second, one token at a time, after a text of TOKENS tokens.
//
// Usage: decode_bench MODEL TOKENS STEPS CACHE [, CACHE ...] [--bf16] [--profile]
//
// CACHE: METHOD [NAME=VALUE ...] or config FILE. METHOD full with `type=q8_0` is a storage type. --profile also prints
// the operations of prefill and of decoding.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/cache_choice.h"
#include "calibrate/registry.h"
#include "core/error.h"
#include "eval/cached_run.h"
#include "kernels/instruction_set.h"
#include "tests/bench/program.h"
#include "tests/bench/timed_backend.h"

namespace {

struct Speed {
  double prefill = 0, decode = 0;  // tokens per second
  kvs::CacheBytes bytes;
  kvs::bench::OperationWorks prefill_works, decode_works;
};

/// Returns the cache of METHOD with its settings, or of a config.
kvs::CacheChoice choice_of(const std::string& method, const std::vector<std::string>& settings,
                           const kvs::ModelSource& source) {
  if (method == "config") return kvs::cache_of_config(settings.at(0), source);
  kvs::CacheChoice choice;
  choice.method = kvs::find_method(method);
  if (choice.method == nullptr) throw kvs::Error(kvs::ErrorCode::kUsage, "METHOD", "found " + method);
  choice.parameters = {{kvs::parse_settings(settings, "SETTING"), "", kvs::ErrorCode::kUsage}};
  return choice;
}

Speed measure(kvs::bench::TimedBackend& backend, kvs::Decoder& decoder, kvs::Cache cache,
              std::span<const std::int32_t> ids, std::size_t steps) {
  const kvs::ModelConfig& config = decoder.model().config();
  const auto text = ids.first(ids.size() - steps);
  const auto nothing = [](const kvs::ResidualStream&, std::size_t) {};
  Speed speed;
  backend.clear_works();
  const auto report = kvs::run_cached(decoder, cache, text, {.positions = cache.positions(ids.size())}, nothing);
  speed.prefill = static_cast<double>(text.size()) / report.seconds;
  speed.prefill_works = backend.works();
  backend.clear_works();
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t position = text.size(); position < ids.size(); ++position) {
    kvs::ResidualStream hidden = decoder.embed(ids.subspan(position, 1), position, cache.positions(ids.size()));
    decoder.advance(hidden, config.layers(), nullptr, &cache);
    const std::size_t row = 0;
    if (!std::isfinite(decoder.logits(hidden, std::span(&row, 1)).front()))
      throw kvs::Error(kvs::ErrorCode::kData, "decode_bench", "logits that are not finite");
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  speed.decode = static_cast<double>(steps) / time.count();
  speed.bytes = cache.bytes();
  speed.decode_works = backend.works();
  return speed;
}

int run(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool profile = std::erase(arguments, "--profile") > 0, bf16 = std::erase(arguments, "--bf16") > 0;
  const std::size_t tokens = std::stoul(arguments.at(1)), steps = std::stoul(arguments.at(2));
  kvs::bench::TimedBackend backend(bf16 ? kvs::DType::kBF16 : kvs::DType::kF32, 0);
  const auto source = kvs::ModelSource::open(arguments.at(0));
  const kvs::Model model(*source, backend);
  kvs::Decoder decoder(model);
  std::vector<std::int32_t> ids(tokens + steps);
  for (std::size_t n = 0; n < ids.size(); ++n) ids[n] = static_cast<std::int32_t>(n * 7919 % 40000 + 100);
  const auto speed_of = [&](const kvs::CacheChoice& choice) {
    return measure(backend, decoder, kvs::cache_maker(choice, backend, model.config(), ids.size())(), ids, steps);
  };
  const Speed full = speed_of(kvs::full_choice());
  std::printf("%s %s, %zu tokens: full %.0f prefill, %.1f decode tokens/s\n",
              std::string(kvs::name_of(kvs::instruction_set())).c_str(), bf16 ? "bf16" : "f32", tokens, full.prefill,
              full.decode);
  const kvs::bench::MachinePeaks peaks = profile ? kvs::bench::measure_peaks(backend) : kvs::bench::MachinePeaks();
  const auto print_profile = [&](const Speed& speed) {
    if (!profile) return;
    std::printf("\nprefill:\n");
    print_works(speed.prefill_works, peaks);
    std::printf("\n%zu tokens decoded:\n", steps);
    print_works(speed.decode_works, peaks);
  };
  print_profile(full);
  for (auto at = arguments.begin() + 3; at < arguments.end();) {
    const auto end = std::find(at, arguments.end(), ",");
    const std::vector<std::string> settings(at + 1, end);
    const Speed speed = speed_of(choice_of(*at, settings, *source));
    std::string name = *at;
    for (const std::string& setting : settings) name += " " + setting;
    std::printf("%s at %.1f %% of the bytes: %.0f prefill (× %.2f), %.1f decode tokens/s (× %.2f)\n", name.c_str(),
                100 * static_cast<double>(speed.bytes.stored) / static_cast<double>(full.bytes.stored), speed.prefill,
                speed.prefill / full.prefill, speed.decode, speed.decode / full.decode);
    print_profile(speed);
    at = end == arguments.end() ? end : end + 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return kvs::bench::run_program(argc, argv, 4,
                                 "decode_bench MODEL TOKENS STEPS CACHE [, CACHE ...] [--bf16] [--profile]", run);
}
