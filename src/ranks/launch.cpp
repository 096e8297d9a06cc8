// SPDX-License-Identifier: Apache-2.0
#include "ranks/launch.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvs::inline ranks {
namespace {

std::optional<std::size_t> number(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view view(text);
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size()) return std::nullopt;
  return value;
}

/// Reads a list such as Slurm's "8(x4),2" (one entry for each host) and returns its first number (equal on all ranks).
std::optional<std::size_t> first_number(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  std::size_t value = 0;
  if (std::from_chars(text, text + std::strlen(text), value).ec != std::errc()) return std::nullopt;
  return value;
}

/// The environment variables in which a launcher tells a process its rank and the number of ranks.
struct Names {
  const char *size, *rank, *local_size, *local_rank;
};
constexpr Names kLaunchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_LOCALID"}};

std::vector<std::string_view> words(std::string_view list) {
  std::vector<std::string_view> found;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    found.push_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return found;
}

}  // namespace

Launch launch_of_environment() {
  for (const Names& names : kLaunchers) {
    const auto size = number(names.size), rank = number(names.rank);
    if (!size || !rank || *rank >= *size) continue;  // the innermost launcher counts, even with one process
    Launch launch{.size = *size, .rank = *rank};
    launch.local_rank = number(names.local_rank).value_or(0);
    launch.local_size = std::max(first_number(names.local_size).value_or(1), launch.local_rank + 1);
    return launch;
  }
  return {};
}

void take_own_gpu(const Launch& launch) {
  constexpr char kVisible[] = "CUDA_VISIBLE_DEVICES";
  const char* const visible = std::getenv(kVisible);
  std::string own = std::to_string(launch.local_rank);
  if (visible != nullptr) {
    const auto devices = words(visible);
    if (devices.size() == 1) return;  // the launcher has chosen
    own = launch.local_rank < devices.size() ? devices[launch.local_rank] : "";
  }
  ::setenv(kVisible, own.c_str(), 1);
}

int own_processors(const Launch& launch, const Processors& machine) {
  const auto ranks = static_cast<int>(launch.local_size);
  const int own = machine.usable < machine.online ? machine.usable : std::max(1, machine.online / ranks);
  if (!machine.quota || *machine.quota >= static_cast<double>(own) * ranks) return own;
  return std::clamp(static_cast<int>(std::ceil(*machine.quota / ranks)), 1, own);
}

}  // namespace kvs::inline ranks
