// SPDX-License-Identifier: Apache-2.0
#include "ranks/mpi_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>

namespace kvs::inline ranks {
namespace {

namespace fs = std::filesystem;

constexpr char kName[] = "libkvs_mpi.so";

fs::path library_path() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& path : {folder / kName, folder.parent_path() / KVS_PLUGIN_FOLDER / kName})
    if (fs::exists(path)) return path;
  throw Error(ErrorCode::kEnvironment, kName,
              "found none in " + folder.string() +
                  ", expected it of several ranks: a build with Open MPI (libopenmpi-dev) has it");
}

}  // namespace

std::unique_ptr<Transport> open_mpi(bool thread_may_differ, std::size_t expected) {
  const fs::path path = library_path();
  // RTLD_GLOBAL: MPI loads components that look up its symbols.
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* const open = library == nullptr ? nullptr : ::dlsym(library, kOpenTransport);
  if (open == nullptr)
    throw Error(ErrorCode::kEnvironment, path.native(), "cannot be loaded: " + std::string(::dlerror()));
  std::string reason;
  std::unique_ptr<Transport> transport(reinterpret_cast<OpenTransport>(open)(thread_may_differ, reason));
  if (!transport) throw Error(ErrorCode::kEnvironment, "MPI", reason);
  if (transport->size() != expected)
    throw ForeignLauncher(ErrorCode::kEnvironment, "MPI",
                          "found " + std::to_string(transport->size()) + " ranks, expected the " +
                              std::to_string(expected) +
                              " that were launched: start them with the mpirun of Open MPI, or with srun --mpi=pmix");
  return transport;
}

}  // namespace kvs::inline ranks
