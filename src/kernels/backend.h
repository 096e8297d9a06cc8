#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "core/tensor_view.h"
#include "kernels/activation.h"
#include "kernels/row_format.h"

namespace kvs::inline kernels {

class SpectralOps;

class Backend;

template <class T, std::size_t Rank>
using BackendView = TensorView<T, Rank, Memory::kBackend>;

/// A matrix in the backend's compute type (f32 or bf16), input of matrix products. Row-major, packed, backend memory.
struct Operand {
  void* data = nullptr;
  std::size_t rows = 0, columns = 0;
};

/// A weight matrix packed by the backend for y = x Wᵀ. Only the Backend that made it knows its layout.
class Weight {
 public:
  virtual ~Weight() = default;
  DType type() const noexcept { return type_; }
  std::size_t rows() const noexcept { return rows_; }        // output channels
  std::size_t columns() const noexcept { return columns_; }  // input channels
  std::size_t bytes() const noexcept { return bytes_; }      // backend memory in use

 protected:
  Weight(DType type, std::size_t rows, std::size_t columns, std::size_t bytes)
      : type_(type), rows_(rows), columns_(columns), bytes_(bytes) {}

 private:
  DType type_;
  std::size_t rows_, columns_, bytes_;
};

/// The source of a weight's rows. It is read in consecutive slabs of rows, so no whole f32 copy need exist.
struct WeightSource {
  std::size_t rows = 0, columns = 0;
  /// Fills out (count · columns values) with rows [first, first + count). Called from one thread.
  std::function<void(std::size_t first, std::size_t count, std::span<float> out)> read;
  /// One bias per row, or empty.
  std::span<const float> bias = {};
  bool f32 = false;  // true: for linear_f32(); false: in the compute type
};

/// cos and sin of position · frequency for positions 0 … positions − 1, in f32 backend memory.
struct RopeTable {
  BackendView<const float, 2> cosine, sine;  // [position, chunk]: 2 · chunks ≤ head_dim channels are rotated
  float factor = 1;                          // attention factor of YaRN and LongRoPE, already included in both tables
};

/// kForward: x → rotated x · factor. kInverse: the inverse of kForward. kUnrotate: undoes the rotation and keeps the
/// factor, so that scores of unrotated states keep the temperature that the model was trained with.
enum class RopeDirection { kForward, kInverse, kUnrotate };

/// Factors of a table's cosines and sines for a direction: exactly ±1 if the table's factor is 1.
struct RopeTurn {
  float cosine, sine;
};
constexpr RopeTurn rope_turn(RopeDirection direction, float factor) noexcept {
  if (direction == RopeDirection::kForward) return {1, 1};
  const float scale = direction == RopeDirection::kInverse ? 1 / (factor * factor) : 1 / factor;
  return {scale, -scale};
}

/// Rows as stored by a cache: the first `count` rows of each head, in memory with capacity for more.
struct StoredRows {
  StoredRows() = default;
  /// Makes rows in f32: [member or 1, head, capacity, value].
  StoredRows(const BackendView<const float, 4>& rows, std::size_t used)
      : data(rows.data()), shape(rows.shape()), count(used) {}

  bool empty() const noexcept { return count == 0; }
  std::size_t values() const noexcept { return shape[3]; }
  std::size_t bytes(std::size_t rows) const noexcept { return rows_bytes(format, values(), rows); }
  /// Returns the first byte of a head's row. For rows stored as one unit, returns the unit's first byte.
  const std::byte* row(std::size_t member, std::size_t head, std::size_t first) const noexcept {
    const std::size_t all = (shape[0] == 1 ? 0 : member) * shape[1] + head;
    return static_cast<const std::byte*>(data) + all * bytes(shape[2]) + bytes(first);
  }

