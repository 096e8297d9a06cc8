// SPDX-License-Identifier: Apache-2.0
// Only this file includes cuDNN's headers: they take longer to compile than the rest of this folder.
#include "kernels/cuda/cudnn_planner.h"

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <exception>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "kernels/cuda/check.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // the front end finds its functions through this handle
}

namespace kvs::cuda {
namespace {

namespace fe = cudnn_frontend;

// 9.15.1: before, the front end adds a padding mask if a length is no multiple of 128, without which cuDNN is wrong.
constexpr std::size_t kOldestVersion = 91501;
enum Uid : std::int64_t { kQ = 1, kK, kV, kOut };

/// Shortens cuDNN's reports, which have one line per engine. The first few lines suffice.
std::string one_line(std::string text) {
  constexpr std::size_t kMost = 300;
  if (text.size() > kMost) text.replace(kMost, std::string::npos, " …");
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

void check_fe(fe::error_t status, ErrorCode code, std::string_view step) {
  if (status.is_bad()) throw Error(code, "cuDNN", std::string(step) + " failed: " + one_line(status.get_message()));
}

void check_cudnn(cudnnStatus_t status, std::string_view what) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw Error(ErrorCode::kEnvironment, "cuDNN",
                std::string(what) + " failed: " + fe::detail::get_error_string(status));
}

/// Returns the result of `make`. The front end reports a function missing in the library as a standard exception.
template <class Make>
auto with_errors(ErrorCode code, Make make) {
  try {
    return make();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& failure) {
    throw Error(code, "cuDNN", one_line(failure.what()));
  }
}

std::string version_name(std::size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

/// Loads the library once per process. A later call must name the same library. Closes a library that is too old.
void load(const char* library) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw Error(ErrorCode::kEnvironment, "cuDNN", dlerror());
  const auto version_of = reinterpret_cast<decltype(&cudnnGetVersion)>(dlsym(handle, "cudnnGetVersion"));
  const std::size_t version = version_of == nullptr ? 0 : version_of();
  const bool usable = version >= kOldestVersion;
  if (!usable || fe::cudnn_dlhandle != nullptr)
    dlclose(handle);  // reference-counted: a library in use stays open
  else
    fe::cudnn_dlhandle = handle;
  if (!usable)
    throw Error(ErrorCode::kEnvironment, "cuDNN",
                "found version " + version_name(version) + ", expected " + version_name(kOldestVersion) + " or later");
}

std::shared_ptr<fe::graph::Tensor_attributes> states(fe::graph::Graph& graph, Uid uid, const FusedShape& s,
                                                     std::size_t heads) {
  const auto h = static_cast<std::int64_t>(heads), t = static_cast<std::int64_t>(s.tokens),
             d = static_cast<std::int64_t>(s.head_dim);
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_name("states" + std::to_string(uid))
                          .set_uid(uid)
                          .set_dim({static_cast<std::int64_t>(s.members), h, t, d})
                          .set_stride({h * t * d, t * d, d, 1}));
}

/// Builds the operation and finds cuDNN's engines for it, best first by its heuristics.
/// @param handle  null: for the device described by the graph's properties
void find_engines(fe::graph::Graph& graph, const FusedShape& s, cudnnHandle_t handle) {
  constexpr auto kRefused = ErrorCode::kUnsupported;
  graph.set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  const auto q = states(graph, kQ, s, s.query_heads), k = states(graph, kK, s, s.kv_heads),
             v = states(graph, kV, s, s.kv_heads);
  auto attributes = fe::graph::SDPA_attributes();
  attributes.set_name("attention").set_generate_stats(false).set_attn_scale(s.scale);
  if (s.causal) attributes.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
  // A token's own position counts as in AttentionInput: key + bound > query.
  if (s.window > 0) attributes.set_diagonal_band_left_bound(static_cast<int>(s.window));
  const auto [out, statistics] = graph.sdpa(q, k, v, attributes);
  const auto h = static_cast<std::int64_t>(s.query_heads), t = static_cast<std::int64_t>(s.tokens),
             d = static_cast<std::int64_t>(s.head_dim);
  out->set_output(true)
      .set_uid(kOut)
      .set_dim({static_cast<std::int64_t>(s.members), h, t, d})
      .set_stride({t * h * d, d, h * d, 1});
  check_fe(graph.validate(), kRefused, "validation");
  check_fe(handle == nullptr ? graph.build_operation_graph() : graph.build_operation_graph(handle), kRefused,
           "the operation");
  check_fe(graph.create_execution_plans({fe::HeurMode_t::A}), kRefused, "the choice of an engine");
  check_fe(graph.check_support(), kRefused, "the search for an engine");
}

class CudnnPlan final : public FusedPlan {
 public:
  CudnnPlan(const FusedShape& shape, cudnnHandle_t handle, int architecture, cudaStream_t stream)
      : handle_(handle), stream_(stream) {
    graph_.set_sm_version(architecture);  // otherwise the front end searches for its own CUDA runtime
    find_engines(graph_, shape, handle);
    check_fe(graph_.build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE), ErrorCode::kUnsupported, "a plan");
    std::int64_t bytes = 0;
    check_fe(graph_.get_workspace_size(bytes), ErrorCode::kUnsupported, "the size of the workspace");
    workspace_bytes_ = static_cast<std::size_t>(bytes);
  }
  ~CudnnPlan() override { (void)cudaStreamSynchronize(stream_); }  // the plan's code may still run
  CudnnPlan(const CudnnPlan&) = delete;
  CudnnPlan& operator=(const CudnnPlan&) = delete;

