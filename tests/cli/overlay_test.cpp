// SPDX-License-Identifier: Apache-2.0
// Overlays of scales: a model's folder before, with and after one, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "io/digest.h"
#include "io/tensor_archive.h"
#include "tests/cli/calibrate_fixture.h"

namespace kvs::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kManifest = "kvspectrum-overlay.json";

class OverlayProgram : public CalibratePrograms {
 protected:
  OverlayProgram() {
    const Outcome made = run("kvcalibrate", with_text("store", {"--scale", "max", "--out", folder_ / "fp8.json"}));
    EXPECT_EQ(made.status, 0) << made.err;
    const Outcome written = export_overlay("overlay");
    EXPECT_EQ(written.status, 0) << written.err;
    before_ = contents_of(folder_ / "model");
  }
  Outcome export_overlay(const std::string& out) const {
    return export_to("vllm-fp8", "fp8.json", out, {"--overlay", "--force"});
  }
  Outcome apply() const {
    return run("kvcalibrate", {"overlay", "apply", "--model", folder_ / "model", "--overlay", folder_ / "overlay"});
  }
  Outcome undo() const { return run("kvcalibrate", {"overlay", "undo", "--model", folder_ / "model"}); }
  void expect_refused(const Outcome& outcome, int status, const std::string& message) const {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
  /// apply() is refused and changes nothing.
  void expect_unchanged(int status, const std::string& message) const {
    const auto held = contents_of(folder_ / "model");
    expect_refused(apply(), status, message);
    EXPECT_EQ(difference(held, contents_of(folder_ / "model")), "") << message;
  }
  void append_to_file(const std::string& name) const { std::ofstream(folder_ / name, std::ios::app) << " "; }
  void change_manifest(const std::function<void(Json&)>& change) const {
    Json manifest = config(std::string("overlay/") + kManifest);
    change(manifest);
    std::ofstream(folder_ / "overlay" / kManifest) << manifest;
  }

  std::map<std::string, std::string> before_;
};

TEST_F(OverlayProgram, HoldsNoCopyOfTheModel) {
  const auto files = contents_of(folder_ / "overlay");
  EXPECT_EQ(files.size(), 5U);
  for (const char* name : {"model-kvscales.safetensors", "model.safetensors.index.json", "config.json", kManifest,
                           "kvspectrum-export.json"})
    EXPECT_TRUE(files.contains(name)) << name;
  const Json manifest = config(std::string("overlay/") + kManifest);
  EXPECT_EQ(manifest.at("scales").at("layers"), Json({0, 1, 2, 3}));
  EXPECT_EQ(manifest.at("model").at("weights").at("model.safetensors"),
            sha256_of(slurp(folder_ / "model/model.safetensors")));
  EXPECT_TRUE(manifest.at("replaces").at("model.safetensors.index.json").at("before").is_null());
}

TEST_F(OverlayProgram, IsUndoneByteForByte) {
  const Outcome applied = apply();
  ASSERT_EQ(applied.status, 0) << applied.err;
  EXPECT_THAT(applied.out, HasSubstr("applied the scales of 4 layers"));
  const auto archive = open_safetensors(folder_ / "model/model.safetensors.index.json");
  ASSERT_NE(archive->find("model.layers.3.self_attn.v_scale"), nullptr);
  ASSERT_NE(archive->find("model.norm.weight"), nullptr);
  EXPECT_EQ(config("model/config.json").at("quantization_config").at("kv_cache_scheme").at("strategy"), "tensor");
  // The config is still for the model.
  EXPECT_EQ(run("kvcalibrate", with_text("eval", {"--config", folder_ / "fp8.json"})).status, 0);
  const Outcome undone = undo();
  ASSERT_EQ(undone.status, 0) << undone.err;
  EXPECT_EQ(difference(before_, contents_of(folder_ / "model")), "");
  expect_refused(undo(), 3, "model: found no kvspectrum-overlay.json, expected the folder of a model with an overlay");
}

// The hub's cache: config.json and the weights are links to blobs.
TEST_F(OverlayProgram, ReplacesLinksAndNotTheirTargets) {
  fs::create_directory(folder_ / "blobs");
  for (const char* name : {"config.json", "model.safetensors"}) {
    fs::rename(folder_ / "model" / name, folder_ / "blobs" / name);
    fs::create_symlink(fs::path("../blobs") / name, folder_ / "model" / name);
  }
  const auto blobs = contents_of(folder_ / "blobs");
  ASSERT_EQ(apply().status, 0);
  EXPECT_FALSE(fs::is_symlink(folder_ / "model/config.json"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "model/model.safetensors"));
  EXPECT_EQ(difference(blobs, contents_of(folder_ / "blobs")), "");
  ASSERT_EQ(undo().status, 0);
  EXPECT_TRUE(fs::is_symlink(folder_ / "model/config.json"));
  EXPECT_EQ(slurp(folder_ / "model/config.json"), blobs.at("config.json"));
}

TEST_F(OverlayProgram, RefusesAnotherCheckpointAndASecondOverlay) {
  append_to_file("model/config.json");
  expect_unchanged(7, "model/config.json: found SHA-256 ");
  std::ofstream(folder_ / "model/config.json") << before_.at("config.json");
  std::string weights = before_.at("model.safetensors");
  weights.back() = static_cast<char>(weights.back() ^ 1);
  std::ofstream(folder_ / "model/model.safetensors") << weights;
  expect_unchanged(7, "model/model.safetensors: found SHA-256 ");
  std::ofstream(folder_ / "model/model.safetensors") << before_.at("model.safetensors");
  std::ofstream(folder_ / "model/model-kvscales.safetensors") << "mine";
  expect_unchanged(7, "model-kvscales.safetensors: found a file, expected none");
  fs::remove(folder_ / "model/model-kvscales.safetensors");
  ASSERT_EQ(apply().status, 0);
  expect_unchanged(7, "found an overlay, expected a model without one");
  expect_refused(export_overlay("second"), 7, "found an overlay, expected a model without one");
}

TEST_F(OverlayProgram, ChangedFilesAreNotUndone) {
  ASSERT_EQ(apply().status, 0);
  append_to_file("model/config.json");
  const auto held = contents_of(folder_ / "model");
  expect_refused(undo(), 7, "model/config.json: found a file that has changed since the overlay was applied");
  EXPECT_EQ(difference(held, contents_of(folder_ / "model")), "");
}

// A killed apply leaves the manifest and any part of the files.
TEST_F(OverlayProgram, AnInterruptedApplyIsUndone) {
  fs::copy_file(folder_ / "overlay" / kManifest, folder_ / "model" / kManifest);
  fs::create_hard_link(folder_ / "model/config.json", folder_ / "model/config.json.kvspectrum-original");
  fs::copy_file(folder_ / "overlay/model-kvscales.safetensors", folder_ / "model/model-kvscales.safetensors");
  std::ofstream(folder_ / "model/kvspectrum-overlay.json.config.json") << "{";
  // Of a process that exists no more: ids end at 4194304.
  std::ofstream(folder_ / "model/.kvspectrum-overlay.json.config.json.2147483647.tmp") << "{";
  const Outcome undone = undo();
  ASSERT_EQ(undone.status, 0) << undone.err;
  EXPECT_EQ(difference(before_, contents_of(folder_ / "model")), "");
}

TEST_F(OverlayProgram, RefusesManifestsThatStateOtherThings) {
  const std::string digest(64, 'a');
  struct Case {
    std::function<void(Json&)> change;
    int status;
    std::string message;
  };
  const std::vector<Case> cases{
      {[](Json& m) {
         m["scales"]["layers"] = {0, 1, 3};
       },
       3, "found 8 tensors, expected a pair for each of 3 layers"},
      {[](Json& m) {
         m["scales"]["layers"] = {0, 1, 2, 3, 4};
       },
       3, "layer 4: found no pair of scales"},
      {[](Json& m) { m["scales"]["skipped_layers"] = {9}; }, 7, "expected the model's 4 layers with a KV cache"},
      {[](Json& m) {
         m["scales"]["layers"] = {1, 0, 2, 3};
       },
       3, "/scales/layers/1: found 0, expected ascending"},
      {[](Json& m) { m["scales"]["file"] = "../x"; }, 3, "/scales/file: found \"../x\", expected model-kvscales"},
      {[&](Json& m) { m["scales"]["sha256"] = digest; }, 7, "model-kvscales.safetensors: found SHA-256 "},
      {[](Json& m) { m["scales"]["sha256"] = "AB"; }, 3, "/scales/sha256: found \"AB\", expected a SHA-256"},
      {[&](Json& m) {
         m["replaces"]["../../etc/passwd"] = {{"before", digest}, {"after", digest}};
       },
       3, "expected a file that an overlay may replace"},
      {[&](Json& m) {
         m["replaces"]["model.safetensors"] = {{"before", digest}, {"after", digest}};
       },
       3, "expected a file that an overlay may replace"},
      {[](Json& m) { m["replaces"].erase("model.safetensors.index.json"); }, 3, "expected the index"},
      {[](Json& m) { m["replaces"]["config.json"]["before"] = nullptr; }, 3, "expected the digest before"},
      {[&](Json& m) { m["replaces"]["config.json"]["after"] = digest; }, 7, "overlay/config.json: found SHA-256 "},
      {[&](Json& m) {
         m["model"]["weights"] = {{"../model.safetensors", digest}};
       },
       3, "expected a plain name"},
      {[&](Json& m) {
         m["model"]["weights"] = {{"other.safetensors", digest}};
       },
       7, "found other.safetensors, expected the model's model.safetensors"},
      {[](Json& m) { m["model"]["weights"] = Json::object(); }, 3, "expected 1 to 4096 files"},
      {[](Json& m) { m["version"] = 2; }, 4, "/version: found 2, expected 1"},
      {[](Json& m) { m["format"] = "other"; }, 3, "/format: found \"other\", expected kvspectrum-overlay"},
      {[](Json& m) { m = Json::array(); }, 3, "expected an object"}};
  const std::string kept = slurp(folder_ / "overlay" / kManifest);
  for (const Case& one : cases) {
    std::ofstream(folder_ / "overlay" / kManifest) << kept;
    change_manifest(one.change);
    expect_unchanged(one.status, one.message);
  }
  std::ofstream(folder_ / "overlay" / kManifest) << kept.substr(0, kept.size() / 2);
  expect_unchanged(3, kManifest);
}

TEST_F(OverlayProgram, OptionsOfTheWrongActionAreRefused) {
  const auto refused = [&](const std::vector<std::string>& words, const std::string& message) {
    expect_refused(run("kvcalibrate", words), 2, message);
  };
  refused({"overlay", "apply", "--model", "m"}, "missing option --overlay DIR");
  refused({"overlay", "undo", "--model", "m", "--overlay", "o"}, "--overlay: cannot be combined with undo");
  refused({"overlay", "remove", "--model", "m"}, "found 'remove', expected apply or undo");
  expect_refused(run("kvcalibrate", {"overlay", "undo", "--model", folder_ / "fp8.json"}), 3,
                 "fp8.json: found no folder, expected the folder of a model");
  expect_refused(export_to("llama-cpp", "fp8.json", "x", {"--overlay"}), 2, "--overlay: cannot be combined with");
}

}  // namespace
}  // namespace kvs::testing
