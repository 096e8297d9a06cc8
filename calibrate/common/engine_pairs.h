// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/json.h"

namespace kvs::inline calibrate {

/// Which builds of llama.cpp have flash attention on CUDA for a pair of cache types, in ascending order of build
/// requirements. Source: ggml/src/ggml-cuda/fattn.cu of llama.cpp (00a2d60), ggml_cuda_get_best_fattn_kernel.
enum class CudaPair {
  kEveryBuild,  // f16, bf16, q8_0 and q4_0 with themselves, q8_0 keys with q4_0 values
  kAllQuants,   // builds with GGML_CUDA_FA_ALL_QUANTS: any two of f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0
  kNone,        // pairs with iq4_nl
};
CudaPair cuda_pair(std::string_view k, std::string_view v);

/// The storage types of keys and values.
struct TypePair {
  std::string k, v;
};
/// Returns the parameters that store rows as `type`, which is KIND or KIND/KIND of keys and values; empty: no
/// parameter.
Json kv_type_settings(std::string_view type);
/// Returns the types in settings of `full`; nothing if layers differ or if rows are stored in no other type.
std::optional<TypePair> type_pair(const Json& settings);

/// Returns "builds with GGML_CUDA_FA_ALL_QUANTS", as outputs name them.
std::string_view builds_of(CudaPair pair) noexcept;
/// Returns "llama.cpp's flash attention on CUDA takes K q5_1 with V q5_1 in builds with GGML_CUDA_FA_ALL_QUANTS alone;
/// …".
std::string cuda_pair_text(std::string_view k, std::string_view v);

}  // namespace kvs::inline calibrate
