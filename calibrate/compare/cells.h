#pragma once

#include <functional>
#include <vector>

#include "calibrate/cache_choice.h"
#include "calibrate/compare/grid.h"

namespace kvs {

/// Returns the cache of a cell. @throws as cache_of_config
CacheChoice cell_choice(const CompareCell& cell, const ModelSource& source);

/// Returns the cells of configs: each config unchanged, and with each storage type that its rows support.
std::vector<CompareCell> config_cells(std::span<const std::string> configs, const CompareGrid& grid,
                                      const ModelSource& source);

/// The cells whose caches can be made, interleaved by budget, with functions that make these caches. A cell whose cache
/// cannot be made gets the reason as its error and is left out.
struct RunnableCells {
  std::vector<std::size_t> cells;
  std::vector<std::function<Cache()>> make;
};
RunnableCells runnable_cells(std::vector<CompareCell>& cells, const ModelSource& source, Backend& backend,
                             std::size_t tokens);

}  // namespace kvs
