#pragma once

#include <functional>
#include <vector>

#include "calibrate/cache_choice.h"
#include "calibrate/compare/grid.h"

namespace kvs {

/// The cache of a cell. @throws as cache_of_config
CacheChoice cell_choice(const CompareCell& cell, const ModelSource& source);

/// The cells of configs: each as it is, and with its rows stored in each form that they take.
std::vector<CompareCell> config_cells(std::span<const std::string> configs, const CompareGrid& grid,
                                      const ModelSource& source);

/// Makers of the cells' caches, the budgets taking turns. A cell whose cache cannot be made keeps the reason and is
/// left out.
struct RunnableCells {
  std::vector<std::size_t> cells;
  std::vector<std::function<Cache()>> make;
};
RunnableCells runnable_cells(std::vector<CompareCell>& cells, const ModelSource& source, Backend& backend,
                             std::size_t tokens);

}  // namespace kvs
