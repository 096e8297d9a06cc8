#include "states/capture_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>

#include "core/error.h"

namespace kvs::test {
namespace {

constexpr std::int32_t kLayers = 3;

CaptureHeader header_of(DType store) {
  CaptureHeader header;
  header.layers = {0, 1, 2};
  header.query_heads = 4;
  header.kv_heads = 2;
  header.head_dim = 2;
  header.states = {StateKind::kQPre, StateKind::kV};
  header.store = store;
  header.tokens = 3;
  header.documents = 100;
  return header;
}

/// Records the data that it receives, slowly.
class SlowPart final : public CapturePart {
 public:
  void begin_document(std::uint64_t document, std::span<const std::int32_t> tokens) override {
    EXPECT_EQ(active_, 0);
    EXPECT_EQ(document, stored_);
    EXPECT_TRUE(written_.empty()) << "begun before the last document was stored";
    tokens_.assign(tokens.begin(), tokens.end());
  }
  void write_stored(std::int32_t layer, StateKind kind, std::span<const std::byte> states) override {
    ++active_;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (stored_ == fail_in_) throw Error(ErrorCode::kEnvironment, "disk", "is full");
    const std::scoped_lock lock(mutex_);
    EXPECT_TRUE(written_.emplace(layer, kind).second);
    last_.assign(states.begin(), states.end());
    --active_;
  }
  void write_nll(std::span<const float> nll) override {
    const std::scoped_lock lock(mutex_);
    EXPECT_EQ(nll.size(), 2U);
  }
  Json store_document() override {
    EXPECT_EQ(active_, 0) << "stored while its data were being written";
    EXPECT_EQ(written_.size(), 2U * kLayers);
    EXPECT_EQ(tokens_.front(), static_cast<std::int32_t>(stored_));
    written_.clear();
    return stored_++;
  }

  std::uint64_t stored_ = 0, fail_in_ = UINT64_MAX;
  std::atomic<int> active_ = 0;
  std::mutex mutex_;
  std::set<std::pair<std::int32_t, StateKind>> written_;
  std::vector<std::byte> last_;
  std::vector<std::int32_t> tokens_;
};

/// One memory for the states of every layer, as in the forward pass.
struct Pass {
  std::unique_ptr<Backend> backend = make_backend("cpu", DType::kF32);
  BackendTensor<float, 3> q{*backend, {4, 3, 2}}, v{*backend, {2, 3, 2}};

  void fill(float value) {
    const std::vector<float> values(24, value);
    backend->upload(q.view().data(), values.data(), q.bytes());
    backend->upload(v.view().data(), values.data(), v.bytes());
  }
  void operator()(CaptureStream& stream, std::int32_t document, bool whole = true) {
    const std::int32_t tokens[] = {document, 1, 2};
    stream.begin_document(static_cast<std::uint64_t>(document), tokens);
    for (std::int32_t layer = 0; layer < kLayers; ++layer) {
      fill(static_cast<float>(document));
      stream.write_states(layer, StateKind::kQPre, q.view());
      stream.write_states(layer, StateKind::kV, v.view());
      fill(-1);  // later layers may overwrite the states
    }
    if (!whole) return;
    stream.write_nll({0.5F, 0.25F});
    stream.store_document(static_cast<std::uint64_t>(document));
  }
};

TEST(CaptureStream, StoresDocumentsInOrderWithAllTheirData) {
  Pass pass;
  SlowPart part;
  CaptureStream stream(*pass.backend, part, header_of(DType::kF32));
  for (std::int32_t document = 0; document < 10; ++document) pass(stream, document);
  for (std::uint64_t document = 0; document < 10; ++document) EXPECT_EQ(stream.stored(document), document);
  EXPECT_EQ(part.stored_, 10U);
}

TEST(CaptureStream, HandsOverStatesAsTheyWereInTheStoredType) {
  for (const DType store : {DType::kF32, DType::kF16, DType::kBF16}) {
    Pass pass;
    SlowPart part;
    CaptureStream stream(*pass.backend, part, header_of(store));
    pass(stream, 0);
    (void)stream.stored(0);
    EXPECT_EQ(part.last_.size() % (2 * 3 * 2 * item_size(store)), 0U);
    EXPECT_EQ(part.last_[0], std::byte{0}) << "document 0 holds zeros, not what came after";
  }
}

TEST(CaptureStream, ThrowsWhatAPartThrewAndWritesNoMore) {
  Pass pass;
  SlowPart part;
  part.fail_in_ = 2;
  CaptureStream stream(*pass.backend, part, header_of(DType::kF16));
  try {
    for (std::int32_t document = 0; document < 50; ++document) pass(stream, document);
    (void)stream.stored(49);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
  }
  EXPECT_THROW((void)stream.stored(49), Error) << "an error stays";
  EXPECT_EQ(part.stored_, 2U);
}

TEST(CaptureStream, IsDestroyedWithWholeDocumentsStoredAndTheLastOneNot) {
  Pass pass;
  SlowPart part;
  {
    CaptureStream stream(*pass.backend, part, header_of(DType::kF16));
    pass(stream, 0);
    pass(stream, 1);
    pass(stream, 2, false);
  }
  EXPECT_EQ(part.stored_, 2U);
}

}  // namespace
}  // namespace kvs::test
