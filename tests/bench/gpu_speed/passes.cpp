// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "kernels/cuda/make_cuda_backend.h"
#include "states/capture_run.h"
#include "states/live_source.h"
#include "tests/bench/gpu_speed/session.h"

namespace kvs::bench {
namespace {

/// Multiplications and additions of the pass: the products, and causal attention at half of tokens².
double forward_flops(const ModelConfig& c, double tokens) {
  const auto d = static_cast<double>(c.d_model), width = static_cast<double>(c.query_heads() * c.head_dim());
  const double weights =
      d * (2 * width + 2 * static_cast<double>(c.kv_heads() * c.head_dim()) + 3 * static_cast<double>(c.d_ff()));
  const double layer = 2 * tokens * weights + 4 * tokens * tokens / 2 * width;
  return static_cast<double>(c.layers()) * layer + 2 * tokens * d * static_cast<double>(c.vocabulary);
}

Json products_json(const CudaProducts& products) {
  return {{"all", products.all},
          {"by_table", products.by_table},
          {"refused_entries", products.refused},
          {"unplanned", products.unplanned},
          {"first_unplanned", products.first_unplanned}};
}

}  // namespace

Json measure_prefill(Session& s) {
  const double time = s.forward_seconds(), tokens = static_cast<double>(s.tokens);
  const std::vector<float> nll = document_nll(*s.decoder, s.document(s.tokens));
  return {{"seconds", time},
          {"tokens_per_second", tokens / time},
          {"tflops", forward_flops(s.config(), tokens) / time / 1e12},
          {"attention", s.on_gpu() ? cuda_attention_note(*s.backend) : ""},
          {"products", s.on_gpu() ? products_json(cuda_products(*s.backend)) : Json()},
          {"nll_mean", std::accumulate(nll.begin(), nll.end(), 0.0) / static_cast<double>(nll.size())}};
}

namespace {

/// Returns the seconds that `threads` threads take to write `bytes` into one preallocated file in pieces of 32 MiB, as
/// a capture does.
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

/// Compares the first and the last document of a capture with the states of a separate pass, in three layers. A value
/// stored in f16 is at most half a unit of its 11 digits away, or of the smallest unit; another pass gives the same
/// bits.
void check_capture(Session& s, const std::filesystem::path& path, const CaptureHeader& header) {
  check(std::filesystem::file_size(path) >= capture_bytes(header), "the capture is too short");
  const auto reader = CaptureReader::open(path, {});  // its reads check each dataset's CRC
  check(reader->documents() == header.documents, "the capture lacks documents");
  const std::size_t last = s.config().layers() - 1;
  std::vector<std::size_t> layers{0, last / 2, last};
  layers.erase(std::ranges::unique(layers).begin(), layers.end());
  LiveSource source(*s.decoder, {s.document(s.tokens)});
  source.visit(0, {.layers = layers, .states = header.states}, [&](const DocumentStates& states) {
    for (const StateKind kind : header.states) {
      const std::vector<float> live = download(*s.backend, states[kind]);
      std::vector<float> stored(live.size());
      for (const std::uint64_t document : {std::uint64_t{0}, header.documents - 1}) {
        reader->read_states(document, static_cast<std::int32_t>(states.layer), kind, {stored, states[kind].shape()});
        for (std::size_t n = 0; n < live.size(); ++n)
          check(std::abs(stored[n] - live[n]) <= 0x1.02p-11F * std::abs(live[n]) + 0x1p-25F,
                "a captured value is wrong");
      }
    }
  });
}

}  // namespace

Json measure_capture(Session& s) {
  constexpr std::size_t kDocuments = 3;
  std::vector<std::size_t> layers(s.config().layers());
  std::iota(layers.begin(), layers.end(), 0);
  const StateSet states{StateKind::kQPre, StateKind::kKPre, StateKind::kV};
  const CaptureHeader header =
      capture_header(s.config(), std::string(64, '0'), layers, states, DType::kF16, s.tokens, kDocuments);
  const auto path = s.scratch / "gpu_speed_capture.h5";
  double first = 0, later = 0, finish = 0;
  {
    const auto writer = CaptureWriter::open(path, header, Json::object(), {.force = true});
    CaptureStream stream(*s.backend, writer->part(), header);
    const auto run = [&](std::uint64_t n) { capture_document(*s.decoder, n, s.document(s.tokens), header, stream); };
    const auto commit = [&](std::uint64_t n) { writer->commit(stream.stored(n)); };
    first = seconds([&] {
      run(0);
      commit(0);
    });
    later = seconds([&] {
      run(1);
      run(2);
      commit(1);
      commit(2);
    });
    finish = seconds([&] { writer->finish(); });
  }
  check_capture(s, path, header);
  for (const char* suffix : {"", ".manifest.json", ".lock"}) std::filesystem::remove(path.string() + suffix);
  const std::uint64_t bytes = capture_bytes(header) / kDocuments;
  const double forward = s.forward_seconds();
  double written = 1e30;
  for (const std::size_t threads : {1, 2, 4, 8})
    written = std::min(written, parallel_write_seconds(s.scratch / "gpu_speed_bytes", bytes, threads));
  return {{"seconds_first_document", first},
          {"seconds", later / (kDocuments - 1)},
          {"finish_seconds", finish},  // once per file: every checksum is read again
          {"forward_seconds", forward},
          {"parallel_pwrite_seconds", written},
          {"bytes", bytes}};
}

}  // namespace kvs::bench
