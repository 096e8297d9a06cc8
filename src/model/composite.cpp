// SPDX-License-Identifier: Apache-2.0
#include "model/composite.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/error.h"
#include "core/nearest.h"
#include "model/architecture.h"

namespace kvs::inline model {

namespace {

// Sources: each class's configuration in Transformers 5.
constexpr std::array kComposites{
    Composite{"gemma3", "Gemma3ForConditionalGeneration", "gemma3_text", true, false},
    Composite{"gemma3n", "Gemma3nForConditionalGeneration", "gemma3n_text", true},
    Composite{"gemma4", "Gemma4ForConditionalGeneration", "gemma4_text", true},
    Composite{"kimi_k25", "KimiK25ForConditionalGeneration", "deepseek_v3", false},
    Composite{"llama4", "Llama4ForConditionalGeneration", "llama4_text", false},
    Composite{"mistral3", "Mistral3ForConditionalGeneration", "mistral", true},
    Composite{"qwen3_5", "Qwen3_5ForConditionalGeneration", "qwen3_5_text", false},
    Composite{"qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe_text", false},
    Composite{"qwen3_vl", "Qwen3VLForConditionalGeneration", "qwen3_vl_text", false},
    Composite{"qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe_text", false},
};

constexpr std::string_view kText = "text_config";

/// A component of the names of a part's tensors.
struct PartName {
  std::string_view component, part;
};
constexpr std::array kPartNames{PartName{"visual", "vision tower"},
                                PartName{"vision_tower", "vision tower"},
                                PartName{"vision_model", "vision tower"},
                                PartName{"embed_vision", "vision tower"},
                                PartName{"multi_modal_projector", "projector"},
                                PartName{"mm_projector", "projector"},
                                PartName{"mtp", "prediction of several tokens"},
                                PartName{"k_scale", "scales of the cache"},
                                PartName{"v_scale", "scales of the cache"},
                                PartName{"q_scale", "scales of activations"},
                                PartName{"input_scale", "scales of activations"},
                                PartName{"input_global_scale", "scales of activations"},
                                PartName{"input_zero_point", "scales of activations"},
                                PartName{"output_scale", "scales of activations"},
                                PartName{"output_zero_point", "scales of activations"},
                                PartName{"activation_scale", "scales of activations"}};

/// Returns true if `tensor` is of a layer of the decoder with a number of `layers` or more.
bool is_beyond(std::string_view tensor, std::size_t layers) {
  const std::string_view name_of_layers = tensor.starts_with("blk.") ? "blk." : "layers.";  // blk: in GGUF
  const std::size_t at = tensor.find(name_of_layers);
  if (at == std::string_view::npos) return false;
  std::size_t number = 0;
  const char* const begin = tensor.data() + at + name_of_layers.size();
  const auto [end, error] = std::from_chars(begin, tensor.data() + tensor.size(), number);
  return end != begin && error == std::errc() && number >= layers;
}

/// Returns true if a composite class has this name.
bool has_name(std::string_view Composite::*field, const Json& name) {
  return name.is_string() && std::ranges::find(kComposites, name.get<std::string>(), field) != kComposites.end();
}

}  // namespace

const Composite* find_composite(const JsonCursor& root) {
  const bool typed = root.has("model_type");
  if (!root.has(kText)) {
    if (typed && has_name(&Composite::model_type, root.at("model_type").value())) root.at(kText).fail("an object");
    return nullptr;
  }
  if (typed && find_model_type(root.at("model_type").string()) != nullptr) return nullptr;
  const JsonCursor name = typed ? root.at("model_type") : root.at("architectures").at(std::size_t{0});
  const auto* found = std::ranges::find(kComposites, std::string_view(name.string()),
                                        typed ? &Composite::model_type : &Composite::hf_class);
  if (found != kComposites.end()) return found;
  std::vector<std::string> supported;
  supported.reserve(kComposites.size());
  for (const Composite& composite : kComposites) supported.emplace_back(composite.model_type);
  throw Error(ErrorCode::kUnsupported, name.place(),
              "found " + describe_json(name.value()) + " with a text_config, supported are: " + listed(supported));
}

void complete_text_config(const Composite& composite, Json& root) {
  Json& text = root.at(std::string(kText));
  if (!text.is_object()) return;  // its reader reports it
  if (!text.contains("model_type")) text["model_type"] = composite.text_type;
  const auto tied = root.find("tie_word_embeddings");
  text["tie_word_embeddings"] = tied == root.end() || tied->is_null() ? Json(composite.tied_head_default) : *tied;
  if (!composite.caps_logits) text.erase("final_logit_softcapping");
  if (const auto quantized = root.find("quantization_config"); quantized != root.end())
    text["quantization_config"] = *quantized;
}

std::string_view other_part(std::string_view tensor, std::size_t layers) {
  for (std::string_view rest = tensor; !rest.empty();) {
    const std::string_view component = rest.substr(0, rest.find('.'));
    const auto* found = std::ranges::find(kPartNames, component, &PartName::component);
    if (found != kPartNames.end()) return found->part;
    if (component.starts_with("mtp_")) return "prediction of several tokens";
    if (component.find("audio") != std::string_view::npos) return "audio tower";
    rest.remove_prefix(std::min(rest.size(), component.size() + 1));
  }
  return is_beyond(tensor, layers) ? "layers beyond num_hidden_layers" : "";
}

}  // namespace kvs::inline model
