// SPDX-License-Identifier: Apache-2.0
#include "calibrate/oscar/config_file.h"

#include <utility>

#include "calibrate/config/tensor_file.h"
#include "calibrate/method.h"

namespace kvs::inline calibrate {

Json write_oscar_config(const std::vector<OscarRotations>& layers, const ModelSource& source, Json parameters,
                        const Provenance& provenance, const std::filesystem::path& file, bool force, Json quality) {
  OutputSet outputs;
  const ConfigFile tensors = stage_tensors(file, rotation_tensors(layers), "kvspectrum-oscar", outputs);
  quality["shared_bytes"] = shared_bytes(layers);
  Json config = make_config(std::string(kOscarMethod.name), source.config(), source.sha256(), std::move(parameters),
                            Json::object(), provenance, std::move(quality), {&tensors, 1});
  outputs.add(file, dump_json(config) + "\n");
  outputs.commit(force);
  return config;
}

}  // namespace kvs::inline calibrate
