// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

namespace kvs::inline ranks {

/// How a launcher started this process: mpirun of Open MPI, a launcher that speaks PMI (MPICH's), or srun.
struct Launch {
  std::size_t size = 1, rank = 0;              // of all processes
  std::size_t local_size = 1, local_rank = 0;  // of the processes on this machine

  bool alone() const noexcept { return size == 1; }
  bool is_root() const noexcept { return rank == 0; }
};

/// Reads the launch from the environment. Loads no library.
Launch launch_of_environment();

/// Restricts this process to the GPU with its local rank, of those in CUDA_VISIBLE_DEVICES or, without it, of all.
void take_own_gpu(const Launch& launch);

/// The machine's processors as seen by this process.
struct Processors {
  int online = 1, usable = 1;   // usable: online processors that this process is bound to; not bound: all
  std::optional<double> quota;  // processor time that control groups leave to this process (core/processor_quota.h)
};

/// Returns the number of processors for this process: those that it is bound to, or its part of the machine's; at most
/// its part of the quota, rounded up.
int own_processors(const Launch& launch, const Processors& machine);

}  // namespace kvs::inline ranks
