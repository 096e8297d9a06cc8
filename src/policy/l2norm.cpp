#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "policy/best_tokens.h"
#include "policy/cache_method.h"
#include "policy/full.h"
#include "policy/token_rows.h"

namespace kvs {
namespace {

/// Of a prefix, the ⌊ratio · P⌋ tokens of each KV head whose keys are shortest stay (the first of equal ones); what
/// comes later is all kept. A key's length is the same before and after RoPE.
/// Source: Devoto et al. (2024), "A Simple and Effective L2 Norm-Based Strategy for KV Cache Compression",
/// arXiv:2406.11430.
class L2normCache final : public LayerCache {
 public:
  L2normCache(double ratio, const StateStore& store) : ratio_(ratio), rows_(store) {}

  void attend(LayerStates& states, const Operand& out) override {
    rotate_at(states, states.first_position);
    const KeyRows past = rows_.add(states);
    attend_rows(states, past, out);
  }

  void end_prefix(Backend& backend) override {
    compression(backend, [&] { keep_shortest(backend); });
  }

  CacheBytes bytes() const noexcept override { return rows_.bytes(); }

 private:
  void keep_shortest(Backend& backend) {
    const std::size_t tokens = rows_.count(), kept = static_cast<std::size_t>(ratio_ * static_cast<double>(tokens));
    if (kept == 0)
      throw Error(ErrorCode::kData, "l2norm",
                  "found a ratio of " + std::to_string(ratio_) + ", which keeps none of a prefix of " +
                      std::to_string(tokens) + " tokens, expected one that keeps some");
    const TokenRows::Part part = rows_.copy(backend, 0, tokens);
    const std::vector<float> keys = download(backend, part.k.view());
    const std::size_t heads = part.k.view().extent(1), head_dim = part.k.view().extent(3);
    std::vector<std::vector<std::size_t>> shortest(heads);
    for (std::size_t head = 0; head < heads; ++head) {
      std::vector<double> scores(tokens);
      for (std::size_t token = 0; token < tokens; ++token) {
        const auto first = keys.begin() + static_cast<std::ptrdiff_t>((head * tokens + token) * head_dim);
        scores[token] = -std::inner_product(first, first + static_cast<std::ptrdiff_t>(head_dim), first, 0.0);
      }
      shortest[head] = best_tokens(scores, kept);
    }
    rows_.keep(backend, 0, tokens, shortest);
  }

  double ratio_;
  TokenRows rows_;
};

std::unique_ptr<LayerCache> make_l2norm(Parameters& parameters, const CacheLayer& layer) {
  const double ratio = parameters.real("ratio", 0.5, 0, 1);
  const auto skipped = parameters.indices("skip_layers", {0, 1}, parameters.layers());
  if (std::ranges::find(skipped, layer.index) != skipped.end()) return make_full_cache(layer.store);
  return std::make_unique<L2normCache>(ratio, layer.store);
}

}  // namespace

constinit const CacheMethod kL2normMethod{"l2norm", Prefill::kWhole, make_l2norm};

}  // namespace kvs
