// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/error.h"
#include "model/checkpoints/checkpoints.h"
#include "model/checkpoints/row_codes.h"

namespace kvs::inline model {

namespace {

constexpr std::size_t kStateBytes = 1 << 16, kMapSize = 16, kNestedMapSize = 256;

std::vector<float> read_floats(const TensorArchive& archive, const StoredTensor& tensor, std::uint64_t count,
                               const std::string& source) {
  expect_type(archive, tensor, {"F32"});
  if (tensor.rows() * tensor.columns() != count) expect_shape(archive, tensor, {count}, source);
  std::vector<float> values(static_cast<std::size_t>(count));
  tensor.type->decode(tensor.bytes.data(), values.size(), values.data());
  return values;
}

/// The factors of blocks: F32, or ("double quantisation") codes of a map that have factors of their own and an offset.
struct BlockFactors {
  const StoredTensor* absmax;
  std::vector<float> map = {}, nested = {};  // [code], [block of absmax]; empty: F32
  std::size_t nested_block = 0;
  float offset = 0;

  std::vector<float> read(std::size_t first, std::size_t count) const {
    std::vector<float> factors(count);
    if (map.empty()) {
      absmax->type->decode(absmax->bytes.data() + first * sizeof(float), count, factors.data());
      return factors;
    }
    for (std::size_t n = 0; n < count; ++n)
      factors[n] = map[std::to_integer<std::size_t>(absmax->bytes[first + n])] * nested[(first + n) / nested_block];
    for (float& factor : factors) factor += offset;  // apart from the products: no fused multiply-add
    return factors;
  }
};

/// Two codes in a byte, the even value in its high half, over all values of a matrix; each block of consecutive values
/// has a factor.
class BlockMatrix final : public StoredMatrix {
 public:
  struct Parts {
    const StoredTensor* codes;
    std::vector<float> map;  // [code]
    BlockFactors factors;
    std::size_t block;
  };
  BlockMatrix(std::vector<std::uint64_t> shape, std::vector<const StoredTensor*> tensors, Parts parts)
      : StoredMatrix(std::move(shape), std::move(tensors)), parts_(std::move(parts)) {}

  bool is_by_rows() const noexcept override { return columns() % 2 == 0; }
  void read(std::size_t first, std::size_t count, std::span<float> out) const override {
    if (count == 0) return;
    const std::size_t begin = first * columns(), end = begin + count * columns(), block = begin / parts_.block;
    const std::vector<float> factors = parts_.factors.read(block, (end - 1) / parts_.block + 1 - block);
    for (std::size_t at = begin; at < end; ++at) {
      const auto pair = std::to_integer<unsigned>(parts_.codes->bytes[at / 2]);
      out[at - begin] = parts_.map[at % 2 == 0 ? pair >> 4 : pair & 15U] * factors[at / parts_.block - block];
    }
  }

 private:
  Parts parts_;
};

/// The object that bitsandbytes stores as bytes for a 4-bit weight.
class FourBitReader {
 public:
  FourBitReader(const TensorArchive& archive, const StoredTensor& weight, const StoredTensor& state)
      : archive_(archive),
        weight_(weight),
        json_(parse(archive, state)),
        root_(json_, place_of(archive, state)),
        tensors_{&weight, &state} {}

  std::unique_ptr<StoredMatrix> read() {
    expect_type(archive_, weight_, {"U8"});
    expect_one_of(root_, "quant_type", {"nf4", "fp4"});
    const JsonCursor extents = root_.at("shape");
    if (extents.array_size() != 2) extents.fail("rows and columns");
    std::vector<std::uint64_t> shape;
    for (std::size_t axis = 0; axis < 2; ++axis)
      shape.push_back(static_cast<std::uint64_t>(extents.at(axis).integer(1, std::int64_t{1} << 31)));
    const std::uint64_t values = shape[0] * shape[1];  // below 2^62
    if (weight_.bytes.size() != (values + 1) / 2)
      throw Error(ErrorCode::kInput, place_of(archive_, weight_),
                  "found " + std::to_string(weight_.bytes.size()) + " bytes, expected " +
                      std::to_string((values + 1) / 2) + " for " + std::to_string(values) + " values");
    const auto block = static_cast<std::size_t>(root_.at("blocksize").integer(1, kMaxBlockExtent));
    const std::uint64_t blocks = (values + block - 1) / block;
    std::vector<float> map = read_floats(archive_, part("quant_map"), kMapSize, "a value for each code");
    BlockFactors factors = read_factors(blocks);
    return std::make_unique<BlockMatrix>(
        std::move(shape), std::move(tensors_),
        BlockMatrix::Parts{.codes = &weight_, .map = std::move(map), .factors = std::move(factors), .block = block});
  }

 private:
  static Json parse(const TensorArchive& archive, const StoredTensor& state) {
    expect_type(archive, state, {"U8"});
    const std::string_view text(reinterpret_cast<const char*>(state.bytes.data()), state.bytes.size());
    return parse_json(text, place_of(archive, state), {.bytes = kStateBytes, .depth = 8});
  }

