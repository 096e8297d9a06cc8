// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "calibrate/kvtc/pool.h"
#include "io/json.h"
#include "io/output_tensor.h"

namespace kvs::inline calibrate {

/// The most sinks, recent tokens, and tokens of the document that a budget is for.
inline constexpr std::size_t kMaxKvtcTokens = std::size_t{1} << 30;
inline constexpr std::size_t kMaxKvtcBlock = 4096;

/// The content of a config, without its model and its provenance.
struct KvtcConfig {
  KvtcTokens tokens;
  std::vector<KvtcPool> pools;        // without means and bases where only the config is read
  std::size_t window = 0, bytes = 0;  // the budget: stored bytes of a document of `window` tokens
  double bits = 0;                    // of a value, before the entropy coder: groups' codes, shifts and scales
  double code_bytes = 0;              // of a token in all layers, after the entropy coder: mean of the calibration
};

/// Return the members `parameters` and `calibration` of the config.
Json kvtc_parameters(const KvtcConfig& config);
Json kvtc_calibration(const KvtcConfig& config);

/// Reads a config that check_config has checked, without tensors. @param where  the file, for messages
/// @throws Error kInput
KvtcConfig read_kvtc_config(const Json& config, const std::string& where);

/// Returns the tensors of the file next to the config: of each pool's keys and values the mean in f32, [value], and the
/// basis in f16, [component, value].
std::vector<OutputTensor> kvtc_tensors(const std::vector<KvtcPool>& pools);
/// Reads the config with these tensors. @param path  config checked by read_config()
/// @throws Error kInput naming the tensor
KvtcConfig read_kvtc_pools(const Json& config, const std::filesystem::path& path);

/// Returns the bytes of means and bases, which the caches of all sequences share.
std::size_t shared_bytes(const std::vector<KvtcPool>& pools) noexcept;

}  // namespace kvs::inline calibrate
