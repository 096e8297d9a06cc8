// SPDX-License-Identifier: Apache-2.0
#include "calibrate/method.h"

#include "calibrate/common/norm_order.h"
#include "calibrate/transform/config.h"

namespace kvs::inline calibrate {
namespace {

void check_transform(const Json& config, const std::string& where) { (void)read_transform_config(config, where); }

void check_transform_tensors(const Json& config, const std::filesystem::path& path) {
  (void)read_transform_layers(config, path);
}

}  // namespace

constinit const Method kTransformMethod{
    .name = "transform",
    .title = "the transform coder",
    .summary = "every token, keys and values in a joint KLT basis, coded under one budget of bits",
    .prefill = Prefill::kNone,
    .form = CacheForm::kRandomAccess,
    .takes_kv_type = false,
    .obstacle = norm_order_obstacle,
    .check = check_transform,
    .check_tensors = check_transform_tensors,
    .priority = 1,
};

}  // namespace kvs::inline calibrate
