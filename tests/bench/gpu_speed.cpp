// Speeds of one model on one device, each as a line of JSON on stdout. Every section first checks what it times.
//
// Usage: gpu_speed MODEL [DEVICE = cuda] [TYPE = bf16] [TOKENS = 4096] [SCRATCH = /dev/shm] [SECTION ...]
// Sections: gemm attention prefill capture ropelite ablation jlrd dct (default: all). SCRATCH should be a RAM disk.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "calibrate/faedkv.h"
#include "calibrate/jlrd.h"
#include "calibrate/ropelite.h"
#include "capture/capture_run.h"
#include "capture/live_source.h"
#include "core/error.h"
#include "eval/ablation.h"
#include "io/json.h"
#include "kernels/calibration_ops.h"
#include "kernels/cuda/make_cuda_backend.h"
#include "kernels/spectral_ops.h"
#include "model/decoder.h"
#include "tests/kernels/support.h"

namespace {

using kvs::Backend, kvs::BackendTensor, kvs::Decoder, kvs::DType, kvs::Json, kvs::Model, kvs::ModelConfig,
    kvs::ModelSource;

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The median of `repeats` runs (odd), after one that warms up.
double median_seconds(std::size_t repeats, const std::function<void()>& work) {
  work();
  std::vector<double> times(repeats);
  for (double& time : times) time = seconds(work);
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(repeats / 2));
  return times[repeats / 2];
}

void wait_for(Backend& backend, const void* memory) {
  float probe = 0;
  backend.download(&probe, memory, sizeof probe);
}

void check(bool holds, const char* what) {  // no string: called for every value of a capture
  if (!holds) throw kvs::Error(kvs::ErrorCode::kInternal, "gpu_speed", what);
}

std::vector<std::int32_t> random_ids(std::size_t count, std::size_t vocabulary) {
  std::vector<std::int32_t> ids(count);
  for (std::size_t n = 0; n < count; ++n) ids[n] = static_cast<std::int32_t>((n * 7919 + 13) % vocabulary);
  return ids;
}

struct Session {
  std::string path;
  std::filesystem::path scratch;
  std::size_t tokens;
  std::unique_ptr<ModelSource> source;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  std::unique_ptr<Decoder> decoder;

  const ModelConfig& config() const { return source->config(); }
  std::vector<std::int32_t> document(std::size_t count) const { return random_ids(count, config().vocabulary); }
  double forward_seconds() const {
    const auto ids = document(tokens);
    return median_seconds(5, [&] {
      const auto nll = kvs::document_nll(*decoder, ids);
      check(std::ranges::all_of(nll, [](float value) { return std::isfinite(value); }), "the NLL is not finite");
    });
  }
};

