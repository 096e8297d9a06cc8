// SPDX-License-Identifier: Apache-2.0
#include "caches/sequence_batch.h"

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace kvs::inline caches {
namespace {

/// Member n of head-major states.
BackendView<float, 4> member_of(const BackendView<float, 4>& states, std::size_t n) {
  std::array<std::size_t, 4> shape = states.shape();
  shape[0] = 1;
  return states.slice(n).reshape<4>(shape);
}

/// One layer of several sequences.
class BatchLayer final : public LayerCache {
 public:
  struct Member {
    LayerCache* layer;
    std::size_t position;
  };
  explicit BatchLayer(std::vector<Member> members) : members_(std::move(members)) {}

  void attend(LayerStates& states, const Operand& out) override {
    if (states.members() != members_.size())
      throw Error(
          ErrorCode::kInternal, "batch of sequences",
          "found " + std::to_string(states.members()) + " members, expected " + std::to_string(members_.size()));
    const std::size_t tokens = states.tokens();
    for (std::size_t n = 0; n < members_.size(); ++n) {
      LayerStates own = states;
      own.first_position = members_[n].position;
      own.x = operand_rows(states.backend, states.x, n * tokens, tokens);
      own.q = member_of(states.q, n);
      own.k = member_of(states.k, n);
      own.v = member_of(states.v, n);
      members_[n].layer->attend(own, operand_rows(states.backend, out, n * tokens, tokens));
    }
  }

  CacheBytes bytes() const noexcept override {
    CacheBytes sum;
    for (const Member& member : members_) sum += member.layer->bytes();
    return sum;
  }

 private:
  std::vector<Member> members_;
};

}  // namespace

Cache batch_of(std::span<const BatchSequence> sequences) {
  const std::size_t count = sequences.front().cache->layers().size();
  std::vector<std::unique_ptr<LayerCache>> layers(count);
  for (std::size_t layer = 0; layer < count; ++layer) {
    if (sequences.front().cache->layers()[layer] == nullptr) continue;
    std::vector<BatchLayer::Member> members;
    members.reserve(sequences.size());
    for (const BatchSequence& sequence : sequences)
      members.push_back({sequence.cache->layers()[layer].get(), sequence.position});
    layers[layer] = std::make_unique<BatchLayer>(std::move(members));
  }
  return Cache(std::move(layers));
}

}  // namespace kvs::inline caches
