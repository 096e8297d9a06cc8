#include "eval/transform/config_file.h"

#include "io/digest.h"
#include "io/file.h"
#include "io/safetensors_writer.h"
#include "io/staged_output.h"

namespace kvs {
namespace {

ConfigFile write_tensors(const std::filesystem::path& file, const std::vector<TransformLayer>& layers,
                         const TransformShape& shape, bool force) {
  StagedOutput staged(file, StagedOutput::Kind::kFile);
  write_safetensors(staged.path(), transform_tensors(layers, shape), {{"format", "kvspectrum-transform"}});
  const std::string digest = sha256_of_file(staged.path());
  staged.commit(force);
  return {file.filename().string(), digest};
}

}  // namespace

Json write_transform_config(const TransformCalibration& found, const ModelSource& source, const Provenance& provenance,
                            const std::filesystem::path& file, bool force) {
  const ModelConfig& model = source.config();
  const ConfigFile tensors = write_tensors(std::filesystem::path(file).replace_extension(".safetensors"), found.layers,
                                           {model.kv_heads, model.head_dim}, force);
  Json config = make_config("transform", model, source.sha256(), transform_parameters(found.config),
                            transform_calibration(found.config), provenance, Json::object(), {&tensors, 1});
  write_file_atomically(file, dump_json(config) + "\n", force);
  return config;
}

}  // namespace kvs
