// SPDX-License-Identifier: Apache-2.0
#include "calibrate/transform/config_file.h"

#include <utility>

#include "calibrate/config/tensor_file.h"

namespace kvs::inline calibrate {

Json write_transform_config(const TransformCalibration& found, const ModelSource& source, const Provenance& provenance,
                            const std::filesystem::path& file, bool force, Json quality) {
  const ModelConfig& model = source.config();
  std::vector<TransformShape> shapes;
  shapes.reserve(found.layers.size());
  for (const TransformLayer& layer : found.layers) shapes.push_back(transform_shape(model, layer.layer));
  OutputSet outputs;
  const ConfigFile tensors =
      stage_tensors(file, transform_tensors(found.layers, shapes), "kvspectrum-transform", outputs);
  quality["shared_bytes"] = shared_bytes(found.layers);
  Json config = make_config("transform", model, source.sha256(), transform_parameters(found.config),
                            transform_calibration(found.config), provenance, std::move(quality), {&tensors, 1});
  outputs.add(file, dump_json(config) + "\n");
  outputs.commit(force);
  return config;
}

}  // namespace kvs::inline calibrate
