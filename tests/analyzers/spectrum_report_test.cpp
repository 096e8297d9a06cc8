// SPDX-License-Identifier: Apache-2.0
#include "analyzers/spectrum_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "io/file.h"
#include "results/spectrum_charts.h"
#include "tests/io/temporary_directory.h"

namespace kvs::test {
namespace {

constexpr std::size_t kLayers = 2, kHeads = 3, kTokens = 20, kSinks = 4;

// Bin b of layer n, head h has power b + 1 for keys; v is all zero.
Spectrum sample() {
  Spectrum spectrum;
  spectrum.tokens = kTokens;
  spectrum.sinks = kSinks;
  spectrum.documents = 7;
  spectrum.layers = {1, 5};
  spectrum.states = {kSpectrumStates.begin(), kSpectrumStates.end()};
  for (const StateKind state : kSpectrumStates) {
    spectrum.power[state] = PowerTable(kLayers, kHeads, kTokens);
    spectrum.without_sinks[state] = PowerTable(kLayers, kHeads, kTokens - kSinks);
    if (state == StateKind::kV) continue;
    for (std::size_t i = 0; i < spectrum.power[state].values.size(); ++i) {
      spectrum.power[state].values[i] = static_cast<double>(i % kTokens + 1);
    }
    for (double& value : spectrum.without_sinks[state].values) value = 0.5;
  }
  spectrum.constant_channels = {{StateKind::kV, 5, 2, 63}};
  return spectrum;
}

SpectrumResult result() {
  return spectrum_result({.model = {.name = "tiny"}, .command = "kvspectrum spectrum"}, sample());
}

SpectrumAccumulator::Settings settings() {
  SpectrumAccumulator::Settings chosen;
  chosen.sinks = kSinks;
  chosen.layers = {1, 5};
  chosen.kv_heads = kHeads;
  return chosen;
}

TEST(SpectrumJson, HoldsEachLayersCurveWithoutDc) {
  const Json json = to_json(result());
  const Json& curve = json["states"]["k_pre"]["all_tokens"]["curve"];
  ASSERT_EQ(curve["power"].size(), kLayers);
  ASSERT_EQ(curve["power"][1].size(), curve["bins"].size());
  // Bins 1 to 16 are more than a twelfth of an octave apart, so each is its own band, with power bin + 1.
  EXPECT_DOUBLE_EQ(curve["bins"][0].get<double>(), 1);
  EXPECT_DOUBLE_EQ(curve["power"][1][0].get<double>(), 2);
  EXPECT_DOUBLE_EQ(curve["bins"][15].get<double>(), 16);
  EXPECT_DOUBLE_EQ(curve["power"][1][15].get<double>(), 17);
}

TEST(SpectrumJson, HoldsSummariesByLayerAndHead) {
  const Json json = to_json(result());
  EXPECT_EQ(json["command"], "kvspectrum spectrum");
  EXPECT_EQ(json["layers"], Json({1, 5}));
  EXPECT_EQ(json["documents"], 7);
  // Powers 1 … 20: energy 210; without DC bins 1 … 19 hold 209. 95 % of 210 is 199.5 > 190 = Σ 1 … 19, so all 20 bins.
  const Json& with_dc = json["states"]["k_pre"]["all_tokens"]["with_dc"];
  EXPECT_EQ(with_dc["bins"], 20);
  EXPECT_DOUBLE_EQ(with_dc["layers"]["energy"][1].get<double>(), 210);
  EXPECT_EQ(with_dc["layers"]["bins_for_energy"][0], 20);
  EXPECT_EQ(with_dc["heads"].size(), kLayers);
  EXPECT_EQ(with_dc["heads"][0]["energy"].size(), kHeads);
  // The lowest 50 % are 10 bins with Σ 1 … 10 = 55.
  EXPECT_NEAR(with_dc["heads"][1]["low_share"][2][4].get<double>(), 55.0 / 210, 1e-14);
  const Json& without_dc = json["states"]["k_pre"]["all_tokens"]["without_dc"];
  EXPECT_EQ(without_dc["bins"], 19);
  EXPECT_DOUBLE_EQ(without_dc["layers"]["energy"][0].get<double>(), 209);
  EXPECT_EQ(json["states"]["k_post"]["without_sinks"]["with_dc"]["bins"], 16);
}

TEST(SpectrumJson, AStateWithoutEnergyHasZerosAndItsConstantChannelsAreListed) {
  const Json json = to_json(result());
  EXPECT_EQ(json["states"]["v"]["all_tokens"]["with_dc"]["layers"]["flatness"], Json({0.0, 0.0}));
  EXPECT_EQ(json["states"]["v"]["all_tokens"]["with_dc"]["layers"]["bins_for_energy"], Json({0, 0}));
  EXPECT_EQ(json["constant_channels"], Json::parse(R"([{"state": "v", "layer": 5, "head": 2, "channel": 63}])"));
  EXPECT_NO_THROW(dump_json(json));  // refuses NaN
}

std::vector<float> read_array(const std::filesystem::path& path, const char* name, std::vector<hsize_t>& shape) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t data = H5Dopen2(file, name, H5P_DEFAULT);
  const hid_t space = H5Dget_space(data);
  shape.resize(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  std::vector<float> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  EXPECT_GE(H5Dread(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Sclose(space);
  H5Dclose(data);
  H5Fclose(file);
  return values;
}

TEST(SpectrumReport, WritesTheListedFilesAndTheTables) {
  const TemporaryDirectory directory;
  const std::string note = write_spectrum_report(directory.path(), sample(), result(), false);
  std::set<std::string> written, listed;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
    written.insert(entry.path().filename());
  for (const std::string& name : spectrum_report_files(settings()))
    if (note.empty() || !name.ends_with(".png")) listed.insert(name);  // if rsvg-convert is installed
  EXPECT_EQ(written, listed);

  const std::filesystem::path tables = directory.path() / "spectrum.h5";
  std::vector<hsize_t> shape;
  const std::vector<float> power = read_array(tables, "/power/k_post", shape);
  EXPECT_THAT(shape, ::testing::ElementsAre(kLayers, kHeads, kTokens));
  EXPECT_EQ(power[kTokens + 2], 3.0F);
  const std::vector<float> without = read_array(tables, "/power_without_sinks/k_pre", shape);
  EXPECT_THAT(shape, ::testing::ElementsAre(kLayers, kHeads, kTokens - kSinks));
  EXPECT_THAT(without, ::testing::Each(0.5F));
}

TEST(SpectrumResults, OfAnyShapeAreDrawn) {
  for (const bool has_energy : {true, false}) {
    Spectrum spectrum = sample();
    if (!has_energy)
      for (const StateKind state : kSpectrumStates) spectrum.power[state] = PowerTable(kLayers, kHeads, kTokens);
    const SpectrumResult drawn = spectrum_result({}, spectrum);
    EXPECT_EQ(energy_share_chart("", drawn).panels.size(), 6U);
    EXPECT_EQ(energy_share_chart("", drawn).panels[0].cells->places.size(), kHeads);
    EXPECT_EQ(energy_chunks_chart("", drawn).panels.size(), 3U);
    EXPECT_EQ(energy_chunks_chart("", drawn).panels[2].cells->places.size(), kLayers);
  }
}

TEST(SpectrumResults, AHeadThatALayerLacksHasNoValue) {
  Spectrum spectrum = sample();
  for (const StateKind state : kSpectrumStates) {
    spectrum.power[state] = PowerTable({kHeads, 1}, kTokens);
    spectrum.without_sinks[state] = PowerTable({kHeads, 1}, kTokens - kSinks);
    for (double& power : spectrum.power[state].values) power = 1;
  }
  const SpectrumResult drawn = spectrum_result({.model = {.name = "tiny"}, .command = "kvspectrum spectrum"}, spectrum);
  const Json heads = to_json(drawn)["states"]["k_pre"]["all_tokens"]["with_dc"]["heads"];
  EXPECT_EQ(heads[0]["energy"].size(), kHeads);
  EXPECT_EQ(heads[1]["energy"].size(), 1U);
  const draw::Chart chart = energy_share_chart("", drawn);
  const auto& places = chart.panels[0].cells->places;  // [head][layer]
  ASSERT_EQ(places.size(), kHeads);
  EXPECT_NEAR(places[0][1], 0.1, 1e-12);
  EXPECT_NEAR(places[2][0], 0.1, 1e-12);
  EXPECT_TRUE(std::isnan(places[2][1]));

  const TemporaryDirectory directory;
  write_spectrum_report(directory.path(), spectrum, drawn, false);
  std::vector<hsize_t> shape;
  const std::vector<float> power = read_array(directory.path() / "spectrum.h5", "/power/v", shape);
  EXPECT_THAT(shape, ::testing::ElementsAre(kLayers, kHeads, kTokens));
  EXPECT_EQ(power[kHeads * kTokens], 1.0F);
  EXPECT_TRUE(std::isnan(power.back()));
}

TEST(SpectrumReport, KeepsEarlierOutputsWithoutForce) {
  const TemporaryDirectory directory;
  write_file_atomically(directory.path() / "spectrum.h5", "earlier", false);
  EXPECT_THROW(write_spectrum_report(directory.path(), sample(), result(), false), Error);
  EXPECT_EQ(read_text_file(directory.path() / "spectrum.h5", 100), "earlier");
}

}  // namespace
}  // namespace kvs::test
