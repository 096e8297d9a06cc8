// SPDX-License-Identifier: Apache-2.0
// The attention that a shape gets, with a stand-in for the planner; and cuDNN's plans for GPUs that are not installed.
#include "kernels/cuda/fused_attention.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/error.h"
#include "kernels/cuda/cudnn_planner.h"
#include "tests/kernels/cuda_support.h"

namespace kvs::cuda {
namespace {

using ::testing::HasSubstr;

class FakePlan final : public FusedPlan {
 public:
  explicit FakePlan(bool runs) : runs_(runs) {}
  std::size_t workspace_bytes() const override { return 0; }
  void run(const void*, const void*, const void*, void*, void*) override {
    if (!runs_) throw Error(ErrorCode::kInternal, "fake", "no execution");
  }

 private:
  bool runs_;
};

/// Refuses head_dim 72, cannot run head_dim 80, and records the requests.
class FakePlanner final : public FusedPlanner {
 public:
  explicit FakePlanner(std::vector<FusedShape>* asked) : asked_(asked) {}
  std::string name() const override { return "fake 1.2.3"; }
  std::unique_ptr<FusedPlan> plan(const FusedShape& shape) override {
    asked_->push_back(shape);
    if (shape.head_dim == 72) throw Error(ErrorCode::kUnsupported, "fake", "no engine");
    return std::make_unique<FakePlan>(shape.head_dim != 80);
  }

