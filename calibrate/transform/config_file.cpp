#include "calibrate/transform/config_file.h"

#include <utility>

#include "io/digest.h"
#include "io/output_set.h"
#include "io/safetensors_writer.h"

namespace kvs::inline calibrate {
namespace {

ConfigFile stage_tensors(const std::filesystem::path& file, const std::vector<TransformLayer>& layers,
                         const ModelConfig& model, OutputSet& outputs) {
  std::vector<TransformShape> shapes;
  for (const TransformLayer& layer : layers) shapes.push_back(transform_shape(model, layer.layer));
  const std::filesystem::path& staged = outputs.stage(file);
  write_safetensors(staged, transform_tensors(layers, shapes), {{"format", "kvspectrum-transform"}});
  return {file.filename().string(), sha256_of_file(staged)};
}

}  // namespace

Json write_transform_config(const TransformCalibration& found, const ModelSource& source, const Provenance& provenance,
                            const std::filesystem::path& file, bool force, Json quality) {
  const ModelConfig& model = source.config();
  OutputSet outputs;
  const ConfigFile tensors =
      stage_tensors(std::filesystem::path(file).replace_extension(".safetensors"), found.layers, model, outputs);
  quality["shared_bytes"] = shared_bytes(found.layers);
  Json config = make_config("transform", model, source.sha256(), transform_parameters(found.config),
                            transform_calibration(found.config), provenance, std::move(quality), {&tensors, 1});
  outputs.add(file, dump_json(config) + "\n");
  outputs.commit(force);
  return config;
}

}  // namespace kvs::inline calibrate
