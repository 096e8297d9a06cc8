// SPDX-License-Identifier: Apache-2.0
#include "model/altup.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/decoder.h"

namespace kvs::inline model {
namespace {

BackendView<float, 2> rows_of(const BackendTensor<float, 3>& stream) {
  const auto [members, tokens, width] = stream.view().shape();
  return stream.view().reshape<2>({members * tokens, width});
}

/// Returns all streams, the first one first.
std::vector<BackendView<float, 2>> all_rows(const ResidualStream& hidden) {
  std::vector<BackendView<float, 2>> streams{rows_of(hidden.rows)};
  for (const BackendTensor<float, 3>& other : hidden.others) streams.push_back(rows_of(other));
  return streams;
}

std::vector<std::int32_t> numbers(std::size_t count) {
  std::vector<std::int32_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

/// Returns block `index` of blocks of as many rows as `like`.
BackendView<float, 2> row_block(const BackendView<float, 2>& all, std::size_t index,
                                const BackendView<float, 2>& like) {
  return {std::span<float>(all.data() + index * like.size(), like.size()), like.shape()};
}

/// Returns the inner product of each row's modalities with `coefficients`, plus `constant`: [row].
std::vector<float> weighted(std::span<const float> modalities, std::span<const float> coefficients, float constant) {
  const std::size_t count = coefficients.size();
  std::vector<float> sums(modalities.size() / count);
  for (std::size_t row = 0; row < sums.size(); ++row)
    sums[row] = std::inner_product(coefficients.begin(), coefficients.end(), &modalities[row * count], constant);
  return sums;
}

/// Returns the root mean square of each row; `least` bounds the mean from below.
std::vector<float> root_mean_squares(Backend& backend, const BackendView<float, 2>& rows, double least) {
  const std::vector<float> values = download(backend, rows);
  const std::size_t width = rows.extent(1);
  std::vector<float> roots(rows.extent(0));
  for (std::size_t row = 0; row < roots.size(); ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < width; ++i) sum += double{values[row * width + i]} * double{values[row * width + i]};
    roots[row] = static_cast<float>(std::sqrt(std::max(sum / static_cast<double>(width), least)));
  }
  return roots;
}

/// Returns the factors that give rows the root mean squares `wanted`.
std::vector<float> factors_to(std::span<const float> wanted, Backend& backend, const BackendView<float, 2>& rows) {
  constexpr double kLeast = 1e-5;
  std::vector<float> factors = root_mean_squares(backend, rows, kLeast);
  for (std::size_t row = 0; row < factors.size(); ++row) factors[row] = wanted[row] / factors[row];
  return factors;
}

}  // namespace

AltUp::AltUp(const Model& model)
    : model_(&model), x_(model.backend()), logits_(model.backend()), kept_(model.backend()) {}

void AltUp::begin(ResidualStream& hidden) {
  Backend& backend = model_->backend();
  const BackendView<float, 2> first = rows_of(hidden.rows);
  const Operand x = x_.operand(first.extent(0), first.extent(1));
  backend.narrow(first, x);
  const std::vector<float> wanted = root_mean_squares(backend, first, 0);
  hidden.others.reserve(model_->stream_projections().in.size());
  for (const std::unique_ptr<Weight>& projection : model_->stream_projections().in) {
    const BackendTensor<float, 3>& stream = hidden.others.emplace_back(backend, hidden.rows.view().shape());
    backend.linear(x, *projection, rows_of(stream), false);
    backend.scale_tokens(rows_of(stream).reshape<4>({1, 1, first.extent(0), first.extent(1)}),
                         factors_to(wanted, backend, rows_of(stream)));
  }
}

/// Returns the modalities of each row: [row, stream].
std::vector<float> AltUp::router(BackendView<const float, 2> rows, const StreamWeights& weights) {
  Backend& backend = model_->backend();
  const Operand x = x_.operand(rows.extent(0), rows.extent(1));
  backend.rms_norm(rows, weights.router_norm.gain.view(), model_->config().norm_epsilon, x);
  const BackendView<float, 2> out = logits_.matrix(rows.extent(0), weights.router->rows());
  backend.linear(x, *weights.router, out, false);
  std::vector<float> values = download(backend, out);
  for (float& value : values) value = std::tanh(value);
  return values;
}

void AltUp::predict(ResidualStream& hidden, const StreamWeights& weights) {
  Backend& backend = model_->backend();
  const std::vector<BackendView<float, 2>> streams = all_rows(hidden);
  const std::size_t count = streams.size(), rows = streams[0].extent(0);
  const std::vector<float> modalities = router(streams[0], weights);
  const std::vector<std::int32_t> all = numbers(rows);
  const BackendView<float, 2> kept = kept_.matrix(count * rows, streams[0].extent(1));
  for (std::size_t n = 0; n < count; ++n)
    backend.copy(row_block(kept, n, streams[n]).data(), streams[n].data(), streams[n].size() * sizeof(float));
  for (std::size_t to = 0; to < count; ++to)
    for (std::size_t from = 0; from < count; ++from) {
      const auto row = std::span(weights.prediction).subspan((to * count + from) * count, count);
      backend.add_rows(row_block(kept, from, streams[0]), all, weighted(modalities, row, 0), streams[to]);
    }
  backend.copy(kept.data(), streams[0].data(), streams[0].size() * sizeof(float));
}

void AltUp::correct(ResidualStream& hidden, const StreamWeights& weights) {
  Backend& backend = model_->backend();
  const std::vector<BackendView<float, 2>> streams = all_rows(hidden);
  const std::size_t count = streams.size(), rows = streams[0].extent(0), bytes = streams[0].size() * sizeof(float);
  const std::vector<float> modalities = router(streams[0], weights), minus(rows, -1.0F);
  const std::vector<std::int32_t> all = numbers(rows);
  const BackendView<float, 2> kept = kept_.matrix(count * rows, streams[0].extent(1)),
                              predicted = row_block(kept, 0, streams[0]), error = row_block(kept, 1, streams[0]);
  backend.copy(error.data(), streams[0].data(), bytes);
  backend.add_rows(predicted, all, minus, error);
  backend.copy(streams[0].data(), predicted.data(), bytes);
  for (std::size_t n = 0; n < count; ++n) {
    const auto row = std::span(weights.correction).subspan(n * count, count);
    backend.add_rows(error, all, weighted(modalities, row, 1), streams[n]);
  }
}

void AltUp::end(ResidualStream& hidden) {
  Backend& backend = model_->backend();
  const std::vector<BackendView<float, 2>> streams = all_rows(hidden);
  const std::size_t rows = streams[0].extent(0), width = streams[0].extent(1);
  const std::vector<float> wanted = root_mean_squares(backend, streams[0], 0);
  const std::vector<std::int32_t> all = numbers(rows);
  const float share = 1 / static_cast<float>(streams.size());
  backend.scale(streams[0], share);
  for (std::size_t n = 1; n < streams.size(); ++n) {
    const Operand x = x_.operand(rows, width);
    const BackendView<float, 2> projected = kept_.matrix(rows, width);
    backend.narrow(streams[n], x);
    backend.linear(x, *model_->stream_projections().out[n - 1], projected, false);
    std::vector<float> factors = factors_to(wanted, backend, projected);
    for (float& factor : factors) factor *= share;
    backend.add_rows(projected, all, factors, streams[0]);
  }
  hidden.others.clear();
}

}  // namespace kvs::inline model
