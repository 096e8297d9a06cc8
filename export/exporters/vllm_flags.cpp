// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/vllm_flags.h"

#include <sstream>

#include "export/engines/engines.h"
#include "export/exporters/engine_types.h"
#include "io/staged_output.h"

namespace kvs::inline exporting {
namespace {

/// Returns flags as lines of YAML: "--name a b" is `name: ["a", "b"]`, which vLLM reads as the same words.
std::string yaml_of(const std::string& flags) {
  std::string lines;
  std::istringstream words(flags);
  Json values;
  for (std::string word; words >> word;) {
    if (!word.starts_with("--")) {
      values.push_back(word);
      continue;
    }
    lines += (lines.empty() ? "" : values.dump() + '\n') + word.substr(2) + ": ";
    values = Json::array();
  }
  return lines + values.dump() + '\n';
}

}  // namespace

Json write_vllm_flags(const ExportJob& job) {
  const EngineUse use = use_in_engine(job, kVllm);
  if (use.flags.empty())
    refuse_parameter(job, "type", "found 16 bits in all layers, expected a type that vLLM is told by a flag");
  write_staged(job.out,
               "# vllm serve MODEL --config THIS_FILE, or with the flags\n# " + use.flags + "\n" + yaml_of(use.flags));
  Json notes = Json::array({"flags of vLLM: " + use.flags});
  for (const std::string& note : use.notes) notes.push_back(note);
  return {{"settings", use.flags}, {"notes", notes}};
}

}  // namespace kvs::inline exporting
