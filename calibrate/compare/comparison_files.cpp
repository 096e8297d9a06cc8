// SPDX-License-Identifier: Apache-2.0
#include "calibrate/compare/comparison_files.h"

#include <map>

#include "calibrate/config/config.h"
#include "core/error.h"
#include "io/digest.h"
#include "run/outputs.h"

namespace kvs::inline compare {
namespace {

namespace fs = std::filesystem;

/// Returns the tensor file of a config.
fs::path tensors_of(fs::path config) { return config.replace_extension(".safetensors"); }

/// Returns the configs that calibrations write.
std::vector<fs::path> calibrated_configs(const ComparisonFiles& files) {
  std::vector<fs::path> paths;
  for (const SeriesMethod* const method : files.calibration.series)
    for (const double budget : files.budgets) paths.push_back(files.calibration.config(method->name, budget));
  return paths;
}

/// Returns the files that configs name: name in `best` -> source.
std::map<fs::path, fs::path> files_to_copy(const ComparisonFiles& files) {
  std::map<fs::path, fs::path> copies;
  for (const fs::path& config : calibrated_configs(files)) {
    const fs::path tensors = tensors_of(config);
    copies[files.best / tensors.filename()] = tensors;
  }
  for (const std::string& path : files.configs) {
    const Json config = read_config(path);
    for (const Json& file : config.at("files")) {
      const std::string name = file.at("path");
      const auto from = fs::path(path).parent_path() / name;
      const auto [found, fresh] = copies.emplace(files.best / name, from);
      if (!fresh && (found->second.parent_path() == files.calibration.folder ||
                     sha256_of_file(found->second) != sha256_of_file(from)))
        throw Error(ErrorCode::kUsage, from.string(),
                    "has the name of " + found->second.string() + ", expected names of their own for --best-dir");
    }
  }
  return copies;
}

fs::path best_path(const ComparisonFiles& files, double budget) { return files.best / share_file("best", budget); }
fs::path smallest_path(const ComparisonFiles& files, double loss) { return files.best / share_file("smallest", loss); }

/// Returns true if this comparison writes the configuration's config.
bool is_calibrated_here(const ComparisonFiles& files, const ComparedConfiguration& one) {
  return one.config && !files.calibration.series.empty() &&
         fs::path(*one.config).parent_path() == files.calibration.folder;
}

}  // namespace

fs::path ComparisonFiles::speeds() const { return sibling_path(out, "_speed") += ".json"; }

std::vector<fs::path> ComparisonFiles::others() const {
  std::vector<fs::path> paths = figure_paths(out, "_pareto");
  paths.push_back(speeds());
  if (!best.empty()) {
    for (const double budget : budgets) paths.push_back(best_path(*this, budget));
    for (const double loss : losses) paths.push_back(smallest_path(*this, loss));
    for (const auto& [to, from] : files_to_copy(*this)) paths.push_back(to);
  }
  for (const fs::path& config : calibrated_configs(*this)) {
    paths.push_back(config);
    paths.push_back(tensors_of(config));
  }
  return paths;
}

std::vector<fs::path> ComparisonFiles::written(const ComparisonResult& result) const {
  std::vector<fs::path> paths;
  if (!trade_points(result).empty()) paths = figure_paths(out, "_pareto");
  if (result.timed) paths.push_back(speeds());
  for (const ComparedConfiguration& one : result.configurations)
    if (is_calibrated_here(*this, one)) {
      paths.emplace_back(*one.config);
      paths.push_back(tensors_of(paths.back()));
    }
  for_each_choice(result, [&](const auto& one, const auto& path) {
    if (one) paths.push_back(path);
  });
  return paths;
}

void ComparisonFiles::for_each_choice(
    const ComparisonResult& result,
    const std::function<void(const std::optional<std::size_t>&, const fs::path&)>& use) const {
  if (best.empty()) return;
  for (const BestChoice& one : result.best) use(one.configuration, best_path(*this, one.budget));
  for (const SmallestChoice& one : result.smallest) use(one.configuration, smallest_path(*this, one.loss));
}

}  // namespace kvs::inline compare
