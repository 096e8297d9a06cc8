// SPDX-License-Identifier: Apache-2.0
#include "calibrate/method.h"

#include "calibrate/common/window_notes.h"
#include "calibrate/elitekv/check.h"
#include "calibrate/elitekv/obstacles.h"

namespace kvs::inline calibrate {
namespace {

std::vector<std::string> elitekv_notes(const ModelConfig& model) {
  std::vector<std::string> notes;
  if (model.group() > 1)
    notes.push_back("sets are per KV head; --granularity query-head is analysis only, for " +
                    std::to_string(model.group()) + " query heads share a key");
  if (!window_notes(model).empty()) notes.emplace_back("the error counts pairs beyond the sliding windows, too");
  if (const std::string obstacle = factor_obstacle(model); !obstacle.empty())
    notes.push_back("--rank is not possible: " + obstacle);
  if (const std::string obstacle = disjoint_obstacle(model); !obstacle.empty())
    notes.push_back("--disjoint on is not possible: " + obstacle);
  else
    notes.push_back("with --disjoint on r is at most " + std::to_string(model.chunks() / model.kv_heads()));
  return notes;
}

}  // namespace

constinit const Method kElitekvMethod{
    .name = "elitekv",
    .title = "EliteKV",
    .summary = "the elite RoPE chunks of every key rotated, the rest and the values as one low-rank latent",
    .paper = {.authors = "Zhou, Song, Liu, Xi, Jin, Fan, Zhang, Li, Huang",
              .title = "EliteKV: Scalable KV Cache Compression via RoPE Frequency Selection and Joint Low-Rank "
                       "Projection",
              .link = "https://arxiv.org/abs/2503.01586",
              .year = 2025},
    .prefill = Prefill::kNone,
    .obstacle = ropelite_obstacle,
    .notes = elitekv_notes,
    .check = check_elite_config,
    .check_tensors = check_elite_factors,
    .priority = 11,
};

}  // namespace kvs::inline calibrate