  const void* data = nullptr;
  std::array<std::size_t, 4> shape{};  // [member or 1, head, capacity, value]
  std::size_t count = 0;
  RowFormat format = {};
  /// kE4m3: [head], or empty for 1. kTrellis: the books, then [head, value] of TrellisValue.
  BackendView<const float, 1> scales = {};
};

/// Keys and values of earlier tokens, each in up to two parts. Keys and values may be divided at different tokens.
struct PastKv {
  PastKv() = default;
  PastKv(const StoredRows& keys, const StoredRows& values) : k(keys), v(values) {}
  /// Takes the early and the later rows of keys and of values. Either part may be empty.
  PastKv(const StoredRows& early_k, const StoredRows& early_v, const StoredRows& other_k, const StoredRows& other_v)
      : PastKv(early_k.empty() ? other_k : early_k, early_v.empty() ? other_v : early_v) {
    if (!early_k.empty()) late_k = other_k;
    if (!early_v.empty()) late_v = other_v;
  }
  /// Takes the first `count` f32 rows of each.
  PastKv(const BackendView<const float, 4>& keys, const BackendView<const float, 4>& values, std::size_t count)
      : k(keys, count), v(values, count) {}

  std::size_t count() const noexcept { return k.count + late_k.count; }
  /// Returns true if keys and values are stored as f32 rows.
  bool is_plain() const noexcept {
    return k.format.is_plain() && v.format.is_plain() && late_k.empty() && late_v.empty() && slots.cosine.empty();
  }

  StoredRows k, v;            // [member or 1, kv_head, capacity, head_dim]
  StoredRows late_k, late_v;  // the tokens after those of k and v
  RopeTable slots = {};       // row n of k is rotated to position n when it is read; empty: keys are already rotated
};

/// Some bins of the DFT of a real signal with `samples` samples. Each bin also represents its mirror image.
struct BinGrid {
  BackendView<const std::uint32_t, 1> bins;  // at most samples / 2
  std::size_t samples = 0;
};

/// Keys or values as some bins of their spectrum along the token axis, per channel.
struct BinnedStates {
  BackendView<const float, 4> sums;  // [kv_head, bin, (real, imaginary), head_dim]: Σ_n x[n] e^{−j2πbn/samples}
  BinGrid grid = {};

  std::size_t bins() const noexcept { return grid.bins.size(); }
};

/// Keys and values of earlier tokens. Each has its own bins; both have the same number of samples.
struct KeySpectrum {
  BinnedStates k, v;
  std::size_t tokens = 0;  // samples 0 … tokens − 1 are read

  std::size_t samples() const noexcept { return k.grid.samples; }
};

/// The queries of a batch, with the keys and values that they read.
struct AttentionInput {
  BackendView<const float, 4> q;     // [member, query_head, token, head_dim], rotated
  BackendView<const float, 4> k, v;  // [member, kv_head, token, head_dim] of the same tokens
  PastKv past = {};                  // keys and values of the tokens before
  float scale = 1;                   // multiplies q·k before the softmax, usually 1 / sqrt(head_dim)
  std::size_t window = 0;            // a token reads only the last `window` positions, including its own; 0: all
  float softcap = 0;                 // above 0: scaled scores s become softcap · tanh(s / softcap)
  /// If not empty, attention writes the attention mass of each key: its softmax weights summed over the query heads
  /// that read it. For a single token of one member.
  BackendView<float, 2> mass = {};  // [kv_head, past + 1]
  KeySpectrum spectrum = {};        // tokens before `past` that are stored as a spectrum, not as rows
};

/// Maximum number of query rows of a KV head, (H / G) · tokens, for attention with a mass or a spectrum.
constexpr std::size_t kMaxQueryRows = 256;

/// @throws Error kInternal unless the shapes of Backend::attention's operands match.
void check_attention(const AttentionInput& input, const Operand& out);

/// Queries, keys and values as the output of one product. The tokens attend only to themselves.
struct SelfAttentionInput {
  BackendView<const float, 2> qkv;  // [member · token, (H + 2G) · head_dim], the input of split_heads()
  std::size_t members = 1, query_heads = 0, kv_heads = 0;
  RopeTable rope;
  std::size_t first_position = 0;  // position of token 0
  float scale = 1;                 // scale, window, softcap as in AttentionInput
  std::size_t window = 0;
  float softcap = 0;

