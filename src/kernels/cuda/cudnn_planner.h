// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "kernels/cuda/fused_attention.h"

namespace kvs::cuda {

/// Makes plans with cuDNN's fused attention. The library is loaded at the first call and never linked. The first plan
/// in the order of cuDNN's heuristics that cuDNN can build is used; plans are not timed.
/// @param stream   a cudaStream_t of the current device, which outlives the planner
/// @throws Error kEnvironment if the program was built without cuDNN, or `library` cannot be loaded, is too old, or
///         finds no device.
std::unique_ptr<FusedPlanner> make_cudnn_planner(void* stream, const char* library = "libcudnn.so.9");

/// A GPU that need not be present.
struct DescribedGpu {
  std::string_view properties;  // cuDNN's device properties as JSON
  int architecture = 0;         // 90 for compute capability 9.0
};

/// Returns the number of cuDNN engines that accept a shape on a GPU. Needs libcuda.so.1, loaded or loadable; the stub
/// of the CUDA toolkit suffices.
/// @throws Error kEnvironment without the library; kUnsupported with cuDNN's message if there is no engine.
std::size_t count_cudnn_engines(const FusedShape& shape, const DescribedGpu& gpu,
                                const char* library = "libcudnn.so.9");

}  // namespace kvs::cuda
