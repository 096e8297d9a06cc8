// SPDX-License-Identifier: Apache-2.0
#include "caches/token_steps.h"

#include "core/error.h"

namespace kvs::inline caches {
namespace {

/// [1, head, token, head_dim] → [token, head, 1, head_dim]
BackendTensor<float, 4> by_token(Backend& backend, const BackendView<float, 4>& x) {
  const auto [members, heads, tokens, head_dim] = x.shape();
  BackendTensor<float, 4> turned(backend, {tokens, heads, 1, head_dim});
  // split_heads() swaps tokens and heads; here it gets heads as tokens and tokens as heads.
  const BackendView<float, 4> none({}, {1, 0, heads, head_dim});
  backend.split_heads(x.reshape<2>({heads, tokens * head_dim}), turned.view().reshape<4>({1, tokens, heads, head_dim}),
                      none, none);
  return turned;
}

/// [1, head, 1, head_dim]
BackendView<float, 4> token_of(const BackendTensor<float, 4>& turned, std::size_t token) {
  const auto& shape = turned.view().shape();
  return turned.view().slice(token).reshape<4>({1, shape[1], 1, shape[3]});
}

}  // namespace

void for_each_token(LayerStates& states, const Operand& out,
                    const std::function<void(LayerStates& token, const Operand& row)>& attend) {
  if (states.members() != 1) throw Error(ErrorCode::kInternal, "cache", "found a batch, expected one sequence");
  if (states.tokens() == 1) return attend(states, out);
  Backend& backend = states.backend;
  const auto q = by_token(backend, states.q), k = by_token(backend, states.k), v = by_token(backend, states.v);
  LayerStates token = states;
  for (std::size_t t = 0; t < states.tokens(); ++t) {
    token.first_position = states.first_position + t;
    token.x = operand_rows(backend, states.x, t, 1);
    token.q = token_of(q, t);
    if (!states.query_factors.empty()) token.query_factors = states.query_factors.subspan(t, 1);
    token.k = token_of(k, t);
    token.v = token_of(v, t);
    attend(token, operand_rows(backend, out, t, 1));
  }
}

}  // namespace kvs::inline caches
