// SPDX-License-Identifier: Apache-2.0
// Decoding with a cache and with the full cache: tokens per second, one token at a time, after a text of TOKENS tokens.
//
// Usage: decode_bench MODEL TOKENS STEPS METHOD [NAME=VALUE ...]
//        decode_bench MODEL TOKENS STEPS elitekv CONFIG
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "calibrate/elitekv/caches.h"
#include "calibrate/registry.h"
#include "core/error.h"
#include "eval/cached_run.h"
#include "io/file.h"
#include "kernels/instruction_set.h"
#include "model/cache_shape.h"
#include "tests/bench/program.h"

namespace {

struct Speed {
  double prefill = 0, decode = 0;  // tokens per second
  kvs::CacheBytes bytes;
};

/// Returns the cache of METHOD with its settings; for elitekv the cache of a config.
kvs::Cache cache_of(const kvs::Model& model, const kvs::ModelSource& source, const std::string& method,
                    const std::vector<std::string>& settings, std::size_t tokens) {
  const kvs::ModelConfig& config = model.config();
  if (method == "elitekv") {
    const std::string& path = settings.at(0);
    const kvs::Json json = kvs::parse_json(kvs::read_text_file(path, std::size_t{1} << 30), path);
    return kvs::EliteCaches(model.backend(), config, kvs::load_elite_config(json, path, source), tokens).make();
  }
  const kvs::Method* const found = kvs::find_method(method);
  if (found == nullptr) throw kvs::Error(kvs::ErrorCode::kUsage, "METHOD", "found " + method);
  kvs::Parameters parameters({{kvs::parse_settings(settings, "SETTING"), "", kvs::ErrorCode::kUsage}}, config.layers());
  return kvs::make_cache(*found, parameters, kvs::cache_shape(config));
}

Speed measure(kvs::Decoder& decoder, kvs::Cache cache, std::span<const std::int32_t> ids, std::size_t steps) {
  const kvs::ModelConfig& config = decoder.model().config();
  const auto text = ids.first(ids.size() - steps);
  const auto nothing = [](const kvs::ResidualStream&, std::size_t) {};
  Speed speed;
  const auto report = kvs::run_cached(decoder, cache, text, {.positions = cache.positions(ids.size())}, nothing);
  speed.prefill = static_cast<double>(text.size()) / report.seconds;
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
  return speed;
}

int run(int argc, char** argv) {
  const auto tokens = static_cast<std::size_t>(std::atol(argv[2])),
             steps = static_cast<std::size_t>(std::atol(argv[3]));
  const auto backend = kvs::make_backend("cpu", kvs::DType::kF32);
  const auto source = kvs::ModelSource::open(argv[1]);
  const kvs::Model model(*source, *backend);
  kvs::Decoder decoder(model);
  std::vector<std::int32_t> ids(tokens + steps);
  for (std::size_t n = 0; n < ids.size(); ++n) ids[n] = static_cast<std::int32_t>(n * 7919 % 40000 + 100);
  const Speed full = measure(decoder, cache_of(model, *source, "full", {}, ids.size()), ids, steps);
  const std::vector<std::string> settings(argv + 5, argv + argc);
  const Speed other = measure(decoder, cache_of(model, *source, argv[4], settings, ids.size()), ids, steps);
  const auto share = static_cast<double>(other.bytes.stored) / static_cast<double>(full.bytes.stored);
  std::printf(
      "%s, %zu tokens: full %.0f prefill, %.1f decode tokens/s; %s at %.1f %% of the bytes %.0f, %.1f; "
      "decode ratio %.2f\n",
      std::string(kvs::name_of(kvs::instruction_set())).c_str(), tokens, full.prefill, full.decode, argv[4],
      100 * share, other.prefill, other.decode, other.decode / full.decode);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return kvs::bench::run_program(argc, argv, 4, "decode_bench MODEL TOKENS STEPS METHOD [NAME=VALUE ...]", run);
}
