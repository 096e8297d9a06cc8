// SPDX-License-Identifier: Apache-2.0
#include "export/exporters/llama_cpp.h"

#include <algorithm>
#include <array>

#include "calibrate/common/engine_pairs.h"
#include "core/error.h"
#include "export/exporters/engine_types.h"
#include "io/staged_output.h"
#include "model/cache_shape.h"
#include "model/model_tensors.h"

namespace kvs::inline exporting {
namespace {

constexpr std::array<std::string_view, 8> kTypes{"f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"};

void require_type(const ExportJob& job, const std::string& parameter, const std::string& kind) {
  if (std::ranges::find(kTypes, kind) != kTypes.end()) return;
  std::string known;
  for (const std::string_view type : kTypes) known += (known.empty() ? "" : ", ") + std::string(type);
  refuse_parameter(job, parameter, "found " + kind + ", expected a type of llama.cpp: " + known);
}

}  // namespace

Json write_llama_cpp(const ExportJob& job) {
  const EngineTypes types = one_kv_type(job, "llama.cpp");
  require_type(job, "type_k", types.k);
  require_type(job, "type_v", types.v);
  if (!types.engine_layout && cache_shape(job.model.config()).adjacent_pairs > 0)
    refuse_parameter(job, "layout",
                     "found hf, expected engine: llama.cpp keeps the keys of this architecture in adjacent pairs");
  if (job.model.format() != ModelFormat::kGguf)
    throw Error(ErrorCode::kUnsupported, job.model.path().string(),
                "found a Hugging Face folder, expected the GGUF file that llama.cpp is to run");
  const std::filesystem::path model = std::filesystem::absolute(job.model.path());
  const std::string flags = "-ctk " + types.k + " -ctv " + types.v + " -fa on";
  std::string text = "; llama-server --models-preset THIS_FILE, or any llama.cpp program with " + flags + "\n";
  Json notes = Json::array({"flags of any llama.cpp program: " + flags});
  if (cuda_pair(types.k, types.v) != CudaPair::kEveryBuild) {
    const std::string builds = cuda_pair_text(types.k, types.v);
    text += "; " + builds + "\n";
    notes.push_back(builds);
  }
  if (!types.rotate) {
    text += "; the config was measured without rotation: set LLAMA_ATTN_ROT_DISABLE=1 in the environment\n";
    notes.push_back("the config is without rotation: llama.cpp needs LLAMA_ATTN_ROT_DISABLE=1 in the environment");
  }
  text += "[" + model.stem().string() + "]\nmodel = " + model.string() + "\nctk = " + types.k + "\nctv = " + types.v +
          "\nfa = on\n";
  write_staged(job.out, text);
  return {{"settings", {{"ctk", types.k}, {"ctv", types.v}, {"fa", "on"}}},
          {"cuda", builds_of(cuda_pair(types.k, types.v))},
          {"notes", notes}};
}

}  // namespace kvs::inline exporting
