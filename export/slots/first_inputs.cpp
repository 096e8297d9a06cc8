// SPDX-License-Identifier: Apache-2.0
#include "export/slots/first_inputs.h"

#include <algorithm>

#include "calibrate/transform/token_inputs.h"

namespace kvs::inline exporting {
namespace {

/// Keeps the inputs of the first layer that it sees.
class InputsHook final : public StateHook {
 public:
  explicit InputsHook(std::vector<float>& rows) : rows_(rows) {}

  void before_rope(LayerStates& states) override {
    const std::vector<float> fresh = download(states.backend, rows_of_operand(states.backend, states.x).view());
    rows_.insert(rows_.end(), fresh.begin(), fresh.end());
  }

 private:
  std::vector<float>& rows_;
};

}  // namespace

std::vector<float> first_inputs(Decoder& decoder, std::span<const std::int32_t> tokens) {
  constexpr std::size_t kTogether = 512;  // an input depends on its own token alone
  std::vector<float> rows;
  InputsHook hook(rows);
  for (std::size_t first = 0; first < tokens.size(); first += kTogether) {
    ResidualStream stream = decoder.embed(tokens.subspan(first, std::min(kTogether, tokens.size() - first)));
    decoder.advance(stream, 1, &hook);
  }
  return rows;
}

}  // namespace kvs::inline exporting
