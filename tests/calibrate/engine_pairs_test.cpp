// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/engine_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvs {
namespace {

using ::testing::HasSubstr;

// The table of ggml-cuda/fattn.cu, read at llama.cpp 00a2d60.
TEST(EnginePairs, AreThoseOfEveryBuild) {
  for (const char* kind : {"f16", "bf16", "q8_0", "q4_0"}) EXPECT_EQ(cuda_pair(kind, kind), CudaPair::kEveryBuild);
  EXPECT_EQ(cuda_pair("q8_0", "q4_0"), CudaPair::kEveryBuild);
}

TEST(EnginePairs, NeedAllQuantsElsewhere) {
  for (const char* kind : {"q4_1", "q5_0", "q5_1"}) EXPECT_EQ(cuda_pair(kind, kind), CudaPair::kAllQuants);
  EXPECT_EQ(cuda_pair("q4_0", "q8_0"), CudaPair::kAllQuants);
  EXPECT_EQ(cuda_pair("f16", "q8_0"), CudaPair::kAllQuants);
  EXPECT_THAT(cuda_pair_text("q5_1", "q5_1"), HasSubstr("in builds with GGML_CUDA_FA_ALL_QUANTS alone"));
}

TEST(EnginePairs, HaveNoIq4Nl) {
  for (const char* kind : {"q8_0", "iq4_nl", "f16"}) {
    EXPECT_EQ(cuda_pair("iq4_nl", kind), CudaPair::kNone);
    EXPECT_EQ(cuda_pair(kind, "iq4_nl"), CudaPair::kNone);
  }
  EXPECT_THAT(cuda_pair_text("iq4_nl", "q8_0"), HasSubstr("in no build; elsewhere the processor"));
}

}  // namespace
}  // namespace kvs
