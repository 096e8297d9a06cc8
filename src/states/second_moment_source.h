// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kernels/calibration_ops.h"
#include "states/state_source.h"

namespace kvs::inline states {

/// sum += Σ x xᵀ of `rows` [row, columns], in the backend's compute type. sum: [columns, columns]
void add_second_moment(CalibrationOps& ops, Backend& backend, std::span<const float> rows, std::size_t columns,
                       std::span<double> sum);

/// Passes on another source's states and adds Σ x xᵀ of each layer: x exists only while the model runs.
class SecondMomentSource final : public StateSource {
 public:
  /// @param inner    provides x: a live model
  /// @param layers   the layers that will be requested
  /// @param moments  [layer, d_model, d_model], added to
  SecondMomentSource(StateSource& inner, CalibrationOps& ops, std::span<const std::size_t> layers, std::size_t d_model,
                     std::span<double> moments)
      : inner_(inner), ops_(ops), layers_(layers), d_model_(d_model), moments_(moments) {}

  std::size_t documents() const noexcept override { return inner_.documents(); }
  std::size_t tokens() const noexcept override { return inner_.tokens(); }
  Backend& backend() const noexcept override { return inner_.backend(); }
  RopeTable rope(std::size_t layer) const override { return inner_.rope(layer); }
  void visit(std::size_t document, const StateNeeds& needs, const Sink& sink) override;

 private:
  StateSource& inner_;
  CalibrationOps& ops_;
  std::span<const std::size_t> layers_;
  std::size_t d_model_;
  std::span<double> moments_;
};

/// Returns Σ x xᵀ of each layer over all documents of `source`: [layer, d_model, d_model]. One pass.
/// @param done  called with the number of documents done
std::vector<double> second_moments(StateSource& source, CalibrationOps& ops, const std::vector<std::size_t>& layers,
                                   std::size_t d_model, const std::function<void(std::size_t)>& done);

}  // namespace kvs::inline states
