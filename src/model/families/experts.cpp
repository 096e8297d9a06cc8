// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts.h"

#include <algorithm>

#include "model/hf_options.h"
#include "model/parsed_config.h"
#include "model/routing.h"

namespace kvs::inline model {
namespace {

/// Returns the name of the key that the config has, or the class's own.
std::string_view stated_key(const JsonCursor& root, const std::array<std::string_view, 2>& names) {
  const auto& [own, other] = names;
  if (other.empty() || !root.has(other)) return own;
  if (root.has(own) && !(root.at(own).value() == root.at(other).value()))  // a NaN is neither equal nor unequal
    root.at(other).fail(describe_json(root.at(own).value()) + ", the value of /" + std::string(own));
  return other;
}

/// Reads a list of the layers' kinds: "sparse" layers have experts.
std::vector<bool> listed_sparse(const JsonCursor& types, std::size_t layers) {
  if (types.array_size() != layers) types.fail("one kind for each of " + std::to_string(layers) + " layers");
  std::vector<bool> sparse(layers);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const std::string& kind = types.at(layer).string();
    if (kind != "dense" && kind != "sparse") types.at(layer).fail("\"dense\" or \"sparse\"");
    sparse[layer] = kind == "sparse";
  }
  return sparse;
}

/// Reads the layers that have experts: [layer].
std::vector<bool> sparse_layers(const JsonCursor& root, std::size_t layers, const ExpertKeys& keys) {
  if (!keys.types.empty() && root.has(keys.types)) return listed_sparse(root.at(keys.types), layers);
  std::vector<bool> sparse(layers, true);
  const std::size_t step = keys.step.empty() ? 1 : hf_count(root, keys.step, kMaxWidth, 1);
  std::size_t first = keys.first_default, last = layers - 1;
  if (!keys.first.empty() && root.has(keys.first)) first = root.at(keys.first).unsigned_integer(kMaxLayers);
  if (!keys.last.empty() && root.has(keys.last)) {
    const std::int64_t stated = root.at(keys.last).integer(-1, static_cast<std::int64_t>(kMaxLayers));
    if (stated >= 0) last = static_cast<std::size_t>(stated);
  }
  for (std::size_t layer = 0; layer < layers; ++layer)
    sparse[layer] = (layer + 1) % step == 0 && layer >= first && layer <= last;
  if (keys.dense.empty() || !root.has(keys.dense)) return sparse;
  const JsonCursor dense = root.at(keys.dense);
  for (std::size_t n = 0; n < dense.array_size(); ++n) {
    const std::uint64_t layer = dense.at(n).unsigned_integer(kMaxLayers);
    if (layer < layers) sparse[layer] = false;  // Transformers ignores other numbers
  }
  return sparse;
}

/// Reads the number of experts of a token: for all layers, or one for each.
void read_chosen(const JsonCursor& root, const ExpertKeys& keys, ExpertLayers& all) {
  const std::string_view key = stated_key(root, keys.chosen);
  const std::string most = "at most the " + std::to_string(all.experts.count) + " experts";
  if (!root.has(key) || !root.at(key).value().is_array()) {
    all.experts.chosen = hf_count(root, key, kMaxWidth, keys.chosen_default);
    if (all.experts.chosen > all.experts.count) fail_hf_number(root, key, all.experts.chosen, most);
    return;
  }
  const JsonCursor list = root.at(key);
  if (list.array_size() != all.sparse.size())
    list.fail("a number, or one for each of " + std::to_string(all.sparse.size()) + " layers");
  for (std::size_t layer = 0; layer < all.sparse.size(); ++layer) {
    all.chosen.push_back(static_cast<std::size_t>(list.at(layer).integer(1, static_cast<std::int64_t>(kMaxWidth))));
    if (all.chosen.back() > all.experts.count) list.at(layer).fail(most);
  }
  all.experts.chosen = all.chosen.front();
}

}  // namespace

ExpertKeys with_other_count(const JsonCursor& root, ExpertKeys keys) {
  constexpr std::string_view kOther = "num_experts";
  if (root.has(kOther)) keys.count[1] = kOther;
  return keys;
}

ExpertLayers read_experts(const JsonCursor& root, std::size_t layers, const ExpertKeys& keys) {
  ExpertLayers all{.experts = {.scores = keys.scores}, .sparse = sparse_layers(root, layers, keys)};
  if (std::ranges::find(all.sparse, true) == all.sparse.end()) return all;
  ExpertsConfig& experts = all.experts;
  experts.count = hf_count(root, stated_key(root, keys.count), kMaxWidth, keys.count_default);
  read_chosen(root, keys, all);
  experts.d_ff = hf_count(root, keys.width, kMaxWidth, keys.width_default);
  if (!keys.shared_width.empty())
    experts.shared_d_ff = hf_count(root, keys.shared_width, kMaxWidth, keys.shared_width_default);
  if (!keys.shared_count.empty()) {
    const bool stated = root.has(keys.shared_count);
    experts.shared_d_ff =
        experts.d_ff * (stated ? root.at(keys.shared_count).unsigned_integer(kMaxWidth) : keys.shared_count_default);
  }
  experts.normalised = keys.normalised.empty() || hf_switch(root, keys.normalised, keys.normalised_default);
  if (!keys.least_sum.empty()) experts.least_sum = static_cast<float>(hf_positive(root, keys.least_sum, 1e-12));
  if (keys.clamped)
    experts.clamp = {.alpha = static_cast<float>(hf_positive(root, "swiglu_alpha", 1.702)),
                     .limit = static_cast<float>(hf_positive(root, "swiglu_limit", 7))};
  if (keys.groups || keys.scaled)
    experts.scale = static_cast<float>(hf_positive(root, "routed_scaling_factor", double{keys.scale_default}));
  if (!keys.groups) return all;
  experts.groups = hf_count(root, "n_group", kMaxWidth, keys.groups_default);
  experts.chosen_groups = hf_count(root, "topk_group", kMaxWidth, keys.chosen_groups_default);
  if (const std::string problem = group_problem(experts); !problem.empty())
    throw Error(ErrorCode::kInput, hf_place(root, experts.count % experts.groups != 0 ? "n_group" : "topk_group"),
                problem);
  return all;
}

}  // namespace kvs::inline model
