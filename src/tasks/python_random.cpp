// SPDX-License-Identifier: Apache-2.0
#include "tasks/python_random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <set>

namespace kvs::inline tasks {

PythonRandom::PythonRandom(std::uint64_t seed) {
  // init_genrand(19650218), which is also std::mt19937's constructor.
  state_[0] = 19650218U;
  for (std::uint32_t n = 1; n < kWords; ++n) state_[n] = 1812433253U * (state_[n - 1] ^ (state_[n - 1] >> 30U)) + n;
  const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)};
  const std::uint32_t length = key[1] == 0 ? 1 : 2;
  std::size_t n = 1;
  const auto step = [&] {
    if (++n < kWords) return;
    state_[0] = state_[kWords - 1];
    n = 1;
  };
  const auto mixed = [&](std::uint32_t factor) {
    return state_[n] ^ ((state_[n - 1] ^ (state_[n - 1] >> 30U)) * factor);
  };
  for (std::uint32_t k = 0; k < kWords; ++k) {
    state_[n] = mixed(1664525U) + key[k % length] + k % length;
    step();
  }
  for (std::uint32_t k = 1; k < kWords; ++k) {
    state_[n] = mixed(1566083941U) - static_cast<std::uint32_t>(n);
    step();
  }
  state_[0] = 0x80000000U;
}

void PythonRandom::refill() {
  constexpr std::size_t kShift = 397;
  for (std::size_t n = 0; n < kWords; ++n) {
    const std::uint32_t y = (state_[n] & 0x80000000U) | (state_[(n + 1) % kWords] & 0x7fffffffU);
    state_[n] = state_[(n + kShift) % kWords] ^ (y >> 1U) ^ ((y & 1U) != 0 ? 0x9908b0dfU : 0U);
  }
  next_ = 0;
}

std::uint32_t PythonRandom::bits32() {
  if (next_ == kWords) refill();
  std::uint32_t y = state_[next_++];
  y ^= y >> 11U;
  y ^= (y << 7U) & 0x9d2c5680U;
  y ^= (y << 15U) & 0xefc60000U;
  return y ^ (y >> 18U);
}

double PythonRandom::unit() {
  const double high = bits32() >> 5U, low = bits32() >> 6U;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

std::size_t PythonRandom::below(std::size_t count) {
  const auto unused = static_cast<std::uint32_t>(32 - std::bit_width(count));
  std::size_t drawn = 0;
  do drawn = bits32() >> unused;
  while (drawn >= count);
  return drawn;
}

std::vector<std::size_t> PythonRandom::sample(std::size_t count, std::size_t k) {
  // A list of all numbers, if it is smaller than a set of k.
  double set_size = 21;
  if (k > 5) set_size += std::pow(4, std::ceil(std::log(static_cast<double>(3 * k)) / std::log(4.0)));
  std::vector<std::size_t> result;
  if (static_cast<double>(count) <= set_size) {
    std::vector<std::size_t> pool(count);
    std::iota(pool.begin(), pool.end(), std::size_t{0});
    for (std::size_t n = 0; n < k; ++n) {
      const std::size_t drawn = below(count - n);
      result.push_back(pool[drawn]);
      pool[drawn] = pool[count - n - 1];
    }
    return result;
  }
  std::set<std::size_t> seen;
  while (result.size() < k)
    if (const std::size_t drawn = below(count); seen.insert(drawn).second) result.push_back(drawn);
  return result;
}

std::string PythonRandom::letters(std::string_view alphabet, std::size_t count) {
  std::string text;
  for (std::size_t n = 0; n < count; ++n)
    text += alphabet[static_cast<std::size_t>(unit() * static_cast<double>(alphabet.size()))];
  return text;
}

std::string PythonRandom::uuid() {
  std::array<std::uint32_t, 4> words{};  // lowest word first
  for (std::uint32_t& word : words) word = bits32();
  words[2] = (words[2] & 0xffff0fffU) | 0x4000U;      // version 4
  words[1] = (words[1] & 0x3fffffffU) | 0x80000000U;  // the variant of RFC 4122
  std::array<char, 37> text{};
  std::snprintf(text.data(), text.size(), "%08x-%04x-%04x-%04x-%04x%08x", words[3], words[2] >> 16U, words[2] & 0xffffU,
                words[1] >> 16U, words[1] & 0xffffU, words[0]);
  return text.data();
}

}  // namespace kvs::inline tasks
