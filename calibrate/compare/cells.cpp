#include "calibrate/compare/cells.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>

#include "calibrate/registry.h"
#include "core/error.h"

namespace kvs {
namespace {

/// Returns the priority of a cell's method. A cell without a cache may have the name of a series: its priority is
/// arbitrary.
int priority_of(const CompareCell& cell) {
  const Method* const method = find_method(cell.method);
  return method == nullptr ? 0 : method->priority;
}

/// Returns all cells interleaved by budget, likely winners first. If the time ends early, each budget then has scored
/// cells.
std::vector<std::size_t> budgets_in_turn(std::span<const CompareCell> cells) {
  std::vector<std::size_t> order(cells.size()), turn(cells.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t n) {
    const CompareCell& cell = cells[n];
    return std::tuple(priority_of(cell), cell.type.empty(), !cell.calibrated);
  });
  std::map<double, std::size_t> count;
  for (const std::size_t n : order) turn[n] = count[cells[n].budget]++;
  std::ranges::stable_sort(order, {}, [&](std::size_t n) { return turn[n]; });
  return order;
}

}  // namespace

CacheChoice cell_choice(const CompareCell& cell, const ModelSource& source) {
  CacheChoice choice =
      cell.config.empty() ? CacheChoice{.method = find_method(cell.method)} : cache_of_config(cell.config, source);
  choice.parameters.push_back({cell.settings, cell.label + ": ", ErrorCode::kUsage});
  return choice;
}

std::vector<CompareCell> config_cells(std::span<const std::string> configs, const CompareGrid& grid,
                                      const ModelSource& source) {
  const auto stem = [](const std::string& path) { return std::filesystem::path(path).stem(); };
  std::vector<CompareCell> cells;
  for (const std::string& path : configs) {
    const CacheChoice choice = cache_of_config(path, source);
    const bool alone = std::ranges::count(configs, stem(path), stem) == 1;
    const std::string name = choice.name() + " (" + (alone ? stem(path).string() : path) + ')';
    std::vector<std::string> types{""};
    if (choice.takes_kv_type()) types.insert(types.end(), grid.composed.begin(), grid.composed.end());
    for (const std::string& type : types) {
      CompareCell cell{.label = cell_label(name, type),
                       .method = choice.name(),
                       .type = type,
                       .config = path,
                       .calibrated = choice.calibrated};
      cell.settings = type_settings(type);
      cell.shared_bytes = choice.shared_bytes();
      if (choice.method->prefill == Prefill::kWhole) cell.settings["prefix"] = grid.prefix;
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

RunnableCells runnable_cells(std::vector<CompareCell>& cells, const ModelSource& source, Backend& backend,
                             std::size_t tokens) {
  RunnableCells all;
  for (const std::size_t n : budgets_in_turn(cells)) {
    if (!cells[n].error.empty()) continue;
    try {
      // A config's factors are loaded for each document, so that memory holds the factors of one cell at a time.
      std::function<Cache()> make = [cell = cells[n], &source, &backend, tokens] {
        return cache_maker(cell_choice(cell, source), backend, source.config(), tokens)();
      };
      (void)make();
      all.make.push_back(std::move(make));
      all.cells.push_back(n);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnsupported && error.code() != ErrorCode::kUsage) throw;
      cells[n].error = error.what();
    }
  }
  return all;
}

}  // namespace kvs
