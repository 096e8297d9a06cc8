// SPDX-License-Identifier: Apache-2.0
#include "run/machine_report.h"

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string_view>

#include "core/error.h"
#include "core/free_memory.h"
#include "core/human.h"
#include "kernels/cuda/make_cuda_backend.h"
#include "kernels/instruction_set.h"
#include "kernels/libraries.h"
#include "version.h"

namespace kvs::inline run {
namespace {

namespace fs = std::filesystem;
using Part = MachineReport::Part;

/// Returns the value of the first line "NAME … : VALUE" of /proc/cpuinfo.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const std::size_t colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "unknown processor";
}

std::string processor_text() {
  const int threads = omp_get_max_threads();
  return processor_name() + ", " + std::to_string(threads) + (threads == 1 ? " thread, " : " threads, ") +
         std::string(name_of(instruction_set())) + (has_bf16_products() ? "" : " (bf16 is no faster than f32)");
}

/// Returns the path of `program` on PATH; empty if it is not there.
std::string find_program(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path file = fs::path(folder) / program;
    if (!folder.empty() && ::access(file.c_str(), X_OK) == 0) return file.string();
  }
  return "";
}

/// Returns what `describe` returns; empty if it throws Error.
std::string unless_missing(const std::function<std::string()>& describe) {
  try {
    return describe();
  } catch (const Error&) {
    return "";
  }
}

std::vector<Part> parts_of_machine() {
  return {
      {"processor", processor_text(), "every command", "", true},
      {"memory", human_bytes(static_cast<double>(free_memory())) + " free", "every command", "", true},
      {"GPU", cuda_available() ? "found, for --device cuda" : "", "--device cuda",
       "needs an NVIDIA GPU and a build with the preset cuda", false},
      {"products", product_library(), "every command", "", true},
      {"decompositions", unless_missing(decomposition_library), "elitekv, transform, recommend",
       "Debian: apt-get install libopenblas0-openmp liblapacke", true},
      {"functions", function_library(), "every command", "", true},
      {"rsvg-convert", find_program("rsvg-convert"), "PNG copies of figures",
       "Debian: apt-get install librsvg2-bin fonts-dejavu-core", false},
      {"mpirun", find_program("mpirun"), "sharing a run among processes", "Debian: apt-get install openmpi-bin", false},
  };
}

/// Returns the folder in which scripts/fetch_model.sh keeps models.
fs::path model_cache() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  if (fs::path cache = variable("KVS_CACHE"); !cache.empty()) return cache;
  if (const fs::path cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache / "kvspectrum";
  return variable("HOME") / ".cache" / "kvspectrum";
}

std::vector<MachineReport::Model> models_in(const fs::path& folder) {
  std::vector<MachineReport::Model> models;
  std::error_code unreadable;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unreadable))
    if (entry.path().extension() == ".gguf")
      models.push_back({entry.path().filename().string(), entry.is_regular_file() ? entry.file_size() : 0});
  std::ranges::sort(models, {}, &MachineReport::Model::path);
  return models;
}

}  // namespace

MachineReport machine_report() {
  const fs::path cache = model_cache();
  return {
      .parts = parts_of_machine(), .cache = cache.string(), .models = models_in(cache), .tool_version = kToolVersion};
}

}  // namespace kvs::inline run
