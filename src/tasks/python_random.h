// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace kvs::inline tasks {

/// Python's `random.Random(seed)`: a seed gives the same draws, so that tasks defined by a Python program have
/// identical texts.
/// Source: Matsumoto and Nishimura (1998), MT19937 with init_by_array; CPython 3.11's random.py for the methods.
class PythonRandom {
 public:
  explicit PythonRandom(std::uint64_t seed);

  std::uint32_t bits32();
  double unit();                         // random(): [0, 1), 53 bits
  std::size_t below(std::size_t count);  // 0 … count − 1; count below 2^32
  std::size_t between(std::size_t least, std::size_t most) { return least + below(most - least + 1); }  // randint
  /// sample(range(count), k): k distinct numbers below `count`, in the order drawn.
  std::vector<std::size_t> sample(std::size_t count, std::size_t k);
  /// ''.join(choices(letters, k=count)).
  std::string letters(std::string_view alphabet, std::size_t count);
  /// str(uuid.UUID(int=getrandbits(128), version=4)).
  std::string uuid();
  template <class T>
  const T& choice(const std::vector<T>& values) {
    return values[below(values.size())];
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t n = values.size(); n-- > 1;) std::swap(values[n], values[below(n + 1)]);
  }

 private:
  static constexpr std::size_t kWords = 624;
  void refill();

  std::array<std::uint32_t, kWords> state_;
  std::size_t next_ = kWords;
};

}  // namespace kvs::inline tasks
