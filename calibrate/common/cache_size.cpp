// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/cache_size.h"

#include <algorithm>
#include <numeric>
#include <typeindex>
#include <utility>

#include "caches/document_cache.h"
#include "calibrate/registry.h"
#include "kernels/cpu/cpu_backend.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::size_t kRopeChunks = 1;  // more rotated chunks would only cost time

/// Leaves the outputs of attention as they are, because sizes do not depend on them: otherwise a document of 32,768
/// tokens costs seconds for each size. Every key has the mass 0.
class SizingBackend final : public CpuBackend {
 public:
  SizingBackend() : CpuBackend(DType::kF32, 1) {}
  void attention(const AttentionInput& input, Operand /*out*/) override {
    if (!input.mass.empty()) clear(input.mass);
  }
  void spectrum_attention(const AttentionInput& input, const KeySpectrum& /*spectrum*/, Operand out) override {
    attention(input, out);
  }
};

/// Returns true if layers may have different values.
bool has_lists(const Json& settings, const std::vector<ParameterSpec>& specs) {
  return std::ranges::any_of(specs, [&](const ParameterSpec& spec) {
    const auto found = settings.find(spec.name);
    if (found == settings.end() || !found->is_array()) return false;
    const bool indices = spec.kind == ParameterSpec::Kind::kIndices;
    return !indices || std::ranges::any_of(*found, [](const Json& value) { return value.is_array(); });
  });
}

/// Returns true if some layers stay at 16 bits, as given or by default. @param resolved  with every parameter
bool skips_layers(const Json& resolved) {
  const auto skipped = resolved.find("type_skip_layers");
  return skipped != resolved.end() && !skipped->empty();
}

BackendTensor<float, 4> zeros(Backend& backend, std::size_t heads, std::size_t tokens, std::size_t head_dim) {
  BackendTensor<float, 4> states(backend, {1, heads, tokens, head_dim});
  const std::vector<float> values(heads * tokens * head_dim);
  backend.upload(states.view().data(), values.data(), states.bytes());
  return states;
}

BackendTensor<float, 2> angles(Backend& backend, std::size_t positions, float value) {
  BackendTensor<float, 2> table(backend, {positions, kRopeChunks});
  const std::vector<float> values(positions * kRopeChunks, value);
  backend.upload(table.view().data(), values.data(), table.bytes());
  return table;
}

}  // namespace

Json with_greatest_size(const Method& method, std::size_t tokens, const Json& settings) {
  const Json sizes = method.settings_for_share(1, tokens, Json::object());
  Json all = settings, others = settings;
  for (const auto& [name, value] : sizes.items()) others.erase(name);
  all.update(method.settings_for_share(1, tokens, others));
  return all;
}

CacheSizes::CacheSizes(const Method& method, const CacheShape& shape, std::size_t tokens)
    : method_(&method), shape_(&shape), tokens_(tokens), backend_(std::make_unique<SizingBackend>()) {}

std::size_t CacheSizes::full() const {
  std::size_t values = 0;
  for (const LayerShape& layer : shape_->layers) values += layer.tokens_read(tokens_) * layer.values();
  return values * CacheBytes::kStoredValue;
}

std::size_t CacheSizes::run(LayerCache& cache, std::size_t layer, const Prefix& prefix) {
  const BackendTensor<float, 2> cosine = angles(*backend_, tokens_, 1), sine = angles(*backend_, tokens_, 0);
  const LayerShape& shape = shape_->layers[layer];
  const auto states_of_zeros = [&] { return zeros(*backend_, shape.kv_heads, tokens_, shape.head_dim); };
  const auto q = states_of_zeros(), k = states_of_zeros(), v = states_of_zeros();
  const OperandBuffer out(*backend_, tokens_, shape.kv_heads * shape.head_dim);
  const LayerStates states{.backend = *backend_,
                           .layer = layer,
                           .first_position = 0,
                           .rope = {cosine.view(), sine.view()},
                           .x = {},
                           .q = q.view(),
                           .k = k.view(),
                           .v = v.view(),
                           .window = shape.window};
  return attend_document(cache, prefix, states, out.get());
}

