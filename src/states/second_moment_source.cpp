// SPDX-License-Identifier: Apache-2.0
#include "states/second_moment_source.h"

#include <algorithm>

#include "turns/turns.h"

namespace kvs::inline states {

void add_second_moment(CalibrationOps& ops, Backend& backend, std::span<const float> rows, std::size_t columns,
                       std::span<double> sum) {
  const std::size_t count = rows.size() / columns;
  const BackendTensor<float, 2> wide(backend, {count, columns});
  backend.upload(wide.view().data(), rows.data(), wide.bytes());
  const OperandBuffer operand(backend, count, columns);
  backend.narrow(wide.view(), operand.get());
  ops.accumulate_second_moment(operand.get(), {sum, {columns, columns}});
}

void SecondMomentSource::visit(std::size_t document, const StateNeeds& needs, const Sink& sink) {
  StateNeeds more = needs;
  more.x = true;
  inner_.visit(document, more, [&](const DocumentStates& states) {
    const auto index = static_cast<std::size_t>(std::ranges::find(layers_, states.layer) - layers_.begin());
    const std::size_t size = d_model_ * d_model_;
    ops_.accumulate_second_moment(states.x, {moments_.subspan(index * size, size), {d_model_, d_model_}});
    sink(states);
  });
}

std::vector<double> second_moments(StateSource& source, CalibrationOps& ops, const std::vector<std::size_t>& layers,
                                   std::size_t d_model, const std::function<void(std::size_t)>& done) {
  std::vector<double> moments(layers.size() * d_model * d_model);
  SecondMomentSource tapped(source, ops, layers, d_model, moments);
  done(0);
  run_in_groups(
      0, source.documents(), source.visits_together(0),
      [&](std::size_t document) { tapped.visit(document, {.layers = layers}, [](const DocumentStates&) {}); },
      [&](std::size_t document) { done(document + 1); });
  return moments;
}

}  // namespace kvs::inline states
