// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/decoder.h"

namespace kvs::test {

/// Keeps the first member's k_pre and k_post of every layer with attention in host memory: [kv_head, token, head_dim].
class RecordedKeys final : public StateHook {
 public:
  std::vector<std::vector<float>> k_pre, k_post;  // [layer]

  void before_rope(LayerStates& states) override { keep(states, k_pre); }
  void after_rope(LayerStates& states) override { keep(states, k_post); }

 private:
  static void keep(const LayerStates& states, std::vector<std::vector<float>>& kept) {
    kept.resize(states.layer + 1);
    kept.back() = download(states.backend, states.k.slice(0));
  }
};

}  // namespace kvs::test