std::vector<std::size_t> CacheSizes::by_layer(const Json& settings) {
  Parameters parameters({{settings, "", ErrorCode::kUsage}}, *shape_);
  Cache cache = make_cache(*method_, parameters, *shape_);
  const bool by_itself = has_lists(settings, parameters.specs()) || skips_layers(parameters.resolved());
  std::map<std::tuple<std::type_index, LayerShape, std::size_t>, std::size_t> kinds;
  std::vector<std::size_t> bytes;
  for (std::size_t layer = 0; layer < shape_->layers.size(); ++layer) {
    if (!shape_->layers[layer].has_cache()) {
      bytes.push_back(0);
      continue;
    }
    LayerCache& one = cache.layer(layer);
    const auto [kind, is_new] =
        kinds.emplace(std::tuple(std::type_index(typeid(one)), shape_->layers[layer], by_itself ? layer : 0), 0);
    if (is_new) kind->second = run(one, layer, cache.prefix());
    bytes.push_back(kind->second);
  }
  return bytes;
}

std::size_t CacheSizes::total(const Json& settings) {
  const auto [known, is_new] = known_.emplace(settings.dump(), 0);
  if (is_new) {
    try {
      const auto bytes = by_layer(settings);
      known->second = std::reduce(bytes.begin(), bytes.end());
    } catch (...) {
      known_.erase(known);
      throw;
    }
  }
  return known->second;
}

Json CacheSizes::settings_for_share(const Json& settings, std::size_t kept) const {
  Json all = settings;
  all.update(method_->settings_for_share(static_cast<double>(kept) / static_cast<double>(tokens_), tokens_, settings));
  return all;
}

std::optional<std::size_t> CacheSizes::tried(const Json& settings) {
  try {
    return total(settings);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage && error.code() != ErrorCode::kData) throw;
    return std::nullopt;
  }
}

std::optional<Json> CacheSizes::fitted(const Json& settings, std::size_t bytes) {
  if (method_->settings_for_share == nullptr) return total(settings) <= bytes ? std::optional(settings) : std::nullopt;
  std::size_t low = 0, high = tokens_;  // low: too small for the method, or fits
  double low_bytes = 0, high_bytes = static_cast<double>(total(settings_for_share(settings, high)));
  if (high_bytes <= static_cast<double>(bytes)) return settings_for_share(settings, high);
  // Sizes are nearly linear in the kept share: two interpolated guesses often find the largest that fits and the next.
  for (std::size_t guesses = 0; high - low > 1; ++guesses) {
    const double share = (static_cast<double>(bytes) - low_bytes) / (high_bytes - low_bytes),
                 guess = guesses % 3 == 2 ? 0.5 : std::clamp(share, 0.0, 1.0);
    const std::size_t kept =
        std::clamp(low + static_cast<std::size_t>(guess * static_cast<double>(high - low)), low + 1, high - 1);
    const auto found = static_cast<double>(tried(settings_for_share(settings, kept)).value_or(0));
    if (found <= static_cast<double>(bytes)) {
      low = kept;
      low_bytes = found;
    } else {
      high = kept;
      high_bytes = found;
    }
  }
  if (low == 0) return std::nullopt;
  const Json all = settings_for_share(settings, low);
  return tried(all) ? std::optional(all) : std::nullopt;
}

std::size_t CacheSizes::least(const Json& settings) {
  if (method_->settings_for_share == nullptr) return total(settings);
  std::size_t low = 0, high = tokens_;
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (tried(settings_for_share(settings, middle)) ? high : low) = middle;
  }
  return total(settings_for_share(settings, high));
}

}  // namespace kvs::inline calibrate
