// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/engine_pairs.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kvs::inline calibrate {
namespace {

constexpr std::array<std::string_view, 4> kEverywhere{"f16", "bf16", "q8_0", "q4_0"};
constexpr std::array<std::string_view, 3> kAsked{"q5_1", "q5_0", "q4_1"};

template <std::size_t N>
bool holds(const std::array<std::string_view, N>& kinds, std::string_view kind) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

}  // namespace

CudaPair cuda_pair(std::string_view k, std::string_view v) {
  if (holds(kEverywhere, k) && (k == v || (k == "q8_0" && v == "q4_0"))) return CudaPair::kEveryBuild;
  for (const std::string_view kind : {k, v})
    if (!holds(kEverywhere, kind) && !holds(kAsked, kind)) return CudaPair::kNone;
  return CudaPair::kAllQuants;
}

Json kv_type_settings(std::string_view type) {
  if (type.empty()) return Json::object();
  const std::size_t slash = type.find('/');
  if (slash == std::string_view::npos) return {{"type", type}};
  return {{"type_k", type.substr(0, slash)}, {"type_v", type.substr(slash + 1)}};
}

std::optional<TypePair> type_pair(const Json& settings) {
  const auto word = [&](const char* name) {
    const auto found = settings.find(name);
    return found == settings.end() || !found->is_string() || *found == "type" || *found == "none"
               ? std::string()
               : found->get<std::string>();
  };
  TypePair types{word("type_k"), word("type_v")};
  return types.k.empty() || types.v.empty() ? std::nullopt : std::optional(std::move(types));
}

std::string_view builds_of(CudaPair pair) noexcept {
  constexpr std::array<std::string_view, 3> kWords{"every build", "builds with GGML_CUDA_FA_ALL_QUANTS", "no build"};
  return kWords[static_cast<std::size_t>(pair)];
}

std::string cuda_pair_text(std::string_view k, std::string_view v) {
  const CudaPair pair = cuda_pair(k, v);
  return "llama.cpp's flash attention on CUDA takes K " + std::string(k) + " with V " + std::string(v) + " in " +
         std::string(builds_of(pair)) + (pair == CudaPair::kAllQuants ? " alone" : "") +
         (pair == CudaPair::kEveryBuild ? "" : "; elsewhere the processor computes attention, which is slow");
}

}  // namespace kvs::inline calibrate
