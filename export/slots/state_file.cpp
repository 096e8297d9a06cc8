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
  StateParser(std::span<const std::byte> file, std::string_view where) : reader_(file, where) {}

  StateFile parse() {
    check_head();
    StateFile state;
    state.tokens = integers("number of tokens");
    do state.caches.push_back(cache());
    while (reader_.left() > 0 && state.caches.size() < kMaxCaches);
    if (reader_.left() > 0)
      fail("end", "found " + std::to_string(reader_.left()) + " more bytes, expected at most " +
                      std::to_string(kMaxCaches) + " caches: recurrent states are not coded");
    return state;
  }

 private:
  [[noreturn]] void fail(std::string_view what, const std::string& problem, ErrorCode code = ErrorCode::kInput) const {
    reader_.fail_at(reader_.offset(), what, problem, code);
  }
  template <class T>
  void expect(std::string_view what, T found, T expected) const {
    if (found != expected) fail(what, "found " + std::to_string(found) + ", expected " + std::to_string(expected));
  }

  void check_head() {
    const auto kind = reader_.read<std::uint32_t>("kind");
    if (kind == kSession)
      fail("kind", "found the state of a whole context, expected that of a sequence (llama_state_seq_save_file)");
    if (kind != kSequenceState)
      fail("kind", "found a file of another kind, expected one of llama.cpp's llama_state_seq_save_file");
    const auto version = reader_.read<std::uint32_t>("version");
    if (version != kStateVersion)
      fail("version",
           "found " + std::to_string(version) + ", expected " + std::to_string(kStateVersion) +
               " (LLAMA_STATE_SEQ_VERSION of llama-cpp-python 0.3.36)",
           ErrorCode::kUnsupported);
  }

  /// Reads a count and as many integers.
  std::vector<std::int32_t> integers(std::string_view what) {
    const auto count = reader_.read_count<std::uint32_t>(what, sizeof(std::int32_t));
    std::vector<std::int32_t> all;
    all.reserve(count);
    for (std::size_t n = 0; n < count; ++n) all.push_back(reader_.read<std::int32_t>("token"));
    return all;
  }

  StateCache cache() {
    StateCache cache;
    cache.streams = reader_.read_count<std::uint32_t>("number of streams", sizeof(std::uint32_t));
    if (cache.streams == 0) fail("number of streams", "found 0, expected at least 1");
    for (std::uint32_t stream = 0; stream < cache.streams; ++stream) {
      const auto cells = reader_.read_count<std::uint32_t>("number of cells", kCellBytes);
      if (cells == 0) continue;
      if (!cache.positions.empty())
        fail("number of cells", "found a second stream with cells, expected one sequence", ErrorCode::kUnsupported);
      cache.stream = stream;
      read_cells(cache, cells);
      read_layers(cache);
    }
    if (cache.positions.empty()) fail("number of cells", "found none, expected at least 1");
    return cache;
  }

  void read_cells(StateCache& cache, std::size_t cells) {
    cache.positions.reserve(cells);
    for (std::size_t cell = 0; cell < cells; ++cell) {
      cache.positions.push_back(reader_.read<std::int32_t>("position"));
      expect("sequences of a cell", reader_.read<std::uint32_t>("sequences of a cell"), std::uint32_t{1});
      cache.sequence = reader_.read<std::int32_t>("sequence");
    }
  }

  void read_layers(StateCache& cache) {
    cache.transposed = reader_.read<std::uint32_t>("transposed") != 0;
    const auto layers = reader_.read_count<std::uint32_t>("number of layers", sizeof(std::int32_t));
    const std::size_t cells = cache.positions.size();
    cache.layers.resize(layers);
    for (StateLayer& layer : cache.layers) layer.keys = rows(cells);
    for (StateLayer& layer : cache.layers) layer.values = cache.transposed ? columns(cells) : rows(cells);
  }

  DType type() {
    const auto number = reader_.read<std::int32_t>("type");
    for (const auto& [type, of_ggml] : kTypes)
      if (number == of_ggml) return type;
    fail("type",
         "found ggml's type " + std::to_string(number) +
             ", expected 0 (f32), 1 (f16) or 30 (bf16): run llama.cpp with --cache-type-k f16 --cache-type-v f16",
         ErrorCode::kUnsupported);
  }

  StateRows rows(std::size_t cells) {
    StateRows rows{.type = type()};
    const auto bytes = reader_.read<std::uint64_t>("bytes of a row");
    rows.values = bytes / item_size(rows.type);
    if (rows.values == 0 || bytes % item_size(rows.type) != 0)
      fail("bytes of a row", "found " + std::to_string(bytes) + ", expected whole values");
    rows.bytes = reader_.read_bytes("rows", cells, bytes);
    return rows;
  }

  StateRows columns(std::size_t cells) {
    StateRows rows{.type = type()};
    expect<std::size_t>("bytes of a value", reader_.read<std::uint32_t>("bytes of a value"), item_size(rows.type));
    rows.values = reader_.read<std::uint32_t>("values of a cell");
    if (rows.values == 0) fail("values of a cell", "found 0, expected at least 1");
    rows.bytes = reader_.read_bytes("rows", cells * item_size(rows.type), rows.values);
    return rows;
  }

  static constexpr std::size_t kCellBytes = 12;  // position, number of sequences, sequence

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
