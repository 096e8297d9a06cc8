// SPDX-License-Identifier: Apache-2.0
#include "analyzers/moments.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "analyzers/matrix.h"
#include "core/error.h"

namespace kvs::inline analyzers {
namespace {

/// Returns one document's tokens of every head, [token, head_dim] each.
std::vector<Matrix> tokens_by_head(const DocumentStates& states, const MomentShape& shape, Backend& backend) {
  std::vector<Matrix> heads(shape.heads());
  for (const StateKind state : shape.states) {
    if (states[state].shape() != std::array{shape.kv_heads, shape.tokens, shape.head_dim})
      throw Error(ErrorCode::kInternal, "moments", std::string(name_of(state)) + " does not have the model's shape");
    const std::vector<float> host = download(backend, states[state]);
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      const float* const first = host.data() + (head * shape.tokens + shape.first_token) * shape.head_dim;
      heads[shape.first_head(state) + head] =
          Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
              first, to_index(shape.counted()), to_index(shape.head_dim))
              .cast<double>();
    }
  }
  return heads;
}

/// One product of a layer and the sum to which it is added.
struct Task {
  std::size_t left, right, lag;
  double* sum;
};

std::vector<Task> tasks_of(const MomentShape& shape, LayerMoments& moments) {
  std::vector<Task> tasks;
  std::size_t pair = 0;
  for (std::size_t left = 0; left < shape.whole_heads(); ++left)
    for (std::size_t right = 0; right <= left; ++right, ++pair)
      tasks.push_back({left, right, 0, moments.pairs.data() + pair * shape.square()});
  for (std::size_t head = shape.whole_heads(); head < shape.heads(); ++head)
    tasks.push_back({head, head, 0, moments.rotated.data() + (head - shape.whole_heads()) * shape.square()});
  double* lagged = moments.lags.data();
  for (std::size_t head = 0; head < shape.whole_heads(); ++head)
    for (std::size_t lag = 1; lag < shape.lags(); ++lag, lagged += shape.triangle())
      tasks.push_back({head, head, lag, lagged});
  return tasks;
}

void add_product(const Task& task, const std::vector<Matrix>& heads, Matrix& product) {
  const Matrix &left = heads[task.left], &right = heads[task.right];
  const Eigen::Index rows = left.rows() - to_index(task.lag), size = left.cols();
  product.noalias() = left.topRows(rows).transpose() * right.bottomRows(rows);
  if (task.lag == 0) {
    Eigen::Map<Matrix>(task.sum, size, size) += product;
    return;
  }
  double* to = task.sum;
  for (Eigen::Index row = 0; row < size; ++row)
    for (Eigen::Index column = 0; column <= row; ++column) *to++ += 0.5 * (product(row, column) + product(column, row));
}

void add_rows(const std::vector<Matrix>& heads, const MomentShape& shape, LayerMoments& moments) {
  const auto row_of = [&](std::vector<double>& values, std::size_t row) {
    return Eigen::Map<Eigen::RowVectorXd>(values.data() + row * shape.head_dim, to_index(shape.head_dim));
  };
  for (std::size_t head = 0; head < heads.size(); ++head) row_of(moments.sum, head) += heads[head].colwise().sum();
  std::size_t row = 0;
  for (std::size_t head = 0; head < shape.whole_heads(); ++head) {
    for (std::size_t lag = 1; lag < shape.lags(); ++lag) {
      row_of(moments.edges, row++) += heads[head].row(to_index(lag - 1));
      row_of(moments.edges, row++) += heads[head].row(to_index(shape.counted() - lag));
    }
  }
}

/// Number of products of heads in a layer.
struct ProductCounts {
  explicit ProductCounts(const MomentShape& shape) {
    const auto heads = static_cast<double>(shape.heads()), whole = static_cast<double>(shape.whole_heads());
    squares = whole * (whole + 1) / 2 + heads - whole;
    lagged = whole * static_cast<double>(shape.lags() - 1);
  }
  double squares = 0, lagged = 0;
};

/// The vectors of one layer, in a checkpoint's order.
auto tables(auto& moments) {
  return std::array{&moments.sum, &moments.edges, &moments.pairs, &moments.rotated, &moments.lags, &moments.queries};
}

}  // namespace

std::size_t MomentShape::first_head(StateKind state) const noexcept {
  if (state == StateKind::kKPost) return whole_heads();
  return state == StateKind::kV && states.contains(StateKind::kKPre) ? kv_heads : 0;
}

LayerMoments::LayerMoments(const MomentShape& shape)
    : sum(shape.heads() * shape.head_dim),
      edges(shape.whole_heads() * (shape.lags() - 1) * 2 * shape.head_dim),
      pairs(shape.whole_heads() * (shape.whole_heads() + 1) / 2 * shape.square()),
      rotated((shape.heads() - shape.whole_heads()) * shape.square()),
      lags(shape.whole_heads() * (shape.lags() - 1) * shape.triangle()),
      queries(shape.queries ? shape.kv_heads * shape.head_dim : 0) {}