  const StoredTensor& part(const std::string& name) {
    return *tensors_.emplace_back(&part_of(archive_, weight_, weight_.name + "." + name));
  }

  BlockFactors read_factors(std::uint64_t blocks) {
    BlockFactors factors{.absmax = &part("absmax")};
    expect_type(archive_, *factors.absmax, {"F32", "U8"});
    expect_shape(archive_, *factors.absmax, {blocks}, "one for each block");
    if (factors.absmax->type_name == "F32") return factors;
    factors.nested_block = static_cast<std::size_t>(root_.at("nested_blocksize").integer(1, kMaxBlockExtent));
    expect_one_of(root_, "nested_dtype", {"float32"});
    factors.offset = static_cast<float>(root_.at("nested_offset").real());
    factors.map = read_floats(archive_, part("nested_quant_map"), kNestedMapSize, "one for each code");
    const std::uint64_t count = (blocks + factors.nested_block - 1) / factors.nested_block;
    factors.nested = read_floats(archive_, part("nested_absmax"), count, "one for each block of absmax");
    return factors;
  }

  const TensorArchive& archive_;
  const StoredTensor& weight_;
  Json json_;
  JsonCursor root_;
  std::vector<const StoredTensor*> tensors_;
};

/// Values of I8. A row is scaled by its SCB / 127, computed as SCB · (1 / 127).
class RowMatrix final : public StoredMatrix {
 public:
  RowMatrix(std::vector<std::uint64_t> shape, const StoredTensor& codes, const StoredTensor& largest)
      : StoredMatrix(std::move(shape), {&codes, &largest}), codes_(&codes), largest_(&largest) {}

  void read(std::size_t first, std::size_t count, std::span<float> out) const override {
    constexpr float kStep = 7.874015718698502e-3F;
    decode_i8_codes(codes_->bytes.data() + first * columns(), 0, out);
    for (std::size_t row = 0; row < count; ++row) {
      float largest = 0;
      largest_->type->decode(largest_->bytes.data() + (first + row) * sizeof(float), 1, &largest);
      for (float& value : out.subspan(row * columns(), columns())) value = value * largest * kStep;
    }
  }

 private:
  const StoredTensor *codes_, *largest_;
};

std::unique_ptr<StoredMatrix> eight_bits(const TensorArchive& archive, const StoredTensor& weight,
                                         const StoredTensor& scales) {
  expect_type(archive, weight, {"I8"});
  expect_type(archive, scales, {"F32"});
  expect_matrix(archive, weight);
  expect_shape(archive, scales, {weight.shape[0]}, "one for each row");
  const StoredTensor* order = archive.find(module_of(weight.name) + ".weight_format");
  const bool by_rows =
      order == nullptr || std::ranges::all_of(order->bytes, [](std::byte b) { return b == std::byte{0}; });
  if (!by_rows)
    throw Error(ErrorCode::kUnsupported, place_of(archive, *order),
                "found another order of values, supported are: rows");
  return std::make_unique<RowMatrix>(weight.shape, weight, scales);
}

class BitsAndBytesWeights final : public QuantizedWeights {
 public:
  std::unique_ptr<StoredMatrix> find(const TensorArchive& archive, const std::string& name) const override {
    const StoredTensor* weight = archive.find(name);
    const std::string module = module_of(name);
    if (weight == nullptr || module.empty()) return nullptr;
    for (const char* type : {"nf4", "fp4"}) {
      const StoredTensor* state = archive.find(name + ".quant_state.bitsandbytes__" + type);
      if (state != nullptr) return FourBitReader(archive, *weight, *state).read();
    }
    const StoredTensor* scales = archive.find(module + ".SCB");
    if (scales != nullptr) return eight_bits(archive, *weight, *scales);
    const bool plain = weight->type != nullptr;
    if (!plain) (void)part_of(archive, *weight, weight->type_name == "I8" ? module + ".SCB" : name + ".quant_state.*");
    return nullptr;
  }
};

std::unique_ptr<const QuantizedWeights> read_bitsandbytes(const JsonCursor& config, std::vector<std::string>& notes) {
  expect_one_of(config, "bnb_4bit_quant_storage", {"uint8"});
  expect_one_of(config, "bnb_4bit_quant_type", {"nf4", "fp4"});
  const bool eight = config.has("load_in_8bit") && config.at("load_in_8bit").boolean();
  notes.push_back(config.place() + ": the weights (bitsandbytes, " + (eight ? "8" : "4") + " bits) are decoded" +
                  (eight ? "; activations are not quantised" : ""));
  return std::make_unique<BitsAndBytesWeights>();
}

}  // namespace

constinit const CheckpointFormat kBitsAndBytes{"bitsandbytes", read_bitsandbytes};

}  // namespace kvs::inline model
