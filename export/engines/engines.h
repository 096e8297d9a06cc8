#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "export/engines/engine.h"

namespace kvs::inline engines {

// The rows of all_engines(), each in a file of its own.
extern const Engine kLlamaCpp, kIkLlama, kVllm, kSglang, kTensorRtLlm, kTransformers, kTransformersPackage;

/// Returns why the cache is not the full cache, as "found …, expected …".
std::string only_full(const EngineCache& cache);
/// Returns the type of keys and values that all layers have; nothing, and `obstacle`, if they differ.
std::optional<std::string> one_type(const EngineCache& cache, std::string& obstacle);
/// Returns true if `types` holds `type`.
bool holds(std::span<const std::string_view> types, std::string_view type);
/// Returns "found TYPE, expected one of …".
std::string unknown_type(const std::string& type, std::span<const std::string_view> types);

/// Engines that hold one type in all layers, fp8 or 16 bits.
inline constexpr std::array<std::string_view, 1> kFp8Types{"fp8"};
/// Returns why the cache is neither; empty if it is one of them.
std::string only_fp8(const EngineCache& cache);
/// Returns true if the layers hold fp8.
bool has_fp8(const EngineCache& cache);

}  // namespace kvs::inline engines