double moment_bytes(const MomentShape& shape, std::size_t layers) {
  const ProductCounts counts(shape);
  return static_cast<double>(sizeof(double) * layers) *
         (counts.squares * static_cast<double>(shape.square()) + counts.lagged * static_cast<double>(shape.triangle()));
}

double moment_flops(const MomentShape& shape, std::size_t layers) {
  const ProductCounts counts(shape);
  return 2 * static_cast<double>(layers * shape.square() * shape.counted()) * (counts.squares + counts.lagged);
}

MomentSource::MomentSource(StateSource& inner, const MomentShape& shape, std::vector<std::size_t> layers)
    : inner_(&inner), shape_(shape), layers_(std::move(layers)), moments_(layers_.size(), LayerMoments(shape)) {}

void MomentSource::visit(std::size_t document, const StateNeeds& needs, const Sink& sink) {
  StateNeeds more = needs;
  more.states.insert(shape_.states.begin(), shape_.states.end());
  if (shape_.queries) more.states.insert(StateKind::kQPre);
  inner_->visit(document, more, [&](const DocumentStates& states) {
    sink(states);
    const auto at = std::ranges::lower_bound(layers_, states.layer);
    if (at == layers_.end() || *at != states.layer)
      throw Error(ErrorCode::kInternal, "moments", "layer " + std::to_string(states.layer) + " was not announced");
    add_states(states, moments_[static_cast<std::size_t>(at - layers_.begin())]);
  });
}

void MomentSource::add_states(const DocumentStates& states, LayerMoments& moments) {
  const std::vector<Matrix> heads = tokens_by_head(states, shape_, backend());
  const std::vector<Task> tasks = tasks_of(shape_, moments);
  // Memory is allocated here, because exceptions must not leave a parallel region. Inside the region each Eigen product
  // runs on one thread, so the results do not depend on the number of threads.
  std::vector<Matrix> products(static_cast<std::size_t>(omp_get_max_threads()),
                               Matrix(to_index(shape_.head_dim), to_index(shape_.head_dim)));
#pragma omp parallel for schedule(dynamic) num_threads(static_cast <int>(products.size()))
  for (const Task& task : tasks) add_product(task, heads, products[static_cast<std::size_t>(omp_get_thread_num())]);
  add_rows(heads, shape_, moments);
  if (shape_.queries) add_queries(states, moments);
}

void MomentSource::add_queries(const DocumentStates& states, LayerMoments& moments) {
  const std::size_t chunks = rope(states.layer).cosine.extent(1), head_dim = shape_.head_dim;
  const std::vector<float> host = download(backend(), states[StateKind::kQPre]);
  const std::size_t query_heads = states[StateKind::kQPre].extent(0), group = query_heads / shape_.kv_heads;
  std::vector<double> sums(moments.queries.size());  // of the document alone: a KV head has several query heads
  for (std::size_t query = 0; query < query_heads; ++query) {
    const float* const first = host.data() + (query * shape_.tokens + shape_.first_token) * head_dim;
    const Eigen::RowVectorXd energy =
        Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
            first, to_index(shape_.counted()), to_index(head_dim))
            .cast<double>()
            .colwise()
            .squaredNorm();
    double* const to = sums.data() + query / group * head_dim;
    for (std::size_t channel = 0; channel < head_dim; ++channel) {
      const bool turns = channel < 2 * chunks;
      const std::size_t other = !turns ? channel : channel < chunks ? channel + chunks : channel - chunks;
      to[channel] += 0.5 * (energy(to_index(channel)) + energy(to_index(other)));
    }
  }
  std::ranges::transform(moments.queries, sums, moments.queries.begin(), std::plus());
}

std::vector<std::span<const double>> MomentSource::sums() const {
  std::vector<std::span<const double>> all;
  for (const LayerMoments& layer : moments_)
    for (const std::vector<double>* table : tables(layer)) all.emplace_back(*table);
  return all;
}

std::vector<std::vector<double>*> MomentSource::all_tables() {
  std::vector<std::vector<double>*> all;
  for (LayerMoments& layer : moments_)
    for (std::vector<double>* table : tables(layer)) all.push_back(table);
  return all;
}

void MomentSource::check_sizes(std::span<const std::vector<double>> sums) {
  if (!std::ranges::equal(
          all_tables(), sums, {}, [](const auto* table) { return table->size(); },
          [](const auto& saved) { return saved.size(); }))
    throw Error(ErrorCode::kInput, "spectrum checkpoint", "its moments do not have this run's sizes");
}

void MomentSource::restore(std::span<const std::vector<double>> sums) {
  check_sizes(sums);
  const auto own = all_tables();
  for (std::size_t n = 0; n < own.size(); ++n) *own[n] = sums[n];
}

std::vector<std::vector<double>> MomentSource::take_sums() {
  std::vector<std::vector<double>> all;
  for (std::vector<double>* const table : all_tables()) all.push_back(std::move(*table));
  return all;
}

void MomentSource::add(std::span<const std::vector<double>> sums) {
  check_sizes(sums);
  const auto own = all_tables();
  for (std::size_t n = 0; n < own.size(); ++n) std::ranges::transform(*own[n], sums[n], own[n]->begin(), std::plus());
}

}  // namespace kvs::inline analyzers
