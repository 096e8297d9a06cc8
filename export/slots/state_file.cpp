// SPDX-License-Identifier: Apache-2.0
#include "export/slots/state_file.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "io/byte_reader.h"
#include "io/output_tensor.h"

namespace kvs::inline exporting {
namespace {

constexpr std::uint32_t kSequenceState = 0x67677371;  // "ggsq"
constexpr std::uint32_t kSession = 0x6767736e;        // "ggsn": llama_state_save_file()
constexpr std::size_t kMaxCaches = 2;

/// The types that are read, with ggml's numbers.
constexpr std::array<std::pair<DType, std::int32_t>, 3> kTypes{
    {{DType::kF32, 0}, {DType::kF16, 1}, {DType::kBF16, 30}}};

std::int32_t number_of(DType type) {
  return std::ranges::find(kTypes, type, &std::pair<DType, std::int32_t>::first)->second;
}

/// Reads llama_kv_cache::state_write().
class StateParser {
 public:
  StateParser(std::span<const std::byte> file, std::string_view where) : file_(file), reader_(file, where) {}

  StateFile parse() {
    check_head();
    StateFile state;
    const auto tokens = reader_.read_count<std::uint32_t>("number of tokens", sizeof(std::int32_t));
    state.tokens.reserve(tokens);
    for (std::size_t n = 0; n < tokens; ++n) state.tokens.push_back(reader_.read<std::int32_t>("token"));
    do state.caches.push_back(cache());
    while (reader_.left() > 0 && state.caches.size() < kMaxCaches);
    if (reader_.left() > 0)
      reader_.fail_at(reader_.offset(), "end",
                      "found " + std::to_string(reader_.left()) + " more bytes, expected at most " +
                          std::to_string(kMaxCaches) + " caches: recurrent states are not coded",
                      ErrorCode::kUnsupported);
    return state;
  }

 private:
  /// Reads an integer. @throws Error unless it is `good`
  template <class T, class Good>
  T checked(std::string_view what, const Good& good, const std::string& expected, ErrorCode code = ErrorCode::kInput) {
    const std::uint64_t at = reader_.offset();
    const T found = reader_.read<T>(what);
    if (!good(found)) reader_.fail_at(at, what, "found " + std::to_string(found) + ", expected " + expected, code);
    return found;
  }

  void check_head() {
    constexpr std::size_t kLength = 8;  // of a safetensors file: the bytes before its JSON
    const auto kind = reader_.read<std::uint32_t>("kind");
    if (kind != kSequenceState) {
      const bool packed = file_.size() > kLength && file_[kLength] == std::byte{'{'};
      const char* const found = kind == kSession ? "the state of a whole context (llama_state_save_file)"
                                : packed         ? "a packed slot, or another safetensors file"
                                                 : "a file of another kind";
      reader_.fail_at(0, "kind", std::string("found ") + found + ", expected one of llama_state_seq_save_file");
    }
    checked<std::uint32_t>(
        "version", [](std::uint32_t version) { return version == kStateVersion; },
        std::to_string(kStateVersion) + " (LLAMA_STATE_SEQ_VERSION of llama-cpp-python 0.3.36)",
        ErrorCode::kUnsupported);
  }

  StateCache cache() {
    StateCache cache;
    const std::uint64_t at = reader_.offset();
    cache.streams = checked<std::uint32_t>(
        "number of streams", [](std::uint32_t streams) { return streams >= 1 && streams <= kMaxStreams; },
        "1 to " + std::to_string(kMaxStreams));
    for (std::uint32_t stream = 0; stream < cache.streams; ++stream) {
      const std::uint64_t start = reader_.offset();
      const auto cells = reader_.read_count<std::uint32_t>("number of cells", kCellBytes);
      if (cells == 0) continue;
      if (!cache.positions.empty())
        reader_.fail_at(start, "number of cells", "found a second stream with cells, expected one sequence",
                        ErrorCode::kUnsupported);
      cache.stream = stream;
      read_cells(cache, cells);
      read_layers(cache);
    }
    if (cache.positions.empty()) reader_.fail_at(at, "number of cells", "found none, expected at least 1");
    return cache;
  }

  void read_cells(StateCache& cache, std::size_t cells) {
    cache.positions.reserve(cells);
    for (std::size_t cell = 0; cell < cells; ++cell) {
      cache.positions.push_back(reader_.read<std::int32_t>("position"));
      checked<std::uint32_t>(
          "sequences of a cell", [](std::uint32_t sequences) { return sequences == 1; }, "1: the file of one sequence",
          ErrorCode::kUnsupported);
      if (cell == 0)
        cache.sequence = reader_.read<std::int32_t>("sequence");
      else
        checked<std::int32_t>(
            "sequence", [&](std::int32_t sequence) { return sequence == cache.sequence; },
            std::to_string(cache.sequence) + " as in the cells before", ErrorCode::kUnsupported);
    }
  }

