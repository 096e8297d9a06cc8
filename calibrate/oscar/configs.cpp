// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>

#include "calibrate/cache_choice.h"
#include "calibrate/calibration.h"
#include "calibrate/oscar/cache.h"
#include "calibrate/oscar/caches.h"
#include "calibrate/oscar/config_file.h"
#include "calibrate/oscar/target_sums.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "eval/cache_quality.h"
#include "model/cache_shape.h"
#include "states/live_source.h"

namespace kvs::inline calibrate {
namespace {

/// The rotations of every layer, and the parameters of the cache, all of which may be overridden.
class LoadedOscar final : public LoadedConfig {
 public:
  LoadedOscar(const Json& config, const std::filesystem::path& path, const ModelConfig& model)
      : rotations_(read_rotations(config, path)), parameters_(config.at("parameters")), shape_(cache_shape(model)) {}

  Json parameters() const override { return parameters_; }
  void check_settings(const Json&, const std::string&) const override {}
  void read(Parameters& parameters) const override { (void)make_cache(kOscarMethod, parameters, shape_); }
  std::function<Cache()> caches(Backend& backend, const ModelConfig& model, Parameters& parameters,
                                std::size_t) const override {
    return oscar_caches(backend, model, parameters, rotations_);
  }
  std::size_t shared_bytes() const noexcept override { return kvs::shared_bytes(rotations_); }

 private:
  std::vector<OscarRotations> rotations_;
  Json parameters_;
  CacheShape shape_;
};

std::shared_ptr<const LoadedConfig> load_oscar(const Json& config, const std::filesystem::path& path,
                                               const ModelSource& source) {
  return std::make_shared<LoadedOscar>(config, path, source.config());
}

/// Returns the stored bytes of a document with `exact` tokens in 16 bits. Layers with a window keep what they read.
double oscar_bytes(const CacheShape& shape, std::size_t tokens, std::size_t exact) {
  std::size_t bytes = 0;
  for (const LayerShape& layer : shape.layers) {
    if (!layer.has_cache()) continue;
    const bool coded = layer.window == 0;
    bytes += (coded ? exact : layer.tokens_read(tokens)) * layer.values() * CacheBytes::kStoredValue;
    const auto group = static_cast<std::uint32_t>(OscarOptions().values_of_group(layer.head_dim));
    if (coded) bytes += (tokens - exact) * rows_bytes({.kind = RowKind::kKivi2, .group = group}, layer.values(), 1);
  }
  return static_cast<double>(bytes);
}

/// Returns the settings for a share: the authors' groups and clipping, and as many tokens in 16 bits as fit, of which a
/// fifth are sinks, as in the authors' 64 and 256.
/// @throws Error kUsage if no token is left for the recent ones
Json oscar_for_share(double share, std::size_t tokens, const ModelConfig& model) {
  const CacheShape shape = cache_shape(model);
  const double bytes = share * full_cache_bytes(model, tokens);
  std::size_t exact = 0;
  while (exact < tokens && oscar_bytes(shape, tokens, exact + 1) <= bytes) ++exact;
  if (exact == 0) throw Error(ErrorCode::kUsage, "oscar", "needs more for codes of 2 bits and their scales");
  const std::size_t sinks = std::min(OscarOptions().sinks, exact / 5);
  return {{"sinks", sinks}, {"recent", exact - sinks}};
}

/// One set of rotations, with as many tokens in 16 bits as each budget holds.
class OscarConfigs final : public ConfigSeries {
 public:
  explicit OscarConfigs(const SeriesInput& input)
      : source_(input.source),
        backend_(input.backend),
        tokens_(input.tokens),
        states_(input.decoder, {input.documents.begin(), input.documents.end()}),
        sums_(input.source) {}

  void write(double share, const std::filesystem::path& file, const Provenance& provenance, bool force,
             const SeriesProgress& progress) override {
    const CacheChoice choice{
        .method = &kOscarMethod,
        .parameters = {{oscar_for_share(share, tokens_, source_.config()), "oscar ", ErrorCode::kUsage}}};
    Json parameters = choice.resolved(source_.config());
    for (; summed_ < states_.documents(); ++summed_) {
      progress("covariances", summed_, states_.documents());
      check_interrupt();
      sums_.add(states_, summed_);
    }
    const auto ops = make_calibration_ops(backend_);
    (void)write_oscar_config(sums_.rotations(*ops), source_, std::move(parameters), provenance, file, force);
  }

 private:
  const ModelSource& source_;
  Backend& backend_;
  std::size_t tokens_;
  LiveSource states_;
  OscarSums sums_;
  std::size_t summed_ = 0;  // documents
};

std::unique_ptr<ConfigSeries> start_oscar(const SeriesInput& input) {
  refuse_obstacle(obstacle_of(kOscarMethod, input.source.config()), "kvcalibrate oscar", input.source.config());
  return std::make_unique<OscarConfigs>(input);
}

double oscar_passes(const SeriesSize& size, std::size_t) { return 1.5 * static_cast<double>(size.documents); }
double oscar_coded_values(const SeriesSize&, std::size_t, std::size_t) { return 0; }
double oscar_series_memory(const SeriesSize& size) { return oscar_memory(size.model); }

constexpr SeriesMethod kOscarSeries[] = {{.name = "oscar",
                                          .takes_kv_type = false,
                                          .priority = 8,
                                          .start = start_oscar,
                                          .passes = oscar_passes,
                                          .coded_values = oscar_coded_values,
                                          .memory = oscar_series_memory}};

}  // namespace

std::function<Cache()> oscar_caches(Backend& backend, const ModelConfig& model, const Parameters& parameters,
                                    const std::vector<OscarRotations>& layers) {
  std::vector<std::shared_ptr<const OscarProducts>> products(model.layers());
  for (const OscarRotations& one : layers) products[one.layer] = make_oscar_products(backend, one);
  return [given = parameters, shape = cache_shape(model), products = std::move(products)] {
    Parameters own = given;
    const LayerMaker make = [&](Parameters& of_layer, const CacheLayer& layer) {
      return make_oscar_cache(oscar_options(of_layer), layer.shape.head_dim, products[layer.index]);
    };
    return make_cache(kOscarMethod, make, own, shape);
  };
}

constinit const Calibration kOscarCalibration{.method = &kOscarMethod, .load = load_oscar, .series = kOscarSeries};

}  // namespace kvs::inline calibrate
