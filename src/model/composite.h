// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "io/json.h"

namespace kvs::inline model {

/// A class of models whose language part is one of several. Its config.json holds the keys of that part as text_config.
struct Composite {
  std::string_view model_type, hf_class;
  std::string_view text_type;  // of a text_config without model_type
  bool tied_head_default;      // of tie_word_embeddings next to text_config
  bool caps_logits = true;     // the composite applies its language model's final_logit_softcapping
};

/// Returns the composite that config.json names, or nullptr if the config is a language model's own.
/// @throws Error kUnsupported with the name of a composite that is not supported.
const Composite* find_composite(const JsonCursor& root);

/// Moves the keys that a composite states for the language model into its text_config.
void complete_text_config(const Composite& composite, Json& root);

/// Returns the part of a stored model to which a tensor belongs that the language model does not read, such as "vision
/// tower"; "": no such part.
/// @param layers  of the language model
std::string_view other_part(std::string_view tensor, std::size_t layers);

}  // namespace kvs::inline model
