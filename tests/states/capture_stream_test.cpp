// SPDX-License-Identifier: Apache-2.0
#include "states/capture_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

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
  std::unique_ptr<CaptureDocument> begin_document(std::uint64_t document,
                                                  std::span<const std::int32_t> tokens) override {
    EXPECT_EQ(tokens.front(), static_cast<std::int32_t>(document));
    return std::make_unique<Document>(*this, document);
  }

  std::uint64_t fail_in_ = UINT64_MAX;
  std::atomic<int> active_ = 0;
  std::mutex mutex_;
  std::vector<std::uint64_t> stored_;
  std::vector<std::byte> last_;

 private:
  class Document final : public CaptureDocument {
   public:
    Document(SlowPart& part, std::uint64_t number) : part_(part), number_(number) {}
    void write_stored(std::int32_t layer, StateKind kind, std::span<const std::byte> states) override {
      ++part_.active_;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (number_ == part_.fail_in_) throw Error(ErrorCode::kEnvironment, "disk", "is full");
      const std::scoped_lock lock(part_.mutex_);
      EXPECT_TRUE(written_.emplace(layer, kind).second);
      part_.last_.assign(states.begin(), states.end());
      --part_.active_;
    }
    void write_nll(std::span<const float> nll) override { EXPECT_EQ(nll.size(), 2U); }
    Json store() override {
      EXPECT_EQ(part_.active_, 0) << "stored while its data were being written";
      EXPECT_EQ(written_.size(), 2U * kLayers);
      part_.stored_.push_back(number_);
      return number_;
    }

   private:
    SlowPart& part_;
    std::uint64_t number_;
    std::set<std::pair<std::int32_t, StateKind>> written_;
  };
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
  static void begin(CaptureStream& stream, std::uint64_t document) {
    const std::int32_t tokens[] = {static_cast<std::int32_t>(document), 1, 2};
    stream.begin_document(document, tokens);
  }
  void write_layer(CaptureStream& stream, std::uint64_t document, std::int32_t layer) {
    fill(static_cast<float>(document));
    stream.write_states(document, layer, StateKind::kQPre, q.view());
    stream.write_states(document, layer, StateKind::kV, v.view());
    fill(-1);  // later layers may overwrite the states
  }
  static void store(CaptureStream& stream, std::uint64_t document) {
    stream.write_nll(document, {0.5F, 0.25F});
    stream.store_document(document);
  }
  void operator()(CaptureStream& stream, std::uint64_t document, bool whole = true) {
    begin(stream, document);
    for (std::int32_t layer = 0; layer < kLayers; ++layer) write_layer(stream, document, layer);
    if (whole) store(stream, document);
  }
};

TEST(CaptureStream, StoresDocumentsInOrderWithAllTheirData) {
  Pass pass;
  SlowPart part;
  CaptureStream stream(*pass.backend, part, header_of(DType::kF32));
  for (std::uint64_t document = 0; document < 10; ++document) pass(stream, document);
  for (std::uint64_t document = 0; document < 10; ++document) EXPECT_EQ(stream.stored(document), document);
  EXPECT_EQ(part.stored_, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(CaptureStream, WritesDocumentsLayerByLayer) {
  constexpr std::uint64_t kDocuments = 4;
  Pass pass;
  SlowPart part;
  CaptureStream stream(*pass.backend, part, header_of(DType::kF32));
  for (std::uint64_t document = 0; document < kDocuments; ++document) Pass::begin(stream, document);
  for (std::int32_t layer = 0; layer < kLayers; ++layer)
    for (std::uint64_t document = 0; document < kDocuments; ++document) pass.write_layer(stream, document, layer);
  for (std::uint64_t document = 0; document < kDocuments; ++document) Pass::store(stream, document);
  for (std::uint64_t document = 0; document < kDocuments; ++document) EXPECT_EQ(stream.stored(document), document);
  EXPECT_EQ(part.stored_, (std::vector<std::uint64_t>{0, 1, 2, 3}));
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
    for (std::uint64_t document = 0; document < 50; ++document) pass(stream, document);
    (void)stream.stored(49);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
  }
  EXPECT_THROW((void)stream.stored(49), Error) << "an error stays";
  EXPECT_EQ(part.stored_, (std::vector<std::uint64_t>{0, 1}));
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
  EXPECT_EQ(part.stored_, (std::vector<std::uint64_t>{0, 1}));
}

}  // namespace
}  // namespace kvs::test
