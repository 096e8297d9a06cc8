// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvs::inline io {

/// Writes the bytes of a Python pickle, opcode by opcode; has only the opcodes that the files below need. States
/// protocol 2, as torch.load expects. bytes() is an opcode of protocol 3, which every Python 3 reads anyway. Source:
/// CPython's Lib/pickletools.py.
class Pickle {
 public:
  Pickle();

  Pickle& string(std::string_view text);  // UTF-8
  Pickle& bytes(std::string_view bytes);
  Pickle& integer(std::int64_t value);
  Pickle& boolean(bool value);
  /// Pushes `name` of `module`, such as torch.LongStorage.
  Pickle& global(std::string_view module, std::string_view name);
  Pickle& empty_dict() { return code('}'); }
  Pickle& empty_list() { return code(']'); }
  Pickle& mark() { return code('('); }
  Pickle& tuple() { return code('t'); }          // of all values since the mark
  Pickle& append_items() { return code('e'); }   // appends the values since the mark to the list below it
  Pickle& set_items() { return code('u'); }      // adds the keys and values since the mark to the dict below it
  Pickle& reduce() { return code('R'); }         // pops a tuple and a callable; pushes the result of the call
  Pickle& persistent_id() { return code('Q'); }  // replaces the top value by the loader's persistent object
  /// Returns the pickle of the top value.
  std::string finish() &&;

 private:
  Pickle& code(char opcode);
  Pickle& counted(char opcode, std::string_view bytes);
  std::string bytes_;
};

/// A tensor of integers for torch_file().
struct IntegerTensor {
  enum class Kind { kUint8, kInt64 };
  Kind kind = Kind::kInt64;
  std::vector<std::size_t> shape;
  std::vector<std::int64_t> values;  // row-major, each in the kind's range
};

/// Returns what torch.save(tensor) writes and torch.load(…, weights_only=True) reads: an uncompressed zip with the
/// pickled tensor and its values.
std::string torch_file(const IntegerTensor& tensor);

/// The bytes of what torch.save(object) writes of an object with vectors of f32, for torch.load(…, weights_only=True).
/// The vectors are parts of one storage.
class FloatTorchFile {
 public:
  /// @param values  in all vectors together
  explicit FloatTorchFile(std::size_t values) : all_(values) {}

  /// The pickle of the object, to be written in order.
  Pickle& pickle() noexcept { return pickle_; }
  /// Pushes a vector. @throws Error kInternal beyond the number of values
  void vector(std::span<const float> values);
  /// @throws Error kInternal unless all values came, or for more than 4 GiB
  std::string finish() &&;

 private:
  Pickle pickle_;
  std::size_t all_, count_ = 0;  // values: of the file, so far
  std::string numbers_;
};

}  // namespace kvs::inline io
