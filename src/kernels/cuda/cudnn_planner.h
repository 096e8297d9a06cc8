#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "kernels/cuda/fused_attention.h"

namespace kvs::cuda {

/// Plans by cuDNN's fused attention. The library is loaded when this is first called, and never linked.
/// Of the plans that cuDNN's heuristics name, the first that it can build is taken; none is timed.
/// @param stream   a cudaStream_t of the current device, which outlives the planner
/// @throws Error kEnvironment if the program was built without cuDNN, or `library` cannot be loaded, is too old, or
///         finds no device.
std::unique_ptr<FusedPlanner> make_cudnn_planner(void* stream, const char* library = "libcudnn.so.9");

/// A GPU that need not be there.
struct DescribedGpu {
  std::string_view properties;  // cuDNN's device properties as JSON
  int architecture = 0;         // 90 for compute capability 9.0
};

/// How many of cuDNN's engines take a shape on a GPU. Needs libcuda.so.1 loaded or loadable, of which the stub of
/// CUDA's toolkit is enough.
/// @throws Error kEnvironment without the library; kUnsupported with cuDNN's words if there is none.
std::size_t count_cudnn_engines(const FusedShape& shape, const DescribedGpu& gpu,
                                const char* library = "libcudnn.so.9");

}  // namespace kvs::cuda
