// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/error.h"
#include "model/forward_pass.h"

namespace kvs::inline model {

namespace {

/// Finite outputs of the last layer may overflow in the head.
[[noreturn]] void refuse_head(const std::string& model) {
  throw Error(ErrorCode::kData, model + ": output layer", "found NaN or infinity in its logits, expected finite ones");
}

void check_head(std::span<const float> values, const std::string& model) {
  constexpr std::uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
  std::uint32_t largest = 0;  // infinity and NaN have the largest bits
  for (const float value : values) largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & kMagnitude);
  if (largest >= kInfinity) refuse_head(model);
}

}  // namespace

std::vector<float> Decoder::nll(const ResidualStream& hidden, std::span<const std::int32_t> targets) {
  if (hidden.next_layer != model_->config().layers() || targets.size() != hidden.tokens()) {
    throw Error(ErrorCode::kInternal, "Decoder::nll", "expected a finished pass and one target per token");
  }
  std::vector<std::size_t> scored;  // rows with a target
  std::vector<std::int32_t> scored_targets;
  for (std::size_t row = 0; row < hidden.members() * hidden.tokens(); ++row) {
    const std::int32_t target = targets[row % hidden.tokens()];
    if (target < 0) continue;
    scored.push_back(row);
    scored_targets.push_back(target);
  }
  std::vector<float> result(hidden.members() * hidden.tokens());
  if (scored.empty()) return result;
  const Operand x = final_rows(hidden, scored);
  std::vector<float> losses(scored.size());
  try {
    model_->backend().cross_entropy(x, model_->head(), scored_targets, losses, model_->config().logit_softcap);
  } catch (const Error& error) {  // thrown for a row that is not finite
    if (error.code() != ErrorCode::kData) throw;
    refuse_head(model_->config().name);
  }
  for (std::size_t i = 0; i < scored.size(); ++i) result[scored[i]] = losses[i];
  return result;
}

/// Returns some rows after the final norm, packed. Adjacent rows are normalised together.
Operand Decoder::final_rows(const ResidualStream& hidden, std::span<const std::size_t> rows) {
  const BackendView<float, 2> residual = as_rows(hidden);
  const Operand x = pass_->normed.operand(rows.size(), model_->config().d_model);
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t end = first + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    if (rows[first] + (end - first) > residual.extent(0)) {
      throw Error(ErrorCode::kInternal, "Decoder", "row outside the pass");
    }
    pass_->normalise(row_range(residual, rows[first], end - first), model_->final_norm(),
                     operand_rows(pass_->backend, x, first, end - first));
    first = end;
  }
  return x;
}

std::vector<float> Decoder::logits(const ResidualStream& hidden, std::span<const std::size_t> rows) {
  if (hidden.next_layer != model_->config().layers() || rows.empty()) {
    throw Error(ErrorCode::kInternal, "Decoder::logits", "expected a finished pass and rows of it");
  }
  const Operand x = final_rows(hidden, rows);
  const BackendView<float, 2> out = pass_->wide.matrix(rows.size(), model_->config().vocabulary);
  model_->backend().linear(x, model_->head(), out, false);
  std::vector<float> logits = download(model_->backend(), out);
  check_head(logits, model_->config().name);
  const float cap = model_->config().logit_softcap;
  if (cap > 0) {
    for (float& logit : logits) logit = cap * std::tanh(logit / cap);
  }
  return logits;
}

std::vector<float> document_nll(Decoder& decoder, std::span<const std::int32_t> tokens, StateHook* hook) {
  ResidualStream hidden = decoder.embed(tokens);
  decoder.advance(hidden, decoder.model().config().layers(), hook);
  std::vector<std::int32_t> targets(tokens.begin() + 1, tokens.end());
  targets.push_back(-1);
  std::vector<float> nll = decoder.nll(hidden, targets);
  nll.pop_back();
  return nll;
}

}  // namespace kvs::inline model
