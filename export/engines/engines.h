// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "export/engines/engine.h"

namespace kvs::inline engines {

// The rows of all_engines(), each in a file of its own.
extern const Engine kLlamaCpp, kIkLlama, kVllm, kVllmModelOpt, kSglang, kTensorRtLlm, kTransformers,
    kTransformersPackage;

/// Returns why the cache is not the full cache, as "found …, expected …".
std::string only_full(const EngineCache& cache);
/// Returns the type of keys and values that all layers have; nothing, and `obstacle`, if they differ.
std::optional<std::string> one_type(const EngineCache& cache, std::string& obstacle);
/// Returns true for none, f16 and bf16, of which an engine's 16 bits are one.
bool is_16_bits(const std::string& type);
/// Returns true if `types` holds `type`.
bool holds(std::span<const std::string_view> types, std::string_view type);
/// Returns "found TYPE, expected one of …".
std::string unknown_type(const std::string& type, std::span<const std::string_view> types);

/// Returns why a cache is not one of an engine that holds one type in all layers: 16 bits or one of `types`; else
/// empty.
std::string only_types(const EngineCache& cache, std::span<const std::string_view> types);
/// Returns the type that all layers hold, once only_types() is empty; "none" for 16 bits.
std::string type_of_all(const EngineCache& cache);
/// Returns why scales of `type` are not 1; empty if they are.
std::string scales_but_one(const EngineCache& cache, const std::string& type);

}  // namespace kvs::inline engines
