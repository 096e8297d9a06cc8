// SPDX-License-Identifier: Apache-2.0
// Attention on CUDA: against the CPU at the sizes at which its tiles begin, end and are left out, and by values that
// show which keys were read.
#include "core/error.h"
#include "tests/kernels/cuda_support.h"

namespace kvs::test {
namespace {

struct AttentionCase {
  std::size_t members = 1, query_heads = 2, kv_heads = 1, tokens, head_dim, past = 0, past_members = 1, window = 0;
  float softcap = 0, sharpness = 1;  // the scale is sharpness / √head_dim
};

std::ostream& operator<<(std::ostream& out, const AttentionCase& c) {
  return out << c.members << " members, " << c.query_heads << " heads of " << c.head_dim << " on " << c.kv_heads << ", "
             << c.tokens << " tokens after " << c.past << " of " << c.past_members << ", window " << c.window
             << ", cap " << c.softcap;
}

/// The inputs of attention, on the host; axes as in AttentionInput.
struct AttentionValues {
  std::vector<float> q, k, v, past_k, past_v;

  static AttentionValues random(const AttentionCase& c) {
    const std::size_t own = c.members * c.kv_heads * c.tokens, past = c.past_members * c.kv_heads * c.past;
    return {random_values(c.members * c.query_heads * c.tokens * c.head_dim, 1), random_values(own * c.head_dim, 2),
            random_values(own * c.head_dim, 3), random_values(past * c.head_dim, 4),
            random_values(past * c.head_dim, 5)};
  }
};

/// @param mass  for a single token: AttentionInput::mass
std::vector<float> run(Backend& backend, const AttentionCase& c, const AttentionValues& values,
                       std::vector<float>* mass = nullptr) {
  const auto upload = [&](const std::vector<float>& of, std::size_t members, std::size_t heads, std::size_t tokens) {
    return uploaded<4>(backend, of, {members, heads, tokens, c.head_dim});
  };
  const auto q = upload(values.q, c.members, c.query_heads, c.tokens);
  const auto k = upload(values.k, c.members, c.kv_heads, c.tokens),
             v = upload(values.v, c.members, c.kv_heads, c.tokens);
  constexpr std::size_t kSpare = 3;
  const auto past = [&](const std::vector<float>& rows) {
    return upload(with_spare_rows(rows, c.past, c.head_dim, kSpare), c.past_members, c.kv_heads,
                  rows.empty() ? 0 : c.past + kSpare);
  };
  const auto past_k = past(values.past_k), past_v = past(values.past_v);
  const OwnedOperand out(backend, c.members * c.tokens, c.query_heads * c.head_dim);
  AttentionInput in{.q = q.view(), .k = k.view(), .v = v.view()};
  if (c.past > 0) in.past = {past_k.view(), past_v.view(), c.past};
  in.scale = c.sharpness / std::sqrt(static_cast<float>(c.head_dim));
  in.window = c.window;
  in.softcap = c.softcap;
  const BackendTensor<float, 2> received(backend, {c.kv_heads, mass == nullptr ? 0 : c.past + 1});
  in.mass = received.view();
  backend.attention(in, out);
  if (mass != nullptr) *mass = download(backend, received.view());
  return out.values();
}

/// A score is off by head_dim roundings of a sum below sharpness · √head_dim, a weight by as much relatively, a sum
/// over keys by one rounding each. Values are below 1. In bf16 both sides round the same q, k and v, then weights and
/// result.
double tolerance_of(const AttentionCase& c, DType type) {
  const auto d = static_cast<double>(c.head_dim), keys = static_cast<double>(c.past + c.tokens);
  return 2 * (2 * static_cast<double>(c.sharpness) * std::sqrt(d) * d * 0x1p-24 + keys * 0x1p-24 +
              (type == DType::kBF16 ? 2 * half_step(type) : 0.0));
}

struct Kind {
  DType type;
  const char* attention;  // KVS_ATTENTION
};

/// With "cudnn", cases with a past, a soft cap or an odd head_dim run our own kernel once more.
class CudaAttention : public BothDevices, public ::testing::WithParamInterface<Kind> {
 protected:
  void SetUp() override {
    setenv("KVS_ATTENTION", GetParam().attention, 1);
    start(type());
    unsetenv("KVS_ATTENTION");
    if (cuda_ == nullptr || !forces_cudnn()) return;
    try {
      run(*cuda_, {.tokens = 1, .head_dim = 64}, AttentionValues::random({.tokens = 1, .head_dim = 64}));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kEnvironment) return leave_out(error.what());
      throw;
    }
  }
  DType type() const { return GetParam().type; }
  bool forces_cudnn() const { return GetParam().attention == std::string_view("cudnn"); }
  void expect_the_same(const AttentionCase& c) {
    SCOPED_TRACE(testing::Message() << c);
    const auto [cpu, cuda] = both([&](Backend& backend) { return run(backend, c, AttentionValues::random(c)); });
    expect_close(cuda, cpu, tolerance_of(c, type()));
  }
};

/// Tokens and head sizes at, below and above tiles of 32, 64 and 128 and pieces of 4, 8 and 16. The other numbers
/// alternate, so that every pair of them occurs.
std::vector<AttentionCase> edges() {
  constexpr std::size_t kTokens[] = {1, 7, 63, 64, 65, 129, 200}, kPasts[] = {0, 5, 64, 100};
  constexpr std::size_t kWindows[] = {0, 1, 5, 64, 100};
  std::vector<AttentionCase> cases;
  for (const std::size_t head_dim : {2, 64, 70, 72, 80, 96, 100, 128, 256}) {
    for (const std::size_t tokens : kTokens) {
      const std::size_t i = cases.size();
      const std::size_t members = 1 + i % 2, group = 1 + i % 3;
      const std::size_t kv_heads = 1 + i / 3 % 2;
      cases.push_back({.members = members,
                       .query_heads = group * kv_heads,
                       .kv_heads = kv_heads,
                       .tokens = tokens,
                       .head_dim = head_dim,
                       .past = kPasts[i % 4],
                       .past_members = i / 2 % 2 == 0 ? 1 : members,
                       .window = kWindows[i % 5],
                       .softcap = i % 6 == 4 ? 3.0F : 0.0F,
                       .sharpness = 4});
    }
  }
  return cases;
}

TEST_P(CudaAttention, AtTheEdgesOfTiles) {
  for (const AttentionCase& c : edges()) expect_the_same(c);
}

TEST_P(CudaAttention, OfEveryHeadSizeAndGrouping) {
  for (const std::size_t tokens : kTokenCounts)
    for (const std::size_t head_dim : {64, 80, 128})
      for (const auto& [query_heads, kv_heads] : {std::pair<std::size_t, std::size_t>{2, 1}, {6, 3}, {3, 3}})
        expect_the_same({.query_heads = query_heads, .kv_heads = kv_heads, .tokens = tokens, .head_dim = head_dim});
  if (!forces_cudnn()) return;
  const std::string note = cuda_attention_note(*cuda_);
  EXPECT_TRUE(note.starts_with("cuDNN") && note.find("in 37 of 37 calls") != std::string::npos) << note;  // and SetUp's
}

TEST_P(CudaAttention, ToAPastOfEachMemberOrOfAll) {
  for (const std::size_t past : {1, 63, 300}) {
    for (const std::size_t past_members : {1, 2}) {
      for (const auto& [tokens, head_dim] : {std::pair<std::size_t, std::size_t>{1, 80}, {70, 64}, {7, 256}}) {
        expect_the_same({.members = 2,
                         .query_heads = 6,
                         .kv_heads = 2,
                         .tokens = tokens,
                         .head_dim = head_dim,
                         .past = past,
                         .past_members = past_members});
      }
    }
  }
}

TEST_P(CudaAttention, GivesTheMassThatEachKeyReceived) {
  for (AttentionCase c : edges()) {
    c.tokens = c.members = c.past_members = 1;
    SCOPED_TRACE(testing::Message() << c);
    const auto [cpu, cuda] = both([&](Backend& backend) {
      std::vector<float> mass;
      run(backend, c, AttentionValues::random(c), &mass);
      return mass;
    });
    expect_close(cuda, cpu, static_cast<double>(c.query_heads) * tolerance_of(c, DType::kF32));
  }
}

/// Blocks go through sections of pairs of a head and a member whose keys and values have 16 MiB: here two pairs and one
/// (bf16), or one each.
TEST_P(CudaAttention, InSectionsOfWhatTheCacheHolds) {
  expect_the_same({.members = 3,
                   .query_heads = 2,
                   .tokens = 130,
                   .head_dim = 128,
                   .past = 12000,
                   .past_members = 3,
                   .window = 100,
                   .sharpness = 4});
}

/// Returns the first position that the token at `position` reads.
std::size_t first_seen(const AttentionCase& c, std::size_t position) {
  return c.window == 0 || position < c.window ? 0 : position + 1 - c.window;
}

/// Queries of zero give every visible key the same weight, and the value of a key is 1 in one channel. The output is
/// the share of the visible keys whose number, modulo head_dim, is the channel's.
TEST_P(CudaAttention, ReadsEveryVisibleKeyOnceAndNoOther) {
  for (AttentionCase c : edges()) {
    SCOPED_TRACE(testing::Message() << c);
    auto values = AttentionValues::random(c);
    std::ranges::fill(values.q, 0.0F);
    const auto mark = [&](std::vector<float>& v, std::size_t rows, std::size_t first) {
      for (std::size_t i = 0; i < v.size(); ++i)
        v[i] = (first + i / c.head_dim % rows) % c.head_dim == i % c.head_dim ? 1.0F : 0.0F;
    };
    mark(values.v, c.tokens, c.past);
    if (c.past > 0) mark(values.past_v, c.past, 0);
    std::vector<float> expected(c.members * c.tokens * c.query_heads * c.head_dim);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::size_t position = c.past + i / c.head_dim / c.query_heads % c.tokens;
      std::size_t count = 0;
      for (std::size_t key = first_seen(c, position); key <= position; ++key)
        count += key % c.head_dim == i % c.head_dim ? 1 : 0;
      expected[i] = static_cast<float>(count) / static_cast<float>(position + 1 - first_seen(c, position));
    }
    // Sums of at most 300 ones are exact: only a quotient and, in bf16, its rounding are left.
    expect_close(run(*cuda_, c, values), expected, 0, 0x1p-22 + (type() == DType::kBF16 ? half_step(type()) : 0));
  }
}

