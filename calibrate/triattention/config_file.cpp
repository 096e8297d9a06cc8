#include "calibrate/triattention/config_file.h"

#include <utility>

#include "calibrate/method.h"
#include "io/digest.h"
#include "io/output_set.h"
#include "io/safetensors_writer.h"

namespace kvs::inline calibrate {

Json write_triattention_config(const std::vector<QueryStatistics>& layers, const ModelSource& source, Json parameters,
                               const Provenance& provenance, const std::filesystem::path& file, bool force) {
  const std::filesystem::path tensors = std::filesystem::path(file).replace_extension(".safetensors");
  OutputSet outputs;
  const std::filesystem::path& staged = outputs.stage(tensors);
  write_safetensors(staged, statistics_tensors(layers), {{"format", "kvspectrum-triattention"}});
  const ConfigFile named{tensors.filename().string(), sha256_of_file(staged)};
  Json lengths = Json::array();
  for (const QueryStatistics& one : layers) lengths.push_back(one.resultant_length());
  Json config =
      make_config(std::string(kTriattentionMethod.name), source.config(), source.sha256(), std::move(parameters),
                  {{"resultant_length", std::move(lengths)}}, provenance, Json::object(), {&named, 1});
  outputs.add(file, dump_json(config) + "\n");
  outputs.commit(force);
  return config;
}

}  // namespace kvs::inline calibrate
