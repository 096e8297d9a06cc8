// SPDX-License-Identifier: Apache-2.0
#include "eval/state_check.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"

namespace kvs::inline eval {
namespace {

class StateCheck final : public StateHook {
 public:
  explicit StateCheck(const ModelConfig& model) : model_(&model) {}

  void before_rope(LayerStates& states) override {
    check(states, "query head ", states.q);
    check(states, "KV head ", states.k);
    check(states, "KV head ", states.v);
  }

 private:
  void check(const LayerStates& states, const char* head_word, const BackendView<float, 4>& rows) const {
    const std::vector<float> values = download(states.backend, rows);  // [1, head, token, head_dim]
    const auto bad = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
    if (bad == values.end()) return;
    const std::size_t row = static_cast<std::size_t>(bad - values.begin()) / rows.extent(3);
    const char* const state = rows.data() == states.q.data()   ? "query"
                              : rows.data() == states.k.data() ? "key"
                                                               : "value";
    throw Error(ErrorCode::kData,
                model_->name + ": layer " + std::to_string(states.layer) + ", " + head_word +
                    std::to_string(row / rows.extent(2)) + ", token " +
                    std::to_string(states.first_position + row % rows.extent(2)),
                std::string("found NaN or infinity in its ") + state + ", expected finite states");
  }

  const ModelConfig* model_;
};

}  // namespace

void check_states(Decoder& decoder, std::span<const std::int32_t> tokens) {
  StateCheck check(decoder.model().config());
  ResidualStream hidden = decoder.embed(tokens);
  decoder.advance(hidden, decoder.model().config().layers(), &check);
}

}  // namespace kvs::inline eval