/// Keys are rows of ±1, and a query equals the key that it is to find. Its score is head_dim, and the score of another
/// key is so far below that its weight is negligible.
TEST_P(CudaAttention, FindsTheKeyThatAQueryAsksFor) {
  for (AttentionCase c : edges()) {
    if (c.head_dim < 64) continue;  // too few channels to distinguish so many keys
    c.softcap = 0;
    c.sharpness = 8 * std::sqrt(static_cast<float>(c.head_dim));  // the scale is 8
    SCOPED_TRACE(testing::Message() << c);
    auto values = AttentionValues::random(c);
    for (auto* keys : {&values.k, &values.past_k})
      for (float& value : *keys) value = value < 0 ? -1.0F : 1.0F;
    std::vector<float> expected(c.members * c.tokens * c.query_heads * c.head_dim);
    for (std::size_t row = 0; row < c.members * c.query_heads * c.tokens; ++row) {
      const std::size_t token = row % c.tokens, head = row / c.tokens % c.query_heads, position = c.past + token;
      const std::size_t member = row / c.tokens / c.query_heads, kv_head = head / (c.query_heads / c.kv_heads);
      const std::size_t first = first_seen(c, position), key = first + row * 7919 % (position + 1 - first);
      const std::size_t past_row = ((c.past_members == 1 ? 0 : member) * c.kv_heads + kv_head) * c.past + key;
      const std::size_t own_row = (member * c.kv_heads + kv_head) * c.tokens + key - c.past;
      const std::size_t from = (key < c.past ? past_row : own_row) * c.head_dim;
      const auto& k = key < c.past ? values.past_k : values.k;
      const auto& v = key < c.past ? values.past_v : values.v;
      for (std::size_t i = 0; i < c.head_dim; ++i) {
        values.q[row * c.head_dim + i] = k[from + i];
        expected[((member * c.tokens + token) * c.query_heads + head) * c.head_dim + i] = v[from + i];
      }
    }
    // With 300 keys and 64 channels the best other key differs in 10 channels or more: its weight is e^(−8 · 20) at
    // most.
    expect_close(run(*cuda_, c, values), rounded(expected, type()), 0, 0x1p-22);
  }
}

