#pragma once

#include <cstddef>
#include <optional>

namespace kvs {

/// How a launcher started this process: mpirun of Open MPI, one that speaks PMI (MPICH's), or srun.
struct Launch {
  std::size_t size = 1, rank = 0;              // of all processes
  std::size_t local_size = 1, local_rank = 0;  // of those on this machine

  bool alone() const noexcept { return size == 1; }
  bool is_root() const noexcept { return rank == 0; }
};

/// As the environment tells it. No library is loaded for it.
Launch launch_of_environment();

/// Lets this process see one GPU, that of its place on this machine, of those in CUDA_VISIBLE_DEVICES or of all.
void take_own_gpu(const Launch& launch);

/// The machine's processors, as this process meets them.
struct Processors {
  int online = 1, usable = 1;   // usable: online ones that this process is bound to, else all
  std::optional<double> quota;  // whose time its control groups leave it (core/processor_quota.h)
};

/// Processors for this process: those that it is bound to, or its part of the machine's, and no more than its part of
/// the quota, rounded up.
int own_processors(const Launch& launch, const Processors& machine);

}  // namespace kvs
