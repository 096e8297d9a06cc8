#include "model/families/families.h"
#include "model/families/tensors.h"

namespace kvs::inline model {

namespace {

using namespace tensors;
using B = BiasGroup;

constexpr auto kOlmo2Attention =
    join(qkv(B::kAttention), qk_norms(kQueryRows, kKeyRows), std::array{o_proj(B::kAttention), kAfterAttention});
constexpr auto kOlmo2FeedForward = join(gated_mlp(B::kNone), std::array{kAfterFeedForward});

}  // namespace

constexpr Architecture kOlmo2{.name = "olmo2",
                              .hf_class = "Olmo2ForCausalLM",
                              .hf_base_class = "Olmo2Model",
                              .model_type = "olmo2",
                              .gguf = "olmo2",
                              .model_tensors = kModelTensors,
                              .attention_tensors = kOlmo2Attention,
                              .feed_forward_tensors = kOlmo2FeedForward,
                              .arithmetic = {.input_norms = false, .output_norms = true, .qk_norm = QkNorm::kRow},
                              .keys = {.norm_epsilon_default = 1e-5F, .attention_bias = "attention_bias"}};

}  // namespace kvs::inline model
