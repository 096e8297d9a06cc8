// SPDX-License-Identifier: Apache-2.0
#include "calibrate/oscar/cache.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "caches/token_rows.h"
#include "caches/token_steps.h"
#include "calibrate/common/norm_order.h"
#include "calibrate/method.h"
#include "core/error.h"

namespace kvs::inline calibrate {
namespace {

constexpr std::size_t kLeastGroup = 4;  // values of a byte

/// Rotated keys or values of one sequence. The 16-bit rows are the sinks and a ring of the last tokens. Keys are
/// already rotated to their positions, so their order has no effect.
class OscarRows {
 public:
  OscarRows(const OscarOptions& options, std::size_t group, double clip)
      : sinks_(options.sinks),
        recent_(options.recent),
        clip_(clip),
        coded_({{.kind = RowKind::kKivi2, .group = static_cast<std::uint32_t>(group)}}) {}

  const StoredRows& coded() const noexcept { return coded_.held(); }
  const StoredRows& exact() const noexcept { return exact_.held(); }
  CacheBytes bytes() const noexcept {
    CacheBytes bytes = coded_.bytes();
    return bytes += exact_.bytes();
  }

  /// Stores rows in 16 bits, and codes none.
  void append(Backend& backend, const BackendView<float, 4>& rows) { exact_.append(backend, rows, 0, rows.extent(2)); }
  /// Stores the row of one token, and codes the row of the token that leaves the last ones.
  void add(Backend& backend, const BackendView<float, 4>& row) {
    if (exact_.count() < sinks_ + recent_) return append(backend, row);
    code(backend, sinks_ + oldest_, 1);
    exact_.put(backend, sinks_ + oldest_, row, 0, 1);
    oldest_ = (oldest_ + 1) % recent_;
  }
  /// Codes all rows between the sinks and the last ones.
  void code_old(Backend& backend) {
    if (exact_.count() <= sinks_ + recent_) return;
    const std::size_t count = exact_.count() - sinks_ - recent_;
    code(backend, sinks_, count);
    exact_.keep(backend, sinks_, count, std::vector<std::vector<std::size_t>>(exact().shape[1]));
  }

 private:
  void code(Backend& backend, std::size_t first, std::size_t count) {
    const RowBuffer::Part part = exact_.copy(backend, first, count);
    std::vector<float> rows = download(backend, part.view());
    const std::size_t values = part.view().extent(3);
    for (std::size_t at = 0; at < rows.size(); at += values) clip_row(std::span(rows).subspan(at, values), clip_);
    backend.upload(part.view().data(), rows.data(), part.bytes());
    coded_.append(backend, part.view(), 0, count);
  }

  std::size_t sinks_, recent_;
  double clip_;
  RowBuffer coded_, exact_;
  std::size_t oldest_ = 0;  // in the ring, once it is full
};

/// Returns the rows of each KV head times its weight. @param x  [member, head, token, head_dim]; several heads in turn
/// belong to one KV head
BackendTensor<float, 4> rotated(Backend& backend, const BackendView<float, 4>& x,
                                const OscarProducts::Weights& weights) {
  BackendTensor<float, 4> out(backend, x.shape());
  const std::size_t rows = x.extent(1) / weights.size() * x.extent(2), values = x.extent(3);
  for (std::size_t n = 0; n < x.extent(0) * weights.size(); ++n) {
    const auto head = [&](const BackendView<float, 4>& all) {
      return BackendView<float, 2>(std::span(all.data() + n * rows * values, rows * values), {rows, values});
    };
    if (rows > 0) backend.linear_f32(head(x), *weights[n % weights.size()], head(out.view()), false);
  }
  return out;
}

class OscarCache final : public LayerCache {
 public:
  OscarCache(const OscarOptions& options, std::size_t group, std::shared_ptr<const OscarProducts> products)
      : k_(options, group, options.clip_k), v_(options, group, options.clip_v), products_(std::move(products)) {}

  void attend(LayerStates& states, const Operand& out) override {
    if (!products_) throw Error(ErrorCode::kInternal, "oscar", "a cache without rotations");
    Backend& backend = states.backend;
    rotate_at(states, states.first_position);
    const auto q = rotated(backend, states.q, products_->keys), k = rotated(backend, states.k, products_->keys),
               v = rotated(backend, states.v, products_->values);
    LayerStates turned = states;
    turned.q = q.view();
    turned.k = k.view();
    turned.v = v.view();
    if (in_prefix_) {
      read(turned, out);
      if (turned.members() == 1) {
        k_.append(backend, turned.k);
        v_.append(backend, turned.v);
      }
    } else {
      for_each_token(turned, out, [&](LayerStates& token, const Operand& row) {
        read(token, row);
        k_.add(backend, token.k);
        v_.add(backend, token.v);
      });
    }
    for (std::size_t row = 0; row < out.rows; ++row)
      rotate_back(backend, operand_rows(backend, out, row, 1), q.view().extent(1));
  }

  void begin_prefix(std::size_t) override { in_prefix_ = true; }
  void end_prefix(Backend& backend) override {
    in_prefix_ = false;
    compression(backend, [&] {
      k_.code_old(backend);
      v_.code_old(backend);
    });
  }
  CacheBytes bytes() const noexcept override {
    CacheBytes bytes = k_.bytes();
    return bytes += v_.bytes();
  }