  std::size_t tokens() const noexcept { return qkv.extent(0) / members; }
  std::size_t head_dim() const noexcept { return qkv.extent(1) / (query_heads + 2 * kv_heads); }
};

/// Host memory into which a device copies while it computes. The memory is page-locked on a GPU.
class Staging {
 public:
  virtual ~Staging() = default;
  /// Starts a copy of f32 backend memory of at most the staging's size. The source may be overwritten as soon as
  /// start() returns. Call it from the backend's thread, after wait() returned for the previous copy.
  virtual void start(std::span<const float> from) = 0;
  /// Returns the values of the last start() in the staging's type, rounded to nearest even. Any thread may call, once.
  virtual std::span<const std::byte> wait() = 0;
};

/// The operations of a forward pass on one device and in one compute type. Not thread-safe: use one Backend per
/// controlling thread. Each operation is parallel inside. All matrices are row-major and packed.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Returns "cpu" or "cuda".
  virtual std::string_view device() const noexcept = 0;
  /// Returns kF32 or kBF16, the type of Operand elements and packed weights. Sums and the residual stream are f32.
  virtual DType compute_type() const noexcept = 0;

  /// Sets the receiver of one-line notes on how operations run, such as a library that failed and was replaced. There
  /// is no receiver by default. `sink` is called within an operation.
  void on_note(std::function<void(const std::string&)> sink) { note_sink_ = std::move(sink); }

