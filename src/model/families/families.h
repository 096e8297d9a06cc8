// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/architecture.h"

namespace kvs::inline model {

// All families, in the order of messages; each is defined in a file of this folder. Sources: each family's
// configuration and modelling code in Transformers 5; llama.cpp's converter for GGUF.
// clang-format off
#define KVS_FAMILIES(FAMILY)                                                                                           \
  FAMILY(kLlama) FAMILY(kMistral) FAMILY(kQwen2) FAMILY(kQwen3) FAMILY(kGemma2) FAMILY(kGemma3)                        \
  FAMILY(kGemma3n) FAMILY(kGemma4) FAMILY(kLlama4) FAMILY(kPhi3) FAMILY(kOlmo2) FAMILY(kGptNeox)                       \
  FAMILY(kCohere2) FAMILY(kErnie45) FAMILY(kErnie45Moe) FAMILY(kExaone4) FAMILY(kGlm4) FAMILY(kGlm4Moe)                \
  FAMILY(kGptOss) FAMILY(kGranite) FAMILY(kGraniteMoe) FAMILY(kHunyuanDense) FAMILY(kHunyuanMoe)                       \
  FAMILY(kInternLm2) FAMILY(kInternLm3) FAMILY(kMiniMaxM2) FAMILY(kMinistral3) FAMILY(kMixtral) FAMILY(kOlmo3)         \
  FAMILY(kOlmoe) FAMILY(kPhi) FAMILY(kQwen2Moe) FAMILY(kQwen3Moe) FAMILY(kQwen3Vl) FAMILY(kQwen3VlMoe)                 \
  FAMILY(kQwen3Next) FAMILY(kQwen35) FAMILY(kQwen35Moe) FAMILY(kFalconH1) FAMILY(kGraniteMoeHybrid)                    \
  FAMILY(kLfm2) FAMILY(kLfm2Moe) FAMILY(kNemotronH) FAMILY(kSeedOss) FAMILY(kSmolLm3) FAMILY(kStableLm)                \
  FAMILY(kStarcoder2) FAMILY(kDeepseekV2) FAMILY(kDeepseekV3) FAMILY(kDeepseekV32) FAMILY(kGlm4MoeLite)                \
  FAMILY(kGlmMoeDsa) FAMILY(kMistral4)
// clang-format on

#define KVS_DECLARED(name) extern const Architecture name;
KVS_FAMILIES(KVS_DECLARED)
#undef KVS_DECLARED

}  // namespace kvs::inline model
