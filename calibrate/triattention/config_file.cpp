// SPDX-License-Identifier: Apache-2.0
#include "calibrate/triattention/config_file.h"

#include <algorithm>
#include <utility>

#include "calibrate/config/tensor_file.h"
#include "calibrate/method.h"
#include "draw/numbers.h"

namespace kvs::inline calibrate {

Json write_triattention_config(const std::vector<QueryStatistics>& layers, const ModelSource& source, Json parameters,
                               const Provenance& provenance, const std::filesystem::path& file, bool force) {
  OutputSet outputs;
  const ConfigFile tensors = stage_tensors(file, statistics_tensors(layers), "kvspectrum-triattention", outputs);
  Json lengths = Json::array();
  for (const QueryStatistics& one : layers) lengths.push_back(one.resultant_length());
  Json config =
      make_config(std::string(kTriattentionMethod.name), source.config(), source.sha256(), std::move(parameters),
                  {{"resultant_length", std::move(lengths)}}, provenance, Json::object(), {&tensors, 1});
  outputs.add(file, dump_json(config) + "\n");
  outputs.commit(force);
  return config;
}

std::string triattention_summary(const std::vector<QueryStatistics>& layers) {
  const auto least = std::ranges::min_element(layers, {}, &QueryStatistics::resultant_length);
  double sum = 0;
  for (const QueryStatistics& one : layers) sum += one.resultant_length();
  return "mean queries of " + std::to_string(layers.size()) + " layers; they are " +
         draw::shown_percent(sum / static_cast<double>(layers.size())) +
         " as long as queries are, and least in layer " + std::to_string(least->layer) + ", " +
         draw::shown_percent(least->resultant_length()) + '\n';
}

}  // namespace kvs::inline calibrate
