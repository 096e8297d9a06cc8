#pragma once

#include "model/architecture.h"

namespace kvs::inline model {

// The families that architectures.cpp lists. Sources: each family's configuration and modelling code in Transformers 5;
// llama.cpp's converter for GGUF.
extern const Architecture kLlama, kMistral, kQwen2, kQwen3, kGemma2, kGemma3, kGemma3n, kGemma4, kLlama4, kPhi3, kOlmo2,
    kGptNeox, kCohere2, kErnie45, kErnie45Moe, kExaone4, kGlm4, kGlm4Moe, kGptOss, kGranite, kGraniteMoe, kHunyuanDense,
    kHunyuanMoe, kInternLm2, kInternLm3, kMiniMaxM2, kMinistral3, kMixtral, kOlmo3, kOlmoe, kPhi, kQwen2Moe, kQwen3Moe,
    kQwen3Vl, kQwen3VlMoe, kQwen3Next, kQwen35, kQwen35Moe, kFalconH1, kGraniteMoeHybrid, kLfm2, kLfm2Moe, kNemotronH,
    kSeedOss, kSmolLm3, kStableLm, kStarcoder2, kDeepseekV2, kDeepseekV3, kGlm4MoeLite, kDeepseekV32, kGlmMoeDsa,
    kMistral4;

}  // namespace kvs::inline model
