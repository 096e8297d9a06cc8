#pragma once

#include <vector>

#include "model/decoder.h"

namespace kvs::test {

/// Keeps the first member's k_pre and k_post of every layer in host memory: [kv_head, token, head_dim].
class RecordedKeys final : public StateHook {
 public:
  std::vector<std::vector<float>> k_pre, k_post;  // [layer]

  void before_rope(LayerStates& states) override { k_pre.push_back(download(states.backend, states.k.slice(0))); }
  void after_rope(LayerStates& states) override { k_post.push_back(download(states.backend, states.k.slice(0))); }
};

}  // namespace kvs::test
