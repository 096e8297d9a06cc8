// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>

#include "states/capture_run.h"
#include "states/capture_source.h"
#include "states/capture_stream.h"
#include "states/live_source.h"
#include "tests/io/temporary_directory.h"
#include "tests/model/formula_model.h"

namespace kvs {
namespace {

Json read_golden(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(KVS_GOLDEN_DIR) / ("parity/" + name + ".json");
  return parse_json(read_text_file(path, 1 << 20), path.string());
}

/// Two kinds of RoPE, LongRoPE with an attention factor, and half of each head rotated by length-dependent frequencies.
class RecomputedKeys : public testing::TestWithParam<const char*> {};

TEST_P(RecomputedKeys, FromACaptureAreTheLiveModelsToTheBit) {
  const Json golden = read_golden(GetParam());
  const auto tokens = read_golden("tokens").get<std::vector<std::int32_t>>();
  const test::TemporaryDirectory folder;
  test::write_formula_model(folder / "model", golden["config"], golden["tensors"]);
  const auto backend = make_backend("cpu", DType::kF32, 2);
  const auto source = ModelSource::open(folder / "model");
  const Model model(*source, *backend);
  Decoder decoder(model);
  std::vector<std::size_t> layers(model.config().layers());
  std::iota(layers.begin(), layers.end(), std::size_t{0});

  const CaptureHeader header =
      capture_header(model.config(), source->sha256(), layers, {StateKind::kKPre}, DType::kF32, tokens.size(), 1);
  const auto writer = CaptureWriter::open(folder / "keys.h5", header, Json{{"test", 1}}, {});
  {
    CaptureStream stream(*backend, writer->part(), header);
    capture_document(decoder, 0, tokens, header, stream);
    writer->commit(stream.stored(0));
  }
  writer->finish();

  const StateNeeds needs{.layers = layers, .states = {StateKind::kKPost}};
  std::vector<std::vector<float>> live, stored;
  LiveSource from_model(decoder, {tokens});
  from_model.visit(0, needs,
                   [&](const DocumentStates& s) { live.push_back(download(*backend, s[StateKind::kKPost])); });
  const auto reader = CaptureReader::open(folder / "keys.h5", {});
  CaptureSource from_capture(*reader, *backend);
  from_capture.visit(0, needs,
                     [&](const DocumentStates& s) { stored.push_back(download(*backend, s[StateKind::kKPost])); });
  EXPECT_EQ(stored, live);
  EXPECT_EQ(model_config_of(reader->header()).ropes, model.config().ropes);
}

INSTANTIATE_TEST_SUITE_P(Architectures, RecomputedKeys, testing::Values("gemma3", "phi3", "gpt_neox"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace kvs
