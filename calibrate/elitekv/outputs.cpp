// SPDX-License-Identifier: Apache-2.0
#include "calibrate/elitekv/outputs.h"

#include <Eigen/Dense>
#include <algorithm>

#include "caches/full.h"
#include "calibrate/elitekv/caches.h"
#include "calibrate/elitekv/config.h"
#include "core/interrupt.h"
#include "model/passes_together.h"
#include "states/second_moment_source.h"
#include "turns/turns.h"

namespace kvs::inline calibrate {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Runs a layer's cache and a full cache on the same states, and adds Σ y yᵀ of their outputs y = [the cache's, the
/// model's] of each token.
class OutputMoments {
 public:
  OutputMoments(CalibrationOps& ops, const EliteCaches& caches, const std::vector<EliteLayer>& layers,
                std::size_t channels)
      : ops_(&ops), caches_(&caches), layers_(&layers), channels_(channels), sums_(layers.size()) {
    for (std::vector<double>& sum : sums_) sum.resize(4 * channels * channels);
  }

  Cache make_cache() const { return caches_->make(); }

  /// Adds the states of a layer of one document.
  void add(const LayerStates& states, Cache& cache) {
    const auto at = std::ranges::find(*layers_, states.layer, &EliteLayer::layer);
    if (at == layers_->end()) return;
    const std::size_t rows = states.tokens();
    std::vector<float> joined(rows * 2 * channels_);
    const std::unique_ptr<LayerCache> full = make_full_cache();
    add_output(states, cache.layer(states.layer), joined, 0);
    add_output(states, *full, joined, channels_);
    add_second_moment(*ops_, states.backend, joined, 2 * channels_,
                      sums_[static_cast<std::size_t>(at - layers_->begin())]);
  }

  std::vector<float> fitted(std::size_t n) const {
    constexpr double kRidge = 0.1, kLeast = 1e-30;
    const auto size = static_cast<Eigen::Index>(channels_);
    const Eigen::Map<const Matrix> sum(sums_[n].data(), 2 * size, 2 * size);
    const Eigen::VectorXd ridge = (kRidge * sum.topLeftCorner(size, size).diagonal()).array() + kLeast;
    Matrix own = sum.topLeftCorner(size, size), cross = sum.topRightCorner(size, size);
    own.diagonal() += ridge;
    cross.diagonal() += ridge;
    const Matrix solution = own.llt().solve(cross).transpose();
    return {solution.data(), solution.data() + solution.size()};
  }

 private:
  /// Writes the cache's output of these states to columns of `to` from `first` on.
  void add_output(const LayerStates& states, LayerCache& cache, std::vector<float>& to, std::size_t first) const {
    Backend& backend = states.backend;
    const BackendTensor<float, 4> q = copy_of<float, 4>(backend, states.q), k = copy_of<float, 4>(backend, states.k),
                                  v = copy_of<float, 4>(backend, states.v);
    LayerStates copies = states;
    copies.q = q.view();
    copies.k = k.view();
    copies.v = v.view();
    const std::size_t rows = states.tokens();
    const OperandBuffer out(backend, rows, channels_);
    cache.attend(copies, out.get());
    const std::vector<float> values = download(backend, out.get());
    for (std::size_t row = 0; row < rows; ++row)
      std::copy_n(&values[row * channels_], channels_, &to[row * 2 * channels_ + first]);
  }

  CalibrationOps* ops_;
  const EliteCaches* caches_;
  const std::vector<EliteLayer>* layers_;
  std::size_t channels_;
  std::vector<std::vector<double>> sums_;  // [layer][2 · channels, 2 · channels]
};

/// Adds the states of one document.
class OutputHook final : public StateHook {
 public:
  explicit OutputHook(OutputMoments& moments) : moments_(&moments), cache_(moments.make_cache()) {}
  void before_rope(LayerStates& states) override { moments_->add(states, cache_); }

 private:
  OutputMoments* moments_;
  Cache cache_;
};

}  // namespace

double output_sum_bytes(const ModelConfig& model) noexcept {
  const auto channels = static_cast<double>(model.query_heads() * model.head_dim());
  return 4 * channels * channels * sizeof(double);
}

std::vector<FactorTensor> fit_outputs(Decoder& decoder, CalibrationOps& ops, const std::vector<EliteLayer>& layers,
                                      std::span<const std::vector<std::int32_t>> documents,
                                      const std::function<void(std::size_t)>& done) {
  const Model& model = decoder.model();
  const std::size_t channels = model.config().query_heads() * model.config().head_dim();
  const EliteCaches caches(model.backend(), model.config(), layers, documents.front().size());
  OutputMoments moments(ops, caches, layers, channels);
  const auto add = [&](std::size_t n) {
    check_interrupt();
    OutputHook hook(moments);
    ResidualStream hidden = decoder.embed(documents[n]);
    decoder.advance(hidden, layers.back().layer + 1, &hook);
  };
  run_in_groups(0, documents.size(), passes_together(model, documents.front().size()), add,
                [&](std::size_t n) { done(n + 1); });
  std::vector<FactorTensor> tensors;
  for (std::size_t n = 0; n < layers.size(); ++n)
    tensors.push_back({elite_output(layers[n].layer), {channels, channels}, moments.fitted(n)});
  return tensors;
}

}  // namespace kvs::inline calibrate