 private:
  std::vector<FusedShape>* asked_;
};

class FusedAttentionTest : public ::testing::Test {
 protected:
  FusedAttention fused(AttentionChoice choice = AttentionChoice::kAuto) {
    return {choice, [this] { return std::make_unique<FakePlanner>(&asked_); }};
  }
  /// Returns whether the library ran it.
  static bool run(FusedAttention& attention, const FusedShape& shape) {
    FusedPlan* const plan = attention.plan_for(shape, 0, 0);
    return plan != nullptr && attention.run(*plan, nullptr, nullptr, nullptr, nullptr, nullptr);
  }
  static FusedShape with_head_dim(std::size_t head_dim) {
    FusedShape shape = kShape;
    shape.head_dim = head_dim;
    return shape;
  }
  static constexpr FusedShape kShape{.members = 1, .query_heads = 4, .kv_heads = 2, .tokens = 2000, .head_dim = 64};
  std::vector<FusedShape> asked_;  // for plans
};

TEST_F(FusedAttentionTest, PlansAShapeOnce) {
  FusedAttention attention = fused();
  FusedPlan* const plan = attention.plan_for(kShape, 0, 0);
  EXPECT_NE(plan, nullptr);
  EXPECT_EQ(attention.plan_for(kShape, 0, 0), plan);
  EXPECT_EQ(asked_.size(), 1U);
  FusedShape other = kShape;
  other.scale = 2;  // part of a plan, as every field is
  EXPECT_NE(attention.plan_for(other, 0, 0), plan);
  EXPECT_EQ(asked_.size(), 2U);
  EXPECT_TRUE(run(attention, kShape));
  EXPECT_EQ(attention.note(), "fake 1.2.3 in 1 of 4 calls, else the own kernel");
}

TEST_F(FusedAttentionTest, LeavesTheRestToTheOwnKernel) {
  FusedAttention attention = fused();
  EXPECT_EQ(attention.plan_for(kShape, 1, 0), nullptr) << "a past";
  EXPECT_EQ(attention.plan_for(kShape, 0, 50), nullptr) << "a soft cap";
  for (const auto& [tokens, head_dim, members] :
       {std::tuple<std::size_t, std::size_t, std::size_t>{2000, 60, 1},
        {FusedAttention::kFewestTokens - 1, 64, 1},
        {4096, 128, 1024}}) {  // rows of 120 bytes; too short to pay; 4 · 2^12 · 2^7 · 2^10 = 2^31 values
    FusedShape shape = kShape;
    shape.tokens = tokens;
    shape.head_dim = head_dim;
    shape.members = members;
    EXPECT_EQ(attention.plan_for(shape, 0, 0), nullptr) << tokens << " tokens, head_dim " << head_dim;
  }
  EXPECT_TRUE(asked_.empty());
  EXPECT_EQ(attention.note(), "own kernel");
}

TEST_F(FusedAttentionTest, AWindowThatHidesNothingIsNone) {
  FusedAttention attention = fused();
  FusedShape windowed = kShape;
  windowed.window = kShape.tokens;
  EXPECT_EQ(attention.plan_for(windowed, 0, 0), attention.plan_for(kShape, 0, 0));
  windowed.window = kShape.tokens - 1;
  EXPECT_NE(attention.plan_for(windowed, 0, 0), attention.plan_for(kShape, 0, 0));
}

TEST_F(FusedAttentionTest, AMaskThatHidesNothingIsLeftOut) {
  FusedAttention attention = fused(AttentionChoice::kLibrary);
  FusedShape shape = kShape;
  for (const std::size_t tokens : {1, 2}) {
    shape.tokens = tokens;
    attention.plan_for(shape, 0, 0);
  }
  ASSERT_EQ(asked_.size(), 2U);
  EXPECT_FALSE(asked_[0].causal) << "one query reads its own key, which is all there is";
  EXPECT_TRUE(asked_[1].causal);
}

TEST_F(FusedAttentionTest, AsksOnceForAShapeThatIsRefusedAndSaysWhy) {
  FusedAttention attention = fused();
  EXPECT_FALSE(run(attention, with_head_dim(72)));
  EXPECT_FALSE(run(attention, with_head_dim(72)));
  EXPECT_EQ(asked_.size(), 1U);
  EXPECT_TRUE(run(attention, kShape));
  EXPECT_THAT(attention.note(), HasSubstr("in 1 of 3 calls"));
  EXPECT_THAT(attention.note(), HasSubstr("no engine"));
}

TEST_F(FusedAttentionTest, ALibraryThatFailsOnceIsNotAskedAgain) {
  FusedAttention attention = fused();
  EXPECT_TRUE(run(attention, kShape));
  EXPECT_FALSE(run(attention, with_head_dim(80)));
  EXPECT_EQ(attention.plan_for(kShape, 0, 0), nullptr) << "a shape that had a plan";
  EXPECT_EQ(attention.plan_for(with_head_dim(96), 0, 0), nullptr) << "a new shape";
  EXPECT_EQ(asked_.size(), 2U);
  EXPECT_EQ(attention.note(), "fake 1.2.3 in 1 of 4 calls, else the own kernel; fake: no execution");
}

TEST_F(FusedAttentionTest, ALibraryThatIsForcedAndFailsIsAnError) {
  FusedAttention attention = fused(AttentionChoice::kLibrary);
  EXPECT_THROW(run(attention, with_head_dim(80)), Error);
}

TEST_F(FusedAttentionTest, PlansOnlySoManyShapesAndKeepsThem) {
  FusedAttention attention = fused();
  FusedShape shape = kShape;
  for (std::size_t i = 0; i < FusedAttention::kMaxPlans; ++i, ++shape.tokens)
    ASSERT_NE(attention.plan_for(shape, 0, 0), nullptr) << i;
  EXPECT_EQ(attention.plan_for(shape, 0, 0), nullptr);
  EXPECT_NE(attention.plan_for(kShape, 0, 0), nullptr);
  EXPECT_EQ(attention.plan_for(shape, 0, 0), nullptr) << "one shape must not change its attention";
}

TEST_F(FusedAttentionTest, TheLibraryCanBeForcedOrForbidden) {
  FusedShape shape = kShape;
  shape.tokens = 1;
  FusedAttention forced = fused(AttentionChoice::kLibrary), forbidden = fused(AttentionChoice::kOwn);
  EXPECT_NE(forced.plan_for(shape, 0, 0), nullptr);
  EXPECT_EQ(forced.plan_for(shape, 3, 0), nullptr);
  EXPECT_EQ(forbidden.plan_for(kShape, 0, 0), nullptr);
}

TEST_F(FusedAttentionTest, AMissingLibraryIsNotedOrIfForcedAnError) {
  const auto make = [] { return make_cudnn_planner(nullptr, "libcudnn-of-nobody.so.9"); };
  FusedAttention attention(AttentionChoice::kAuto, make);
  EXPECT_EQ(attention.plan_for(kShape, 0, 0), nullptr);
  EXPECT_EQ(attention.plan_for(kShape, 0, 0), nullptr);
  // Returns its name, or that the program was built without it.
  EXPECT_THAT(attention.note(), testing::MatchesRegex("own kernel; cuDNN: .*(nobody|KVS_CUDNN).*"));
  FusedAttention forced(AttentionChoice::kLibrary, make);
  try {
    forced.plan_for(kShape, 0, 0);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
  }
}

TEST_F(FusedAttentionTest, AnOldLibraryIsNotUsed) {
  FusedAttention attention(AttentionChoice::kAuto, [] { return make_cudnn_planner(nullptr, KVS_OLD_CUDNN); });
  EXPECT_EQ(attention.plan_for(kShape, 0, 0), nullptr);
  // tests/kernels/old_cudnn.cpp says that it is 9.15.0.
  EXPECT_THAT(attention.note(),
              testing::MatchesRegex("own kernel; cuDNN: .*(found version 9.15.0, expected 9.15.1|KVS_CUDNN).*"));
}

TEST(AttentionChoice, IsNamed) {
  EXPECT_EQ(attention_choice(""), AttentionChoice::kAuto);
  EXPECT_EQ(attention_choice("auto"), AttentionChoice::kAuto);
  EXPECT_EQ(attention_choice("own"), AttentionChoice::kOwn);
  EXPECT_EQ(attention_choice("cudnn"), AttentionChoice::kLibrary);
  EXPECT_THROW(attention_choice("flash"), Error);
}

/// Skipped with a message without cuDNN, or failed if KVS_REQUIRE_CUDA=1. cuDNN asks for the driver's library and then
/// needs nothing from it: without a driver the toolkit's stub is used.
class CudnnEngines : public ::testing::Test {
 protected:
  void SetUp() override {
    if (dlopen("libcuda.so.1", RTLD_NOW) == nullptr) dlopen(KVS_CUDA_STUB, RTLD_NOW | RTLD_GLOBAL);
    try {
      count_cudnn_engines({.members = 1, .query_heads = 1, .kv_heads = 1, .tokens = 64, .head_dim = 64}, kH200);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kEnvironment) test::leave_out(error.what());
    }
  }
  // Multiprocessors, memory and limits by compute capability 9.0 and 8.0 of the CUDA programming guide, appendix
  // "Compute Capabilities", and the data sheets of H200 SXM and A100 SXM 40 GB.
  static constexpr DescribedGpu kH200{
      R"({"deviceName": "NVIDIA H200", "deviceVer": 900, "multiProcessorCount": 132, "totalGlobalMem": 150754820096,
          "maxSharedMemoryPerBlockOptin": 232448, "l2CacheSize": 62914560, "smClockRateKHz": 1980000,
          "memClockRateKHz": 3201000, "pciDeviceId": 9013, "maxGridSize": [2147483647, 65535, 65535],
          "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
          "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32,
          "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1,
          "cudaDeviceId": 0, "driverVer": 13000})",
      90};
  static constexpr DescribedGpu kA100{
      R"({"deviceName": "NVIDIA A100-SXM4-40GB", "deviceVer": 800, "multiProcessorCount": 108,
          "totalGlobalMem": 42949672960, "maxSharedMemoryPerBlockOptin": 166912, "l2CacheSize": 41943040,
          "smClockRateKHz": 1410000, "memClockRateKHz": 1215000, "pciDeviceId": 8368,
          "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
          "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "reservedSharedMemoryPerBlock": 1024,
          "maxRegistersPerSM": 65536, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048,
          "isTccDriver": 0, "supportCoopLaunch": 1, "cudaDeviceId": 0, "driverVer": 13000})",
      80};
};

