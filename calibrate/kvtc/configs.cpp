// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "calibrate/calibration.h"
#include "calibrate/kvtc/cache.h"
#include "calibrate/kvtc/calibration.h"
#include "calibrate/kvtc/config_file.h"
#include "calibrate/kvtc/cost.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "eval/cache_quality.h"
#include "model/work.h"
#include "states/live_source.h"

namespace kvs::inline calibrate {
namespace {

class LoadedKvtc final : public LoadedConfig {
 public:
  explicit LoadedKvtc(KvtcConfig config) : config_(std::move(config)) {}

  void check_settings(const Json& settings, const std::string& option) const override {
    if (!settings.empty())
      throw Error(ErrorCode::kUsage, option + ' ' + settings.items().begin().key(),
                  "cannot be combined with a --config of " + std::string(kKvtcMethod.name));
  }
  void read(Parameters&) const override {}
  std::function<Cache()> caches(Backend& backend, const ModelConfig& model, Parameters&, std::size_t) const override {
    const auto caches = std::make_shared<KvtcCaches>(backend, model, config_.pools, config_.tokens);
    return [caches] { return caches->make(); };
  }
  std::size_t shared_bytes() const noexcept override { return kvs::shared_bytes(config_.pools); }

 private:
  KvtcConfig config_;
};

std::shared_ptr<const LoadedConfig> load_kvtc(const Json& config, const std::filesystem::path& path,
                                              const ModelSource&) {
  return std::make_shared<LoadedKvtc>(read_kvtc_pools(config, path));
}

/// The sinks and recent tokens of a comparison: those of the `transform` series, so that `compare` compares the codes.
/// With the paper's 128 recent tokens in 16 bits a document of 1,024 tokens takes 14 % before anything is coded.
KvtcTokens compared_tokens(std::size_t tokens) {
  constexpr std::size_t kMost = 16, kShare = 32;
  const std::size_t recent = std::max<std::size_t>(1, std::min(kMost, tokens / kShare));
  return {.sinks = 1, .recent = recent, .block = recent, .type = KvtcRecent::kQ8_0};
}

class KvtcConfigs final : public ConfigSeries {
 public:
  explicit KvtcConfigs(const SeriesInput& input)
      : source_(input.source),
        backend_(input.backend),
        plan_{.bytes = 0, .tokens = input.tokens, .held = compared_tokens(input.tokens)},
        max_share_(input.max_share),
        states_(input.decoder, {input.documents.begin(), input.documents.end()}),
        moments_(kvtc_pools(input.source.config()), plan_.held.sinks, plan_.held.block) {}

  void write(double share, const std::filesystem::path& file, const Provenance& provenance, bool force,
             const SeriesProgress& progress) override {
    constexpr double kReserve = 0.98;  // codes of another text than the calibration's may be larger
    const KvtcPlan plan = plan_for(kReserve * share);
    if (kvtc_code_bytes(moments_.pools(), plan) == 0)
      throw Error(ErrorCode::kUsage, "kvtc", "needs more for sinks and tokens that wait");
    if (!bases_) {
      for (std::size_t n = 0; n < states_.documents(); ++n) {
        progress("moments", n, states_.documents());
        check_interrupt();
        moments_.add(states_, n);
      }
      const auto ops = make_calibration_ops(backend_);
      bases_.emplace(*ops, moments_, kvtc_bits(moments_.pools(), plan_for(max_share_), kKvtcMaxGain), progress);
    }
    (void)write_kvtc_config(calibrate_kvtc(*bases_, moments_, plan, progress), source_, provenance, file, force);
  }

 private:
  KvtcPlan plan_for(double share) const {
    KvtcPlan plan = plan_;
    plan.bytes = static_cast<std::size_t>(share * full_cache_bytes(source_.config(), plan.tokens));
    return plan;
  }

  const ModelSource& source_;
  Backend& backend_;
  KvtcPlan plan_;
  double max_share_;
  LiveSource states_;
  KvtcMoments moments_;
  std::optional<KvtcBases> bases_;
};

std::unique_ptr<ConfigSeries> start_kvtc(const SeriesInput& input) {
  refuse_obstacle(obstacle_of(kKvtcMethod, input.source.config()), "kvcalibrate kvtc", input.source.config());
  return std::make_unique<KvtcConfigs>(input);
}

double kvtc_passes(const SeriesSize& size, std::size_t) {
  return kvtc_flops(size.model, size.documents, size.tokens) /
         forward_flops(size.model, static_cast<double>(size.tokens));
}
double kvtc_coded_values(const SeriesSize&, std::size_t, std::size_t) { return 0; }
double kvtc_series_memory(const SeriesSize& size) { return kvtc_memory(size.model); }

constexpr SeriesMethod kKvtcSeries[] = {{.name = "kvtc",
                                         .takes_kv_type = false,
                                         .priority = 7,
                                         .start = start_kvtc,
                                         .passes = kvtc_passes,
                                         .coded_values = kvtc_coded_values,
                                         .memory = kvtc_series_memory}};

}  // namespace

constinit const Calibration kKvtcCalibration{.method = &kKvtcMethod, .load = load_kvtc, .series = kKvtcSeries};

}  // namespace kvs::inline calibrate
