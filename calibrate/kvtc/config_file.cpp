// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kvtc/config_file.h"

#include <cmath>
#include <utility>

#include "calibrate/config/tensor_file.h"
#include "calibrate/method.h"
#include "results/comparison_words.h"
#include "results/evaluation.h"

namespace kvs::inline calibrate {

Json write_kvtc_config(const KvtcConfig& found, const ModelSource& source, const Provenance& provenance,
                       const std::filesystem::path& file, bool force, Json quality) {
  OutputSet outputs;
  const ConfigFile tensors = stage_tensors(file, kvtc_tensors(found.pools), "kvspectrum-kvtc", outputs);
  quality["shared_bytes"] = shared_bytes(found.pools);
  Json config = make_config(std::string(kKvtcMethod.name), source.config(), source.sha256(), kvtc_parameters(found),
                            kvtc_calibration(found), provenance, std::move(quality), {&tensors, 1});
  outputs.add(file, dump_json(config) + "\n");
  outputs.commit(force);
  return config;
}

std::string kvtc_summary(const KvtcConfig& found) {
  std::string components;
  for (const KvtcPool& pool : found.pools)
    components += (components.empty() ? "" : "; ") + std::to_string(pool.keys.components()) + " of " +
                  std::to_string(pool.keys.values()) + " components of keys and " +
                  std::to_string(pool.values.components()) + " of values in " + std::to_string(pool.layers.size()) +
                  " layers";
  return "kvtc: " + text_of("%.1f", found.code_bytes) + " bytes of codes a token, " + text_of("%.3g", found.bits) +
         " bits a value before DEFLATE; " + components + "; " +
         shared_bytes_text(shared_bytes(found.pools), found.window) + '\n';
}

}  // namespace kvs::inline calibrate
