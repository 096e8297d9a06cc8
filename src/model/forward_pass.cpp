// SPDX-License-Identifier: Apache-2.0
#include "model/forward_pass.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "core/interrupt.h"

namespace kvs::inline model {

ForwardPass::ForwardPass(const Model& weights)
    : model(weights),
      backend(weights.backend()),
      config(weights.config()),
      normed(backend),
      wide(backend),
      q(backend),
      k(backend),
      v(backend),
      mixed(backend),
      summed(backend),
      last(backend),
      routed(backend),
      sparse(backend),
      recurrent(backend),
      latent(backend),
      altup(weights),
      laurel(backend) {}

/// Computes the input of a block or the head from the residual stream; without a norm, the rows themselves.
void ForwardPass::normalise(BackendView<const float, 2> rows, const NormWeights& norm, const Operand& out) {
  if (norm.gain.view().empty()) {
    backend.narrow(rows, out);
  } else if (config.arithmetic.norm == NormKind::kLayer) {
    backend.layer_norm(rows, norm.gain.view(), norm.bias.view(), config.norm_epsilon, out);
  } else {
    backend.rms_norm(rows, norm.gain.view(), config.norm_epsilon, out);
  }
}

/// residual += x Wᵀ, or += norm(x Wᵀ) if the architecture normalises a block's output.
void ForwardPass::add_to_residual(const Operand& x, const Weight& weight, const NormWeights& norm,
                                  const BackendView<float, 2>& residual) {
  if (norm.gain.view().empty()) return backend.linear(x, weight, residual, true);
  for (std::size_t first = 0; first < x.rows; first += kSlabRows) {
    const std::size_t count = std::min(kSlabRows, x.rows - first);
    const BackendView<float, 2> yielded = wide.matrix(count, weight.rows());
    backend.linear(operand_rows(backend, x, first, count), weight, yielded, false);
    backend.rms_norm_add(yielded, norm.gain.view(), config.norm_epsilon, row_range(residual, first, count));
  }
}

/// Copies the last token of each member to `kept`. In a layer without a window, attention carries a non-finite value of
/// any token to the last token.
void ForwardPass::keep_last_rows(const ResidualStream& hidden, const BackendView<float, 2>& kept) {
  const BackendView<float, 2> residual = as_rows(hidden);
  for (std::size_t member = 0; member < hidden.members(); ++member) {
    const BackendView<float, 2> row = row_range(residual, (member + 1) * hidden.tokens() - 1, 1);
    backend.copy(row_range(kept, member, 1).data(), row.data(), row.size() * sizeof(float));
  }
}

/// @param kept  rows of keep_last_rows() for the layers from first_layer on, `members` rows each
void ForwardPass::check_finite(const BackendView<float, 2>& kept, std::size_t members, std::size_t first_layer) {
  const std::vector<float> values = download(backend, kept);
  const auto bad = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
  if (bad == values.end()) return;
  const std::size_t row = static_cast<std::size_t>(bad - values.begin()) / config.d_model;
  throw Error(ErrorCode::kData, config.name + ": layer " + std::to_string(first_layer + row / members),
              "found NaN or infinity in the residual stream after this layer, expected finite activations");
}

void ForwardPass::run_layer(ResidualStream& hidden, std::size_t layer, StateHook* hook, Cache* cache) {
  const bool streams = !hidden.others.empty();
  if (streams) altup.predict(hidden, model.layer(layer).streams);
  mix(hidden, layer, hook, cache);
  feed_forward(hidden, layer);
  if (streams) altup.correct(hidden, model.layer(layer).streams);
  if (hidden.layer_inputs != nullptr) add_layer_input(hidden, layer);
  if (const float scale = model.layer(layer).scale; scale != 1) backend.scale(as_rows(hidden), scale);
}

/// Results are checked once, at the end: a download after every layer would leave a GPU idle.
void ForwardPass::advance(ResidualStream& hidden, std::size_t last_layer, StateHook* hook, Cache* cache) {
  const std::size_t first = hidden.next_layer, members = hidden.members();
  if (first >= last_layer) return;
  // Between two streamed layers, other passes may go on (turns/turns.h).
  BackendTensor<float, 2> own;
  if (model.placement().streamed_layers > 0)
    own = BackendTensor<float, 2>(backend, {(last_layer - first) * members, config.d_model});
  const BackendView<float, 2> kept =
      own.bytes() > 0 ? own.view() : last.matrix((last_layer - first) * members, config.d_model);
  const auto check = [&] { check_finite(row_range(kept, 0, (hidden.next_layer - first) * members), members, first); };
  try {
    for (; hidden.next_layer < last_layer; ++hidden.next_layer) {
      check_interrupt();
      run_layer(hidden, hidden.next_layer, hook, cache);
      keep_last_rows(hidden, row_range(kept, (hidden.next_layer - first) * members, members));
    }
  } catch (const Error& error) {
    // A hook may be the first to refuse states that result from an earlier layer's overflow; that layer is the cause.
    if (error.code() != ErrorCode::kEnvironment) check();
    throw;
  }
  check();
  if (!hidden.others.empty() && last_layer == config.layers()) altup.end(hidden);
}

}  // namespace kvs::inline model