/// Number n of a random sequence, a multiple of 1/64 in [-1, 1): exact in bf16, and so are sums of products in f32
/// below 4,096. Constants would draw less power than a model's numbers, and products of them run faster.
float random_value(std::size_t n) {
  std::uint64_t z = (n + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93U;
  return static_cast<float>(z >> 57) / 64.0F - 1.0F;
}

/// y = x Wᵀ of one shape through the backend, as the forward pass calls it. W holds the sequence, x what follows.
double product_seconds(Backend& backend, std::size_t rows, std::size_t columns, std::size_t inner) {
  const auto fill = [](std::size_t from, std::span<float> out) {
    for (std::size_t n = 0; n < out.size(); ++n) out[n] = random_value(from + n);
  };
  const auto weight = backend.make_weight(
      {columns, inner, [&](std::size_t first, std::size_t, std::span<float> out) { fill(first * inner, out); }, {}});
  const BackendTensor<std::byte, 1> x(backend, {kvs::operand_bytes(backend, rows, inner)});
  const BackendTensor<float, 2> wide(backend, {rows, inner}), y(backend, {rows, columns});
  std::vector<float> host(rows * inner);
  fill(columns * inner, host);
  backend.upload(wide.view().data(), host.data(), wide.bytes());
  const kvs::Operand operand{x.view().data(), rows, inner};
  backend.narrow(wide.view(), operand);
  constexpr int kInFlight = 8;
  const double time = median_seconds(3, [&] {
    for (int n = 0; n < kInFlight; ++n) backend.linear(operand, *weight, y.view(), false);
    wait_for(backend, y.view().data());
  });
  float first = 0;
  double expected = 0;
  backend.download(&first, y.view().data(), sizeof first);
  for (std::size_t n = 0; n < inner; ++n) expected += static_cast<double>(host[n]) * random_value(n);
  check(std::abs(static_cast<double>(first) - expected) < 0.01, "a product is wrong");
  return time / kInFlight;
}

Json measure_gemm(Session& s) {
  const ModelConfig& c = s.config();
  Json shapes = Json::array();
  const std::size_t large = s.backend->device() == "cpu" ? 1024 : 8192;  // 8,192 take a processor minutes
  double peak = 0;
  const std::size_t width = c.query_heads * c.head_dim, qkv = width + 2 * c.kv_heads * c.head_dim;
  for (const auto& [rows, columns, inner] :
       {std::array{large, large, large}, std::array{s.tokens, qkv, c.d_model}, std::array{s.tokens, c.d_model, width},
        std::array{s.tokens, 2 * c.d_ff, c.d_model}, std::array{s.tokens, c.d_model, c.d_ff}}) {
    const double time = product_seconds(*s.backend, rows, columns, inner);
    const double rate =
        2.0 * static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(inner) / time / 1e12;
    shapes.push_back({{"rows", rows}, {"columns", columns}, {"inner", inner}, {"tflops", rate}});
    peak = std::max(peak, rate);
  }
  return {{"peak_tflops", peak}, {"shapes", shapes}};
}

/// Seconds of the first call and of a later one; `out` is filled with the result.
std::pair<double, double> attention_seconds(Backend& backend, const ModelConfig& c, std::size_t tokens,
                                            std::vector<float>& out) {
  const auto states = [&](std::size_t heads, std::size_t from) {
    BackendTensor<float, 4> tensor(backend, {1, heads, tokens, c.head_dim});
    std::vector<float> host(tensor.view().size());
    for (std::size_t n = 0; n < host.size(); ++n) host[n] = random_value(from + n);
    backend.upload(tensor.view().data(), host.data(), tensor.bytes());
    return tensor;
  };
  const std::size_t width = c.query_heads * c.head_dim;
  const auto q = states(c.query_heads, 1), k = states(c.kv_heads, 2), v = states(c.kv_heads, 3);
  const kvs::test::OwnedOperand result(backend, tokens, width);
  const kvs::AttentionInput input{.q = q.view(),
                                  .k = k.view(),
                                  .v = v.view(),
                                  .past_k = {},
                                  .past_v = {},
                                  .scale = 1 / std::sqrt(static_cast<float>(c.head_dim))};
  const auto attend = [&](int times) {
    for (int n = 0; n < times; ++n) backend.attention(input, result);
    wait_for(backend, q.view().data());
  };
  const double first = seconds([&] { attend(1); });
  constexpr int kInFlight = 8;
  const double later = median_seconds(3, [&] { attend(kInFlight); }) / kInFlight;
  out = result.values();
  return {first, later};
}

/// Attention alone, f32 in, at the model's geometry without a window: the own kernel, and in bf16 on CUDA cuDNN's.
Json measure_attention(Session& s) {
  const ModelConfig& c = s.config();
  const auto tokens = static_cast<double>(s.tokens);
  const double flops = 4 * tokens * tokens / 2 * static_cast<double>(c.query_heads * c.head_dim);
  const bool both = s.backend->device() == "cuda" && s.backend->compute_type() == DType::kBF16;
  Json line = Json::object();
  std::vector<float> own, out;
  for (const std::string kernel : {"own", "cudnn"}) {
    if (kernel == "cudnn" && !both) continue;
    ::setenv("KVS_ATTENTION", kernel.c_str(), 1);
    const auto backend = kvs::make_backend(s.backend->device(), s.backend->compute_type());
    ::unsetenv("KVS_ATTENTION");
    try {
      const auto [first, later] = attention_seconds(*backend, c, s.tokens, out);
      line[kernel] = {{"seconds_first", first}, {"seconds", later}, {"tflops", flops / later / 1e12}};
      if (both) line[kernel]["note"] = kvs::cuda_attention_note(*backend);
    } catch (const kvs::Error& error) {
      if (kernel == "own" || error.code() != kvs::ErrorCode::kEnvironment) throw;
      line[kernel] = {{"note", error.what()}};
      continue;
    }
    if (kernel == "own") own = out;
    double difference = 0, square = 0;
    for (std::size_t n = 0; n < out.size(); ++n) {
      difference += std::pow(static_cast<double>(out[n]) - own[n], 2);
      square += std::pow(static_cast<double>(own[n]), 2);
    }
    // Weights and results of both are rounded to bf16, by 2^-9 each on average at most.
    check(square > 0 && std::sqrt(difference / square) < 0.01, "cuDNN's attention is not the own kernel's");
  }
  return line;
}

/// Multiplications and additions of the pass: the products, and causal attention at half of tokens².
double forward_flops(const ModelConfig& c, double tokens) {
  const auto d = static_cast<double>(c.d_model), width = static_cast<double>(c.query_heads * c.head_dim);
  const double weights =
      d * (2 * width + 2 * static_cast<double>(c.kv_heads * c.head_dim) + 3 * static_cast<double>(c.d_ff));
  const double layer = 2 * tokens * weights + 4 * tokens * tokens / 2 * width;
  return static_cast<double>(c.layers) * layer + 2 * tokens * d * static_cast<double>(c.vocabulary);
}

Json measure_prefill(Session& s) {
  const double time = s.forward_seconds(), tokens = static_cast<double>(s.tokens);
  const std::vector<float> nll = kvs::document_nll(*s.decoder, s.document(s.tokens));
  return {{"seconds", time},
          {"tokens_per_second", tokens / time},
          {"tflops", forward_flops(s.config(), tokens) / time / 1e12},
          {"attention", s.backend->device() == "cuda" ? kvs::cuda_attention_note(*s.backend) : ""},
          {"nll_mean", std::accumulate(nll.begin(), nll.end(), 0.0) / static_cast<double>(nll.size())}};
}

/// Seconds to write `bytes` into one preallocated file, as a capture does, by `threads` threads in pieces of 32 MiB.
double parallel_write_seconds(const std::filesystem::path& path, std::uint64_t bytes, std::size_t threads) {
  constexpr std::size_t kPiece = std::size_t{32} << 20;
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  check(file >= 0 && ::posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0, "no room for the file");
  const std::vector<char> piece(kPiece, 1);
  const double time = seconds([&] {
    std::vector<std::thread> workers;
    for (std::size_t n = 0; n < threads; ++n) {
      workers.emplace_back([&, n] {
        for (std::uint64_t at = n * kPiece; at < bytes; at += threads * kPiece)
          if (::pwrite(file, piece.data(), std::min<std::uint64_t>(kPiece, bytes - at), static_cast<off_t>(at)) <= 0)
            std::abort();
      });
    }
    for (std::thread& worker : workers) worker.join();
  });
  ::close(file);
  std::filesystem::remove(path);
  return time;
}

/// Compares the first and the last document of a capture with the states of a pass of their own, in three layers: a
/// value stored in f16 is at most half a unit of its 11 digits away, or of the smallest there is, and another pass
/// gives the same bits.
void check_capture(Session& s, const std::filesystem::path& path, const kvs::CaptureHeader& header) {
  check(std::filesystem::file_size(path) >= kvs::capture_bytes(header), "the capture is too short");
  const auto reader = kvs::CaptureReader::open(path, {});  // whose reads check each dataset's CRC
  check(reader->documents() == header.documents, "the capture lacks documents");
  const std::size_t last = s.config().layers - 1;
  std::vector<std::size_t> layers{0, last / 2, last};
  layers.erase(std::ranges::unique(layers).begin(), layers.end());
  kvs::LiveSource source(*s.decoder, {s.document(s.tokens)});
  source.visit(0, {.layers = layers, .q_pre = true, .k_pre = true, .v = true}, [&](const kvs::DocumentStates& states) {
    for (const auto& [kind, view] : {std::pair{kvs::StateKind::kQPre, states.q_pre},
                                     {kvs::StateKind::kKPre, states.k_pre},
                                     {kvs::StateKind::kV, states.v}}) {
      const std::vector<float> live = kvs::download(*s.backend, view);
      std::vector<float> stored(live.size());
      for (const std::uint64_t document : {std::uint64_t{0}, header.documents - 1}) {
        reader->read_states(document, static_cast<std::int32_t>(states.layer), kind, {stored, view.shape()});
        for (std::size_t n = 0; n < live.size(); ++n)
          check(std::abs(stored[n] - live[n]) <= 0x1.02p-11F * std::abs(live[n]) + 0x1p-25F,
                "a captured value is wrong");
      }
    }
  });
}

Json measure_capture(Session& s) {
  constexpr std::size_t kDocuments = 3;
  std::vector<std::size_t> layers(s.config().layers);
  std::iota(layers.begin(), layers.end(), 0);
  const std::vector states{kvs::StateKind::kQPre, kvs::StateKind::kKPre, kvs::StateKind::kV};
  const kvs::CaptureHeader header =
      kvs::capture_header(s.config(), std::string(64, '0'), layers, states, DType::kF16, s.tokens, kDocuments);
  const auto path = s.scratch / "gpu_speed_capture.h5";
  double first = 0, later = 0, finish = 0;
  {
    const auto writer = kvs::CaptureWriter::open(path, header, Json::object(), {.force = true});
    kvs::CaptureStream stream(*s.backend, *writer, header);
    const auto run = [&] { kvs::capture_document(*s.decoder, s.document(s.tokens), header, stream); };
    first = seconds([&] {
      run();
      stream.drain();
    });
    later = seconds([&] {
      run();
      run();
      stream.drain();
    });
    finish = seconds([&] { writer->finish(); });
  }
  check_capture(s, path, header);
  for (const char* suffix : {"", ".manifest.json", ".lock"}) std::filesystem::remove(path.string() + suffix);
  const std::uint64_t bytes = kvs::capture_bytes(header) / kDocuments;
  const double forward = s.forward_seconds();
  double written = 1e30;
  for (const std::size_t threads : {1, 2, 4, 8})
    written = std::min(written, parallel_write_seconds(s.scratch / "gpu_speed_bytes", bytes, threads));
  return {{"seconds_first_document", first},
          {"seconds", later / (kDocuments - 1)},
          {"finish_seconds", finish},  // once a file: every checksum is read again
          {"forward_seconds", forward},
          {"parallel_pwrite_seconds", written},
          {"bytes", bytes}};
}

Json measure_ropelite(Session& s) {
  const ModelConfig& c = s.config();
  std::vector<std::size_t> layers(c.layers);
  std::iota(layers.begin(), layers.end(), 0);
  const auto ops = kvs::make_calibration_ops(*s.backend);
  kvs::LiveSource source(*s.decoder, {s.document(s.tokens)});
  const kvs::EliteGeometry geometry{layers, c.query_heads, c.kv_heads, c.head_dim / 2};
  double picks = 0;
  const double time = median_seconds(3, [&] {
    kvs::RopeStatistics statistics(geometry, false);
    statistics.add(*ops, source, 0);
    picks = seconds([&] {
      for (std::size_t layer = 0; layer < c.layers; ++layer) {
        const auto grams = statistics.grams(layer, kvs::Granularity::kQueryHead);
        for (std::size_t head = 0; head < c.query_heads; ++head) {
          const std::size_t size = geometry.chunks * geometry.chunks;
          const std::span<const double> gram = std::span(grams).subspan(head * size, size);
          const auto found = kvs::pick_elite({gram, {geometry.chunks, geometry.chunks}}, geometry.chunks / 2);
          check(std::isfinite(found.errors.back()), "an error of RoPElite is not finite");
        }
      }
    });
  });
  return {{"seconds", time}, {"of_which_picks", picks}, {"forward_seconds", s.forward_seconds()}};
}

/// 22 chunks of some layers spread evenly, scaled to all of them: a layer's cost falls linearly with its index.
Json measure_ablation(Session& s) {
  constexpr std::size_t kChunks = 22;
  const std::size_t tokens = std::min<std::size_t>(s.tokens, 1024), layers = s.config().layers;
  const std::size_t sampled = std::min<std::size_t>(layers, 4);
  const kvs::AblationSetup setup{.continuation = false, .tokens = tokens};
  const auto ops = kvs::make_spectral_ops(*s.backend);
  kvs::AblationForward forward(*s.decoder, *ops, setup, 16384);
  const kvs::ChunkGrid grid{.chunks = kChunks, .samples = setup.filtered()};
  const std::vector<double> gains = kvs::ablation_gains(grid);
  const auto ids = s.document(tokens);
  const auto run = [&] {
    forward.begin(ids);
    for (std::size_t n = 0; n < sampled; ++n) {
      const auto sums =
          forward.variants((2 * n + 1) * layers / (2 * sampled), {gains, {kChunks, gains.size() / kChunks}});
      check(std::isfinite(sums.front()), "an ablation's NLL is not finite");
    }
    (void)forward.base();
  };
  const double time = median_seconds(3, run), variants = static_cast<double>(sampled * kChunks);
  return {{"tokens", tokens},
          {"layers_timed", sampled},
          {"seconds_per_variant", time / variants},
          {"seconds_scaled_to_all", time / static_cast<double>(sampled) * static_cast<double>(layers)}};
}

/// Joint factorisation of some layers' keys and values, r = a quarter of the chunks, scaled to all layers.
Json measure_jlrd(Session& s) {
  const ModelConfig& c = s.config();
  const std::size_t timed = std::min<std::size_t>(c.layers, 4), r = c.head_dim / 8;
  std::vector<std::size_t> chunks(r);
  std::iota(chunks.begin(), chunks.end(), 0);
  const std::vector<std::vector<std::size_t>> elite(c.kv_heads, chunks);
  const std::size_t rank = kvs::no_extra_parameters_rank(c.d_model, c.kv_heads, c.head_dim, r);
  const auto ops = kvs::make_calibration_ops(*s.backend);
  const auto factorise = [&](std::size_t layer) {
    std::vector<double> joint =
        kvs::unrotated_rows(s.source->projection(layer, 'k'), elite, c.head_dim, c.rotary_dim(), c.d_model);
    const std::vector<float> values = s.source->projection(layer, 'v');
    joint.insert(joint.end(), values.begin(), values.end());
    const auto factors = kvs::factorise(*ops, joint, c.d_model, rank, kvs::SingularSplit::kUp, {});
    check(std::isfinite(factors.up.front()) && factors.singular.front() > 0, "the factors are not finite");
  };
  factorise(0);  // what a library does once would be scaled with the layers
  const double time = seconds([&] {
    for (std::size_t layer = 0; layer < timed; ++layer) factorise(layer);
  });
  return {{"layers_timed", timed},
          {"rank", rank},
          {"seconds_scaled_to_all", time / static_cast<double>(timed) * static_cast<double>(c.layers)}};
}

/// The DCT and its inverse, from states to states, against a copy; more heads than a layer has, so that caches and
/// launches count for little. A value crosses memory at least as 4 bytes read and 8 written by the reordering, 8 and 8
/// by either transform in double and by the gains between them, 8 read and 4 written at the end: 72 bytes. A copy moves
/// 8 (4 read, 4 written).
Json measure_dct(Session& s) {
  constexpr double kBytesPerValue = 72;
  constexpr std::size_t kHeads = 256;
  const std::size_t head_dim = s.config().head_dim, head_size = s.tokens * head_dim;
  const BackendTensor<float, 3> states(*s.backend, {kHeads, s.tokens, head_dim});
  const BackendTensor<float, 4> out(*s.backend, {1, kHeads, s.tokens, head_dim});
  std::vector<float> host(kHeads * head_size), filtered(head_size);
  for (std::size_t n = 0; n < host.size(); ++n) host[n] = random_value(n);
  s.backend->upload(states.view().data(), host.data(), states.bytes());
  const auto ops = kvs::make_spectral_ops(*s.backend);
  std::vector<double> gains(s.tokens, 1.0);
  gains[0] = 0;  // takes each channel's mean away
  const double time = median_seconds(5, [&] {
    ops->filter(states.view(), kvs::Transform::kDct, 0, s.tokens, {gains, {1, s.tokens}}, out.view());
    wait_for(*s.backend, out.view().data());
  });
  s.backend->download(filtered.data(), out.view().data(), head_size * sizeof(float));
  for (std::size_t channel = 0; channel < head_dim; ++channel) {
    double mean = 0;
    for (std::size_t at = channel; at < head_size; at += head_dim) mean += host[at];
    mean /= static_cast<double>(s.tokens);
    for (std::size_t at = channel; at < head_size; at += head_dim)
      check(std::abs(host[at] - mean - filtered[at]) < 1e-6, "a filtered value is wrong");
  }
  constexpr int kCopies = 20;
  const double copied = median_seconds(3,
                                       [&] {
                                         for (int n = 0; n < kCopies; ++n)
                                           s.backend->copy(out.view().data(), states.view().data(), states.bytes());
                                         wait_for(*s.backend, out.view().data());
                                       }) /
                        kCopies;
  const auto values = static_cast<double>(host.size());
  return {{"seconds", time},
          {"gb_per_second", kBytesPerValue * values / time / 1e9},
          {"copy_gb_per_second", 8 * values / copied / 1e9}};
}

using Section = Json (*)(Session&);
constexpr std::pair<std::string_view, Section> kSections[] = {
    {"gemm", measure_gemm},         {"attention", measure_attention},
    {"prefill", measure_prefill},   {"capture", measure_capture},
    {"ropelite", measure_ropelite}, {"ablation", measure_ablation},
    {"jlrd", measure_jlrd},         {"dct", measure_dct}};

int run(int argc, char** argv) {
  const auto argument = [&](int n, const char* standard) { return std::string(argc > n ? argv[n] : standard); };
  Session s;
  s.path = argv[1];
  const auto type = kvs::dtype_from_name(argument(3, "bf16"));
  if (!type) throw kvs::Error(kvs::ErrorCode::kUsage, "type", "found '" + argument(3, "") + "', expected f32 or bf16");
  s.tokens = std::stoul(argument(4, "4096"));
  s.scratch = argument(5, "/dev/shm");
  s.source = ModelSource::open(s.path);
  s.backend = kvs::make_backend(argument(2, "cuda"), *type);
  const double loading = seconds([&] { s.model = std::make_unique<Model>(*s.source, *s.backend); });
  s.decoder = std::make_unique<Decoder>(*s.model);
  for (const auto& [name, measure] : kSections) {
    const auto wanted = [&](const char* word) { return name == word; };
    if (argc > 6 && std::none_of(argv + 6, argv + argc, wanted)) continue;
    Json line{{"section", name},
              {"model", std::filesystem::path(s.path).filename().string()},
              {"device", s.backend->device()},
              {"dtype", kvs::name_of(*type)},
              {"tokens", s.tokens},
              {"loading_seconds", loading}};
    line.update(measure(s));
    std::printf("%s\n", kvs::dump_json(line, -1).c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: gpu_speed MODEL [DEVICE] [TYPE] [TOKENS] [SCRATCH] [SECTION ...]\n");
    return 2;
  }
  try {
    return run(argc, argv);
  } catch (const kvs::Error& error) {
    std::fprintf(stderr, "gpu_speed: error: %s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_speed: error: %s\n", error.what());
    return 70;
  }
}