 private:
  void read(const LayerStates& states, const Operand& out) const {
    attend_rows(states, {k_.coded(), v_.coded(), k_.exact(), v_.exact()}, out);
  }

  /// Rotates the outputs of a token's heads back. @param row  [1, heads · head_dim]
  void rotate_back(Backend& backend, const Operand& row, std::size_t heads) const {
    const std::size_t head_dim = row.columns / heads, group = heads / products_->outputs.size();
    const BackendTensor<float, 2> results(backend, {heads, head_dim});
    for (std::size_t head = 0; head < products_->outputs.size(); ++head)
      backend.linear(operand_rows(backend, {row.data, heads, head_dim}, head * group, group), *products_->outputs[head],
                     {std::span(results.view().data() + head * group * head_dim, group * head_dim), {group, head_dim}},
                     false);
    backend.narrow(results.view().reshape<2>({1, row.columns}), row);
  }

  OscarRows k_, v_;
  std::shared_ptr<const OscarProducts> products_;
  bool in_prefix_ = false;
};

std::unique_ptr<LayerCache> make_oscar(Parameters& parameters, const CacheLayer& layer) {
  return make_oscar_cache(oscar_options(parameters), layer.shape.head_dim, nullptr);
}

std::string oscar_obstacle(const ModelConfig& model) {
  if (std::string found = own_rows_obstacle(model); !found.empty()) return found;
  for (const std::size_t layer : model.cached_layers())
    if (const std::size_t head_dim = model.layer[layer].attention.head_dim; head_dim % kLeastGroup != 0)
      return "found a head_dim of " + std::to_string(head_dim) + ", expected a multiple of 4, the values of a byte";
  return norm_order_obstacle(model);
}

void check_oscar_tensors(const Json& config, const std::filesystem::path& path) { (void)read_rotations(config, path); }

}  // namespace

OscarOptions oscar_options(Parameters& parameters) {
  OscarOptions options;
  options.sinks = parameters.count("sinks", "first tokens, which stay in 16 bits", options.sinks, 0);
  options.recent = parameters.count("recent", "last tokens, which stay in 16 bits", options.recent, 1);
  options.group = parameters.count("group", "values that share a scale and a minimum, at most those of a head",
                                   options.group, kLeastGroup);
  if (!std::has_single_bit(options.group))
    parameters.refuse("group", "found " + std::to_string(options.group) + ", expected a power of two");
  options.clip_k =
      parameters.real("clip_k", "quantile of the magnitudes of a key that it is clipped to", options.clip_k, 0, 1);
  options.clip_v =
      parameters.real("clip_v", "quantile of the magnitudes of a value that it is clipped to", options.clip_v, 0, 1);
  return options;
}

void clip_row(std::span<float> row, double quantile) {
  const auto index = std::min(static_cast<std::size_t>(quantile * static_cast<double>(row.size())), row.size() - 1);
  if (index + 1 == row.size()) return;
  std::vector<float> magnitudes(row.begin(), row.end());
  for (float& value : magnitudes) value = std::abs(value);
  std::ranges::nth_element(magnitudes, magnitudes.begin() + static_cast<std::ptrdiff_t>(index));
  const float limit = magnitudes[index];
  for (float& value : row) value = std::clamp(value, -limit, limit);
}

std::shared_ptr<const OscarProducts> make_oscar_products(Backend& backend, const OscarRotations& rotations) {
  const std::size_t size = rotations.head_dim, square = size * size;
  // A weight W multiplies as x Wᵀ.
  const auto weight = [&](const std::vector<float>& all, std::size_t head, bool transposed, bool f32) {
    const std::span<const float> matrix = std::span(all).subspan(head * square, square);
    return backend.make_weight({.rows = size,
                                .columns = size,
                                .read =
                                    [=](std::size_t first, std::size_t count, std::span<float> out) {
                                      for (std::size_t n = 0; n < count * size; ++n) {
                                        const std::size_t row = first + n / size, column = n % size;
                                        out[n] = transposed ? matrix[column * size + row] : matrix[row * size + column];
                                      }
                                    },
                                .f32 = f32});
  };
  const auto products = std::make_shared<OscarProducts>();
  for (std::size_t head = 0; head < rotations.kv_heads; ++head) {
    products->keys.push_back(weight(rotations.keys, head, true, true));
    products->values.push_back(weight(rotations.values, head, true, true));
    products->outputs.push_back(weight(rotations.values, head, false, false));
  }
  return products;
}

std::unique_ptr<LayerCache> make_oscar_cache(const OscarOptions& options, std::size_t head_dim,
                                             std::shared_ptr<const OscarProducts> products) {
  return std::make_unique<OscarCache>(options, options.values_of_group(head_dim), std::move(products));
}

constinit const Method kOscarMethod{
    .name = "oscar",
    .title = "OSCAR",
    .summary = "every token, rotated by calibrated matrices and quantised in 2 bits; the first and last in full",
    .paper = {.authors = "Zhou, Zhuang, Li, Chen, Song, Athiwaratkun, Wu",
              .title = "OSCAR: Offline Spectral Covariance-Aware Rotation for 2-bit KV Cache Quantization",
              .link = "https://arxiv.org/abs/2605.17757",
              .year = 2026},
    .prefill = Prefill::kEither,
    .takes_kv_type = false,
    .make = make_oscar,
    .needs_files = true,
    .obstacle = oscar_obstacle,
    .check_tensors = check_oscar_tensors,
    .priority = 9,
};

}  // namespace kvs::inline calibrate