#ifdef KVS_EMULATED  // where cuDNN plans a shape and then cannot run it
TEST_F(BothDevices, CudnnThatFailsLeavesAttentionToTheOwnKernelAndSaysSoOnce) {
  start(DType::kBF16);
  std::vector<std::string> notes;
  cuda_->on_note([&](const std::string& line) { notes.push_back(line); });
  setenv("KVS_ATTENTION", "own", 1);
  const auto own = make_backend("cuda", DType::kBF16);
  unsetenv("KVS_ATTENTION");
  for (const std::size_t tokens : {1024, 1025}) {
    const AttentionCase c{.query_heads = 1, .tokens = tokens, .head_dim = 8};
    const auto values = AttentionValues::random(c);
    EXPECT_EQ(run(*cuda_, c, values), run(*own, c, values)) << tokens << " tokens";
  }
  EXPECT_EQ(notes, std::vector<std::string>{
                       "attention: emulated in 0 of 1 calls, else the own kernel; emulated: found no cuDNN to run"});
}

// The libraries' kernels do not run there.
constexpr Kind kKinds[] = {{DType::kF32, "own"}, {DType::kBF16, "own"}};
#else
constexpr Kind kKinds[] = {{DType::kF32, "own"}, {DType::kBF16, "own"}, {DType::kBF16, "cudnn"}};
#endif
INSTANTIATE_TEST_SUITE_P(BothDevicesByType, CudaAttention, ::testing::ValuesIn(kKinds), [](const auto& kind) {
  return type_name(kind.param.type) + (kind.param.attention == std::string_view("cudnn") ? "Cudnn" : "");
});

}  // namespace
}  // namespace kvs::test