  /// @throws Error kEnvironment "out of memory for N bytes".
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  virtual void upload(void* to, const void* from_host, std::size_t bytes) = 0;
  /// Waits for all earlier operations.
  virtual void download(void* to_host, const void* from, std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  /// Returns the free bytes of a device with its own memory; SIZE_MAX if the device uses the system's memory.
  virtual std::size_t memory_left() const { return SIZE_MAX; }
  /// Returns the number of host threads that may work next to the operations, at least one. The default is for
  /// operations that run on the host too: a quarter of its processors.
  virtual std::size_t spare_threads() const;

  /// Makes a staging for copies of up to `values` values to the host in `type`. It must not outlive the backend.
  virtual std::unique_ptr<Staging> make_staging(std::size_t values, DType type);

  virtual std::unique_ptr<Weight> make_weight(const WeightSource& source) = 0;
  /// Makes the transforms of states in this backend's memory.
  virtual std::unique_ptr<SpectralOps> make_spectral_ops() = 0;

  /// out = x · gain / sqrt(mean(x²) + epsilon), per row. x: [row, column], gain: [column].
  virtual void rms_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon,
                        Operand out) = 0;
  /// sum += x · gain / sqrt(mean(x²) + epsilon), per row: adds a block's normalised output to the residual stream. x,
  /// sum: [row, column], gain: [column].
  virtual void rms_norm_add(BackendView<const float, 2> x, BackendView<const float, 1> gain, float epsilon,
                            BackendView<float, 2> sum) = 0;
  /// out = (x − mean(x)) · gain / sqrt(variance(x) + epsilon) + bias, per row. The variance is over all columns.
  /// x: [row, column]; gain, bias: [column].
  virtual void layer_norm(BackendView<const float, 2> x, BackendView<const float, 1> gain,
                          BackendView<const float, 1> bias, float epsilon, Operand out) = 0;
  /// x = x · gain / sqrt(mean(x²) + epsilon) for queries or keys, in place. x: [member, head, token, head_dim].
  /// @param gain  [head_dim]: the mean is over one head's channels; [head · head_dim]: over all heads of a token
  virtual void norm_heads(BackendView<float, 4> x, BackendView<const float, 1> gain, float epsilon) = 0;
  /// out = x Wᵀ (+ bias); with `accumulate` out += … (the residual stream). x: [row, W.columns], out: [row, W.rows].
  virtual void linear(Operand x, const Weight& weight, BackendView<float, 2> out, bool accumulate) = 0;
  /// Like linear(), for f32 operands in f32 with any compute type. The weight must have been made with `f32`.
  virtual void linear_f32(BackendView<const float, 2> x, const Weight& weight, BackendView<float, 2> out,
                          bool accumulate) = 0;
  /// out[r] = scale · table[rows[r]] in f32 (token embeddings). out: [row, table.columns]; rows: host memory.
  virtual void gather(Operand table, std::span<const std::int32_t> rows, float scale, BackendView<float, 2> out) = 0;
  /// Converts x to the compute type. x, out: [row, column].
  virtual void narrow(BackendView<const float, 2> x, Operand out) = 0;
  /// Splits rows [q heads | k heads | v heads] into head-major tensors.
  /// qkv: [member · token, (H + 2G) · head_dim]; q: [member, H, token, head_dim]; k, v: [member, G, token, head_dim],
  /// G may be 0.
  virtual void split_heads(BackendView<const float, 2> qkv, BackendView<float, 4> q, BackendView<float, 4> k,
                           BackendView<float, 4> v) = 0;
  /// Rotates chunk c, channels (c, c + chunks), of the token at position p by ±p·θ_c, in place. Channels from 2 ·
  /// chunks on are unchanged. x: [member, head, token, head_dim]; token t is at position first_position + t.
  /// @param chunks  empty: all of the table's chunks; else [head, chunk] of 0 or 1 (host memory): only chunks with 1
  virtual void rope(BackendView<float, 4> x, const RopeTable& table, std::size_t first_position,
                    RopeDirection direction, std::span<const std::uint8_t> chunks) = 0;
  /// Causal attention. Token t of a member reads the past and its own tokens 0 … t, limited to input.window. Memory for
  /// scores is bounded by a tile, not by tokens². Query head h reads KV head h / (H / G).
  /// A spectrum is read without being transformed back. Its scores are one inverse transform of Σ_d q_d K_d[bin]; its
  /// part of the output is Σ_bin V[bin] · (transform of the weights). Cost O(bins · head_dim + M log M) per query with
  /// M samples. A spectrum needs one member, no window and few tokens: (H / G) · tokens ≤ kMaxQueryRows.
  /// out: [member · token, H · head_dim].
  virtual void attention(const AttentionInput& input, Operand out) = 0;
  /// Encodes rows [first, first + count) of `rows` [1, head, token, value] into rows [at, at + count) of `held`, whose
  /// memory is written. Rows stored in units must be given as whole units.
  virtual void encode_rows(BackendView<const float, 4> rows, std::size_t first, std::size_t count,
                           const StoredRows& held, std::size_t at) = 0;
  /// Decodes rows [first, first + out.extent(2)) of `held` to `out`. out: [1, head, token, value].
  virtual void decode_rows(const StoredRows& held, std::size_t first, BackendView<float, 4> out) = 0;
  /// Returns the largest head_dim that attention() accepts.
  virtual std::size_t max_head_dim() const { return SIZE_MAX; }
  /// Equals split_heads(), rope() of q and k, and attention(), bit for bit, for states that are not needed elsewhere.
  /// Each backend stores the states in its own layout for attention.
  virtual void self_attention(const SelfAttentionInput& input, Operand out) = 0;
  /// First half of a feed-forward block: out = activation(y) with y = x Wᵀ (+ bias), or activation(gate) · up if W has
  /// twice the rows, the gate's first. x: [row, W.columns], out: [row, column]. y is stored in f32 or the compute type.
  virtual void up_projection(Operand x, const Weight& weight, Activation activation, Operand out) = 0;
  /// nll[r] = log Σ_v exp(z[r, v]) − z[r, target[r]] in nats, with z = x[r]·W[v]. The vocabulary is processed in
  /// slices. x: [row, W.columns]. Both spans are host memory with x.rows entries. A row with a negative target is
  /// skipped; its entry is 0.
  /// @param softcap  above 0: z is first replaced by softcap · tanh(z / softcap)
  /// @throws Error kData if a logit of a row that is not skipped is not finite.
  virtual void cross_entropy(Operand x, const Weight& head, std::span<const std::int32_t> targets, std::span<float> nll,
                             float softcap) = 0;

