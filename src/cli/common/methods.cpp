#include "cli/common/methods.h"

#include <algorithm>
#include <array>

#include "calibrate/elitekv/source.h"
#include "core/error.h"

namespace kvs {
namespace {

std::string nothing(const ModelConfig&) { return {}; }

/// Sliding windows change what a loss in the cache costs, not what the states are.
std::string window_note(const ModelConfig& config) {
  const auto limited = std::ranges::count_if(config.windows, [](std::size_t window) { return window != 0; });
  if (limited == 0) return {};
  return std::to_string(limited) + " of " + std::to_string(config.layers) +
         " layers read a sliding window: what lies outside it costs nothing there";
}

std::string no_rope(const ModelConfig& config) {
  return config.chunks() > 0 ? std::string() : "the model rotates no channel";
}

std::string ropelite_note(const ModelConfig& config) {
  std::string note;
  if (config.group() > 1)
    note = "sets are per KV head; --granularity query-head is analysis only, for " + std::to_string(config.group()) +
           " query heads share a key";
  if (!window_note(config).empty())
    note += std::string(note.empty() ? "" : "; ") + "the error counts pairs beyond the sliding windows, too";
  return note;
}

std::string too_few_chunks(const ModelConfig& config) {
  if (config.chunks() >= config.kv_heads) return no_rope(config);
  return "found " + std::to_string(config.kv_heads) + " KV heads and " + std::to_string(config.chunks()) +
         " RoPE chunks, expected at least a chunk for each head";
}

std::string disjoint_note(const ModelConfig& config) {
  return "r at most " + std::to_string(config.chunks() / config.kv_heads);
}

constexpr std::array kMethods{
    MethodRow{MethodId::kCapture, "kvspectrum capture", "q_pre, k_pre, k_post and v of every layer", nothing, nothing},
    MethodRow{MethodId::kSpectrum, "kvspectrum spectrum", "power spectra of keys and values", nothing, nothing},
    MethodRow{MethodId::kFaedkv, "kvcalibrate faedkv", "spectral chunks to keep, by ablation", nothing, window_note},
    MethodRow{MethodId::kRopelite, "kvcalibrate elitekv", "RoPElite: RoPE chunks to keep rotating", no_rope,
              ropelite_note},
    MethodRow{MethodId::kDisjoint, "kvcalibrate elitekv --disjoint on", "RoPElite, no chunk in two heads of a layer",
              too_few_chunks, disjoint_note},
    MethodRow{MethodId::kFactors, "kvcalibrate elitekv --rank", "J-LRD and S-LRD: low-rank factors of keys and values",
              factor_obstacle, nothing},
    MethodRow{MethodId::kEvalFull, "kvcalibrate eval --method full", "perplexity with the full cache", nothing,
              nothing},
    MethodRow{MethodId::kEvalElite, "kvcalibrate eval --config", "perplexity with an elitekv config at work", no_rope,
              nothing},
};

}  // namespace

std::span<const MethodRow> method_table() noexcept { return kMethods; }

void require_method(MethodId method, const ModelConfig& config) {
  const auto row = std::ranges::find(kMethods, method, &MethodRow::method);
  const std::string obstacle = row->obstacle(config);
  if (!obstacle.empty())
    throw Error(ErrorCode::kUnsupported, config.name,
                "not possible with " + std::string(row->command) + ": " + obstacle);
}

}  // namespace kvs
