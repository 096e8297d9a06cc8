// SPDX-License-Identifier: Apache-2.0
#include "calibrate/common/sink_notes.h"

#include <algorithm>

namespace kvs::inline calibrate {
namespace {

std::vector<std::string> if_sinks(const ModelConfig& model, const char* note) {
  if (std::ranges::any_of(model.layer, [](const LayerConfig& each) { return each.attention.sinks; })) return {note};
  return {};
}

}  // namespace

std::vector<std::string> first_token_notes(const ModelConfig& model) {
  return if_sinks(model, "the model has learned attention sinks; its first tokens need not be sinks");
}

std::vector<std::string> mass_notes(const ModelConfig& model) {
  return if_sinks(model, "the attention of a token is a share of a sum that holds the model's learned sink");
}

}  // namespace kvs::inline calibrate