  std::size_t workspace_bytes() const override { return workspace_bytes_; }
  void run(const void* q, const void* k, const void* v, void* out, void* workspace) override {
    std::unordered_map<std::int64_t, void*> arrays{
        {kQ, const_cast<void*>(q)}, {kK, const_cast<void*>(k)}, {kV, const_cast<void*>(v)}, {kOut, out}};
    with_errors(ErrorCode::kInternal, [&] {
      check_fe(graph_.execute(handle_, arrays, workspace), ErrorCode::kInternal, "attention");
      return 0;
    });
  }

 private:
  fe::graph::Graph graph_;
  cudnnHandle_t handle_;
  cudaStream_t stream_;
  std::size_t workspace_bytes_ = 0;
};

class CudnnPlanner final : public FusedPlanner {
 public:
  explicit CudnnPlanner(cudaStream_t stream) : stream_(stream) {
    int device = 0, major = 0, minor = 0;
    check_cuda(cudaGetDevice(&device), "cudaGetDevice");
    check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
    check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "cudaDeviceGetAttribute");
    architecture_ = 10 * major + minor;
    check_cudnn(fe::detail::create_handle(&handle_), "a handle");
    check_cudnn(fe::detail::set_stream(handle_, stream), "the handle's stream");
  }
  ~CudnnPlanner() override { (void)fe::detail::destroy_handle(handle_); }
  CudnnPlanner(const CudnnPlanner&) = delete;
  CudnnPlanner& operator=(const CudnnPlanner&) = delete;

  std::string name() const override { return "cuDNN " + version_name(fe::detail::get_backend_version()); }
  std::unique_ptr<FusedPlan> plan(const FusedShape& shape) override {
    return with_errors(ErrorCode::kUnsupported,
                       [&] { return std::make_unique<CudnnPlan>(shape, handle_, architecture_, stream_); });
  }

 private:
  cudaStream_t stream_;
  int architecture_ = 0;
  cudnnHandle_t handle_ = nullptr;
};

}  // namespace

std::unique_ptr<FusedPlanner> make_cudnn_planner(void* stream, const char* library) {
  return with_errors(ErrorCode::kEnvironment, [&] {
    load(library);
    return std::make_unique<CudnnPlanner>(static_cast<cudaStream_t>(stream));
  });
}

std::size_t count_cudnn_engines(const FusedShape& shape, const DescribedGpu& gpu, const char* library) {
  load(library);
  const auto properties = std::make_shared<fe::DeviceProperties>();
  check_fe(properties->deserialize(std::vector<std::uint8_t>(gpu.properties.begin(), gpu.properties.end())),
           ErrorCode::kInternal, "reading the GPU's properties");
  fe::graph::Graph graph;
  graph.set_device_properties(properties).set_sm_version(gpu.architecture);
  find_engines(graph, shape, nullptr);
  return static_cast<std::size_t>(graph.get_execution_plan_count());
}

}  // namespace kvs::cuda
