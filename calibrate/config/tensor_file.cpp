// SPDX-License-Identifier: Apache-2.0
#include "calibrate/config/tensor_file.h"

#include "io/digest.h"
#include "io/safetensors_writer.h"

namespace kvs::inline calibrate {

ConfigFile stage_tensors(const std::filesystem::path& config, std::span<const OutputTensor> tensors,
                         const std::string& format, OutputSet& outputs) {
  const std::filesystem::path file = std::filesystem::path(config).replace_extension(".safetensors");
  const std::filesystem::path& staged = outputs.stage(file);
  write_safetensors(staged, tensors, {{"format", format}});
  return {file.filename().string(), sha256_of_file(staged)};
}

}  // namespace kvs::inline calibrate
