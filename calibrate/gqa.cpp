// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "caches/full.h"
#include "calibrate/method.h"

namespace kvs::inline calibrate {
namespace {

/// A full cache with fewer KV heads. Each is the mean of `kv_heads / heads` neighbouring heads (keys and values), and
/// the query heads of all of these read it. RoPE is linear and rotates all heads of a token by the same angles, so the
/// mean before RoPE (computed here) equals the mean after it. Without QK-norm it also equals the result of averaging
/// the heads' rows of W_k and W_v. O(kv_heads · head_dim²) per token in addition to the attention. Source: Ainslie et
/// al. (2023), GQA, arXiv:2305.13245, section 2.1 (mean pooling), the baseline of EliteKV. Both papers then train the
/// pooled model; this is its starting point.
class GqaCache final : public LayerCache {
 public:
  GqaCache(std::size_t heads, const KvTypes& types) : heads_(heads), pooled_(make_full_cache(types)) {}

  void attend(LayerStates& states, const Operand& out) override {
    const BackendTensor<float, 4> k = pool(states.backend, states.k), v = pool(states.backend, states.v);
    states.k = k.view();
    states.v = v.view();
    pooled_->attend(states, out);
  }
  CacheBytes bytes() const noexcept override { return pooled_->bytes(); }

 private:
  /// [member, kv_head, token, head_dim] → [member, heads_, token, head_dim]
  BackendTensor<float, 4> pool(Backend& backend, const BackendView<float, 4>& states) {
    const auto [members, kv_heads, tokens, head_dim] = states.shape();
    const std::size_t group = kv_heads / heads_, rows = members * kv_heads * tokens;
    if (!share_) make_share(backend, head_dim, group);
    const OperandBuffer all(backend, rows, head_dim);
    backend.narrow(states.reshape<2>({rows, head_dim}), all.get());
    BackendTensor<float, 4> means(backend, {members, heads_, tokens, head_dim});
    for (std::size_t head = 0; head < members * heads_; ++head) {
      const auto mean = means.view().span().subspan(head * tokens * head_dim, tokens * head_dim);
      for (std::size_t n = 0; n < group; ++n)
        backend.linear(operand_rows(backend, all.get(), (head * group + n) * tokens, tokens), *share_,
                       {mean, {tokens, head_dim}}, n > 0);
    }
    return means;
  }

  void make_share(Backend& backend, std::size_t head_dim, std::size_t group) {
    const auto read = [&](std::size_t first, std::size_t count, std::span<float> out) {
      std::ranges::fill(out, 0.0F);
      for (std::size_t row = 0; row < count; ++row) out[row * head_dim + first + row] = 1 / static_cast<float>(group);
    };
    share_ = backend.make_weight({.rows = head_dim, .columns = head_dim, .read = read});
  }

  std::size_t heads_;
  std::unique_ptr<LayerCache> pooled_;
  std::unique_ptr<Weight> share_;  // factor of a head in its mean: 1 / group on the diagonal
};

std::unique_ptr<LayerCache> make_gqa(Parameters& parameters, const CacheLayer& layer) {
  const std::size_t heads = parameters.count("heads", "KV heads that stay, a divisor of the model's",
                                             Parameters::kRequired, 1),
                    all = layer.shape.kv_heads;
  if (all % heads != 0)
    parameters.refuse("heads", "found " + std::to_string(heads) + ", expected a divisor of the model's " +
                                   std::to_string(all) + " KV heads");
  if (heads == all) return make_full_cache(layer.types);
  for (const auto& [name, rows] : {std::pair("scale_k", &layer.types.k), std::pair("scale_v", &layer.types.v)})
    if (std::ranges::adjacent_find(rows->scales, std::not_equal_to()) != rows->scales.end())
      parameters.refuse(name, "found another for each KV head, expected one: heads are pooled before they are stored");
  return std::make_unique<GqaCache>(heads, layer.types);
}

/// Returns every divisor of the KV heads below them, the largest first.
std::vector<Json> fewer_heads(std::size_t kv_heads) {
  std::vector<Json> all;
  for (std::size_t heads = kv_heads - 1; heads > 0; --heads)
    if (kv_heads % heads == 0) all.push_back({{"heads", heads}});
  return all;
}

}  // namespace

constinit const Method kGqaMethod{
    .name = "gqa",
    .title = "GQA",
    .summary = "every token; KV heads are mean-pooled to fewer heads",
    .paper = {.authors = "Ainslie, Lee-Thorp, de Jong, Zemlyanskiy, Lebrón, Sanghai",
              .title = "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints",
              .link = "https://arxiv.org/abs/2305.13245",
              .year = 2023},
    .prefill = Prefill::kEither,
    .make = make_gqa,
    .fixed_settings = fewer_heads,
    .obstacle =
        [](const ModelConfig& model) {
          const bool several = std::ranges::all_of(
              model.cached_layers(), [&](std::size_t layer) { return model.layer[layer].attention.kv_heads > 1; });
          return several ? std::string() : std::string("found 1 KV head, expected two or more");
        },
    .compared = false,  // an untrained pooled model is not competitive
};

}  // namespace kvs::inline calibrate
