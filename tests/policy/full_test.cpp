#include <gtest/gtest.h>

#include <numeric>

#include "core/error.h"
#include "policy/cache_policy.h"

namespace kvs {
namespace {

/// [member, head, token, 1] with value 1000·member + 100·head + token.
BackendTensor<float, 4> numbered(Backend& backend, std::size_t members, std::size_t first, std::size_t tokens) {
  std::vector<float> values;
  for (std::size_t member = 0; member < members; ++member) {
    for (std::size_t head = 0; head < 2; ++head) {
      for (std::size_t token = first; token < first + tokens; ++token) {
        values.push_back(static_cast<float>(1000 * member + 100 * head + token));
      }
    }
  }
  BackendTensor<float, 4> states(backend, {members, 2, tokens, 1});
  backend.upload(states.view().data(), values.data(), states.bytes());
  return states;
}

class FullCache : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend("cpu", DType::kF32);
  std::unique_ptr<CachePolicy> cache_ = make_full_cache(*backend_, 2);

  void append(std::size_t layer, std::size_t members, std::size_t first, std::size_t tokens) {
    const BackendTensor<float, 4> k = numbered(*backend_, members, first, tokens);
    const BackendTensor<float, 4> v = numbered(*backend_, members, first + 50, tokens);
    cache_->append(layer, k.view(), v.view());
  }
};

TEST_F(FullCache, StartsEmpty) {
  EXPECT_TRUE(cache_->past(0).k.empty());
  EXPECT_EQ(cache_->tokens_seen(), 0U);
  EXPECT_EQ(cache_->stored_reals(), 0U);
}

TEST_F(FullCache, KeepsTokensInOrderPerHead) {
  append(0, 1, 0, 2);
  append(0, 1, 2, 1);
  const Past past = cache_->past(0);
  EXPECT_EQ(past.k.shape(), (std::array<std::size_t, 4>{1, 2, 3, 1}));
  EXPECT_EQ(download(*backend_, past.k), (std::vector<float>{0, 1, 2, 100, 101, 102}));
  EXPECT_EQ(download(*backend_, past.v), (std::vector<float>{50, 51, 52, 150, 151, 152}));
  EXPECT_TRUE(cache_->past(1).k.empty());
  EXPECT_EQ(cache_->tokens_seen(), 3U);
  EXPECT_EQ(cache_->stored_reals(), 2U * 6U);
}

TEST_F(FullCache, OnePastIsCopiedToEachNewMember) {
  append(0, 1, 0, 1);
  append(0, 2, 1, 1);
  EXPECT_EQ(download(*backend_, cache_->past(0).k), (std::vector<float>{0, 1, 100, 101, 0, 1001, 100, 1101}));
  append(0, 2, 2, 1);
  EXPECT_EQ(download(*backend_, cache_->past(0).k),
            (std::vector<float>{0, 1, 2, 100, 101, 102, 0, 1001, 1002, 100, 1101, 1102}));
}

TEST_F(FullCache, RefusesAnotherNumberOfMembers) {
  append(0, 2, 0, 1);
  EXPECT_THROW(append(0, 3, 1, 1), Error);
}

}  // namespace
}  // namespace kvs