 protected:
  void note(const std::string& line) const {
    if (note_sink_) note_sink_(line);
  }

 private:
  std::function<void(const std::string&)> note_sink_;
};

/// @param device   "cpu", "cuda" or "auto" (cuda if present, else cpu)
/// @param threads  0: all processors
/// @throws Error kUsage for an unknown name; kEnvironment if the device cannot be used.
std::unique_ptr<Backend> make_backend(std::string_view device, DType compute_type, int threads = 0);

/// Backend memory with an owner. Movable, not copyable.
template <class T, std::size_t Rank>
class BackendTensor {
 public:
  BackendTensor() = default;
  BackendTensor(Backend& backend, std::array<std::size_t, Rank> shape) : backend_(&backend) {
    std::size_t size = 1;
    for (const std::size_t extent : shape) size *= extent;
    auto* data = static_cast<T*>(backend.allocate(size * sizeof(T)));
    view_ = BackendView<T, Rank>(std::span<T>(data, size), shape);
  }
  BackendTensor(BackendTensor&& other) noexcept
      : backend_(std::exchange(other.backend_, nullptr)), view_(std::exchange(other.view_, {})) {}
  BackendTensor& operator=(BackendTensor&& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(view_, other.view_);
    return *this;
  }
  ~BackendTensor() {
    if (backend_ != nullptr) backend_->release(view_.data());
  }
  const BackendView<T, Rank>& view() const noexcept { return view_; }
  std::size_t bytes() const noexcept { return view_.size() * sizeof(T); }

 private:
  Backend* backend_ = nullptr;
  BackendView<T, Rank> view_;
};

/// Returns a copy of `view` in its own memory on the same device.
template <class T, std::size_t Rank>
BackendTensor<T, Rank> copy_of(Backend& backend, BackendView<const T, Rank> view) {
  BackendTensor<T, Rank> copy(backend, view.shape());
  backend.copy(copy.view().data(), view.data(), copy.bytes());
  return copy;
}

/// Returns the bytes of an operand with this shape in the backend's compute type.
inline std::size_t operand_bytes(const Backend& backend, std::size_t rows, std::size_t columns) {
  return rows * columns * item_size(backend.compute_type());
}

/// An operand that owns its memory.
class OperandBuffer {
 public:
  OperandBuffer(Backend& backend, std::size_t rows, std::size_t columns)
      : memory_(backend, {operand_bytes(backend, rows, columns)}), operand_{memory_.view().data(), rows, columns} {}
  const Operand& get() const noexcept { return operand_; }

 private:
  BackendTensor<std::byte, 1> memory_;
  Operand operand_;
};

/// Returns a copy of an operand in host memory, widened to f32.
std::vector<float> download(Backend& backend, const Operand& operand);

/// Returns rows [first, first + count) of an operand.
inline Operand operand_rows(const Backend& backend, const Operand& matrix, std::size_t first, std::size_t count) {
  auto* const data = static_cast<std::byte*>(matrix.data) + operand_bytes(backend, first, matrix.columns);
  return {data, count, matrix.columns};
}

/// Returns a copy of `view` in host memory, for analyses that run there. The CPU backend also copies.
template <class T, std::size_t Rank>
std::vector<std::remove_const_t<T>> download(Backend& backend, BackendView<T, Rank> view) {
  std::vector<std::remove_const_t<T>> host(view.size());
  if (!host.empty()) backend.download(host.data(), view.data(), host.size() * sizeof(T));
  return host;
}

}  // namespace kvs::inline kernels
