#pragma once

#include "model/architecture.h"

namespace kvs::inline model {

// The rows of the architecture table (architectures.cpp). Sources: each family's configuration and modelling code in
// Transformers 5; llama.cpp's converter for GGUF.
extern const Architecture kLlama, kMistral, kQwen2, kQwen3, kGemma2, kGemma3, kPhi3, kOlmo2, kGptNeox, kMixtral,
    kQwen2Moe, kQwen3Moe, kQwen3Vl, kQwen3VlMoe;

}  // namespace kvs::inline model