TEST_F(CudnnEngines, TakeEveryHeadSizeGroupingAndWindow) {
  for (const DescribedGpu& gpu : {kH200, kA100}) {
    for (const std::size_t head_dim : {64, 80, 96, 128, 256}) {
      for (const std::size_t tokens : {1, 7, 1000, 4097}) {
        for (const std::size_t window : {std::size_t{0}, tokens / 2}) {
          const FusedShape shape{2, 9, head_dim == 80 ? 9U : 3U, tokens, head_dim, window, 0.125F, tokens > 1};
          EXPECT_GE(count_cudnn_engines(shape, gpu), 1U)
              << "sm_" << gpu.architecture << " head_dim " << head_dim << " tokens " << tokens << " window " << window;
        }
      }
    }
  }
}

TEST(RequiredDevice, MayBeMissingUnlessItIsRequired) {
  const char* const before = std::getenv("KVS_REQUIRE_CUDA");
  const std::string kept = before == nullptr ? "" : before;
  setenv("KVS_REQUIRE_CUDA", "1", 1);
  EXPECT_FATAL_FAILURE(test::leave_out("no libcudnn"), "no libcudnn, KVS_REQUIRE_CUDA=1");
  setenv("KVS_REQUIRE_CUDA", kept.c_str(), 1);
}

TEST_F(CudnnEngines, RefuseInOneLine) {
  // Rows of 40 bytes: the front end's limit is 16.
  try {
    count_cudnn_engines({.members = 1, .query_heads = 4, .kv_heads = 4, .tokens = 64, .head_dim = 20}, kH200);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("multiple of 8"));
    EXPECT_THAT(error.what(), testing::Not(HasSubstr("\n")));
  }
}

}  // namespace
}  // namespace kvs::cuda