  void read_layers(StateCache& cache) {
    cache.transposed = checked<std::uint32_t>(
                           "transposed", [](std::uint32_t turned) { return turned <= 1; }, "0 or 1") == 1;
    const auto layers = reader_.read_count<std::uint32_t>("number of layers", sizeof(std::int32_t));
    const std::size_t cells = cache.positions.size();
    cache.layers.resize(layers);
    for (StateLayer& layer : cache.layers) layer.keys = rows(cells);
    for (StateLayer& layer : cache.layers) layer.values = cache.transposed ? columns(cells) : rows(cells);
  }

  DType type() {
    const auto of_number = [](std::int32_t number) {
      return std::ranges::find(kTypes, number, &std::pair<DType, std::int32_t>::second);
    };
    const auto number = checked<std::int32_t>(
        "type, by ggml's number", [&](std::int32_t found) { return of_number(found) != kTypes.end(); },
        "0 (f32), 1 (f16) or 30 (bf16): run llama.cpp with --cache-type-k f16 --cache-type-v f16",
        ErrorCode::kUnsupported);
    return of_number(number)->first;
  }

  StateRows rows(std::size_t cells) {
    StateRows rows{.type = type()};
    const std::size_t size = item_size(rows.type);
    const auto bytes = checked<std::uint64_t>(
        "bytes of a row", [&](std::uint64_t found) { return found > 0 && found % size == 0; }, "whole values");
    rows.values = bytes / size;
    rows.bytes = reader_.read_bytes("rows", cells, bytes);
    return rows;
  }

  StateRows columns(std::size_t cells) {
    StateRows rows{.type = type()};
    const std::size_t size = item_size(rows.type);
    checked<std::uint32_t>(
        "bytes of a value", [&](std::uint32_t found) { return found == size; }, std::to_string(size));
    rows.values = checked<std::uint32_t>(
        "values of a cell", [](std::uint32_t found) { return found > 0; }, "at least 1");
    rows.bytes = reader_.read_bytes("rows", cells * size, rows.values);
    return rows;
  }

  static constexpr std::size_t kCellBytes = 12;  // position, number of sequences, sequence

  std::span<const std::byte> file_;
  ByteReader reader_;
};

/// Appends the bytes of values.
template <class... T>
void put(std::string& bytes, const T&... values) {
  (bytes.append(reinterpret_cast<const char*>(&values), sizeof(values)), ...);
}

std::uint32_t count_of(const auto& items) { return static_cast<std::uint32_t>(items.size()); }

void write_rows(OutputFile& file, const StateRows& rows, bool transposed) {
  std::string head;
  if (transposed)
    put(head, number_of(rows.type), static_cast<std::uint32_t>(item_size(rows.type)),
        static_cast<std::uint32_t>(rows.values));
  else
    put(head, number_of(rows.type), static_cast<std::uint64_t>(rows.values * item_size(rows.type)));
  file.write(head);
  file.write(rows.bytes);
}

void write_cache(OutputFile& file, const StateCache& cache) {
  std::string cells;
  put(cells, cache.streams);
  for (std::uint32_t stream = 0; stream < cache.stream; ++stream) put(cells, std::uint32_t{0});
  put(cells, count_of(cache.positions));
  for (const std::int32_t position : cache.positions) put(cells, position, std::uint32_t{1}, cache.sequence);
  put(cells, std::uint32_t{cache.transposed}, count_of(cache.layers));
  file.write(cells);
  for (const StateLayer& layer : cache.layers) write_rows(file, layer.keys, false);
  for (const StateLayer& layer : cache.layers) write_rows(file, layer.values, cache.transposed);
  std::string others;
  for (std::uint32_t stream = cache.stream + 1; stream < cache.streams; ++stream) put(others, std::uint32_t{0});
  file.write(others);
}

}  // namespace

StateFile parse_state(std::span<const std::byte> file, std::string_view where) {
  return StateParser(file, where).parse();
}

void write_state(const std::filesystem::path& path, const StateFile& state) {
  OutputFile file(path);
  std::string head;
  put(head, kSequenceState, kStateVersion, count_of(state.tokens));
  file.write(head);
  file.write(std::as_bytes(std::span(state.tokens)));
  for (const StateCache& cache : state.caches) write_cache(file, cache);
}

}  // namespace kvs::inline exporting
