// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "calibrate/transform/codes.h"

namespace kvs::inline calibrate {

/// Codes in the storage form: each call of append() makes one block (LevelBlock), which decodes by itself. Reading any
/// token decodes its block. @param products  of a layer or a group in the storage form
std::unique_ptr<TransformCodes> make_storage_codes(std::shared_ptr<const TransformProducts> products);

}  // namespace kvs::inline calibrate
