#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvs {

/// Bytes of a Python pickle, written opcode by opcode; only what the files below need. It says protocol 2, as
/// torch.load expects; bytes() is an opcode of protocol 3, which every Python 3 reads all the same. Source: CPython's
/// Lib/pickletools.py.
class Pickle {
 public:
  Pickle();

  Pickle& string(std::string_view text);  // UTF-8
  Pickle& bytes(std::string_view bytes);
  Pickle& integer(std::int64_t value);
  Pickle& boolean(bool value);
  /// `name` of `module`, such as torch.LongStorage.
  Pickle& global(std::string_view module, std::string_view name);
  Pickle& empty_dict() { return code('}'); }
  Pickle& mark() { return code('('); }
  Pickle& tuple() { return code('t'); }          // of everything since the mark
  Pickle& set_items() { return code('u'); }      // keys and values since the mark, into the dict below it
  Pickle& reduce() { return code('R'); }         // calls the callable below a tuple with it
  Pickle& persistent_id() { return code('Q'); }  // what the loader makes of the value on top
  /// The pickle of the value on top.
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

/// What torch.save(tensor) writes and torch.load(…, weights_only=True) reads: a zip, nothing compressed, of the pickled
/// tensor and its numbers.
std::string torch_file(const IntegerTensor& tensor);

}  // namespace kvs
