#include "model/families/experts.h"

#include "model/parsed_config.h"

namespace kvs::inline model {
namespace {

std::size_t count(const JsonCursor& root, std::string_view key, std::size_t missing) {
  if (!root.has(key) && missing != 0) return missing;
  return static_cast<std::size_t>(root.at(key).integer(1, kMaxWidth));
}

/// Transformers 5 writes num_local_experts where published files say num_experts.
std::string_view count_key(const JsonCursor& root) {
  for (const std::string_view key : {"num_experts", "n_routed_experts", "moe_num_experts"})
    if (root.has(key)) return key;
  return "num_local_experts";
}

}  // namespace

ExpertLayers read_experts(const JsonCursor& root, std::size_t layers, const ExpertKeys& keys) {
  ExpertLayers all{.experts = {}, .sparse = std::vector<bool>(layers, true)};
  ExpertsConfig& experts = all.experts;
  experts.count = count(root, count_key(root), keys.count_default);
  experts.chosen = count(root, "num_experts_per_tok", keys.chosen_default);
  if (experts.chosen > experts.count)
    root.at("num_experts_per_tok").fail("at most the " + std::to_string(experts.count) + " experts");
  experts.d_ff = count(root, keys.width, keys.width_default);
  if (!keys.shared_width.empty()) experts.shared_d_ff = count(root, keys.shared_width, keys.shared_width_default);
  experts.normalised = keys.normalised.empty() || (root.has(keys.normalised) && root.at(keys.normalised).boolean());
  if (!keys.step.empty() && root.has(keys.step)) {
    const auto step = static_cast<std::size_t>(root.at(keys.step).integer(1, kMaxLayers));
    for (std::size_t layer = 0; layer < layers; ++layer) all.sparse[layer] = (layer + 1) % step == 0;
  }
  if (!keys.dense.empty() && root.has(keys.dense)) {
    const JsonCursor dense = root.at(keys.dense);
    for (std::size_t n = 0; n < dense.array_size(); ++n) {
      const std::uint64_t layer = dense.at(n).unsigned_integer(kMaxLayers);
      if (layer < layers) all.sparse[layer] = false;  // Transformers ignores other numbers
    }
  }
  return all;
}

}  // namespace kvs::inline model
