// SPDX-License-Identifier: Apache-2.0
#include "calibrate/method.h"

#include "calibrate/common/norm_order.h"
#include "calibrate/kvtc/config.h"

namespace kvs::inline calibrate {
namespace {

void check_kvtc(const Json& config, const std::string& where) { (void)read_kvtc_config(config, where); }

void check_kvtc_tensors(const Json& config, const std::filesystem::path& path) { (void)read_kvtc_pools(config, path); }

std::string kvtc_obstacle(const ModelConfig& model) {
  if (std::string found = own_rows_obstacle(model); !found.empty()) return found;
  return norm_order_obstacle(model);
}

}  // namespace

constinit const Method kKvtcMethod{
    .name = "kvtc",
    .title = "KVTC",
    .summary = "every token, keys and values of all layers by PCA, quantised in groups, then DEFLATE",
    .paper = {.authors = "Staniszewski, Łańcucki",
              .title = "KV Cache Transform Coding for Compact Storage in LLM Inference",
              .link = "https://arxiv.org/abs/2511.01815",
              .year = 2025},
    .prefill = Prefill::kNone,
    .form = CacheForm::kStorage,
    .takes_kv_type = false,
    .obstacle = kvtc_obstacle,
    .check = check_kvtc,
    .check_tensors = check_kvtc_tensors,
    .priority = 2,
};

}  // namespace kvs::inline calibrate
