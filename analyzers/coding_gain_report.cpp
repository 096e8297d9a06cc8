#include "analyzers/coding_gain_report.h"

#include <array>
#include <cstdio>

#include "analyzers/method_family.h"

namespace kvs {
namespace {

/// Steps as one list per quantity.
class StepColumns {
 public:
  explicit StepColumns(bool with_tokens) : with_tokens_(with_tokens) {}
  void add(const StepGains& steps) {
    mean_.push_back(steps.mean);
    channels_.push_back(steps.channels);
    head_.push_back(steps.head);
    tokens_.push_back(steps.tokens);
    tokens_by_channel_.push_back(steps.tokens_by_channel);
  }
  Json json() const {
    Json columns{{"mean", mean_}, {"channels", channels_}, {"head", head_}};
    if (with_tokens_) {
      columns["tokens"] = tokens_;
      columns["tokens_by_channel"] = tokens_by_channel_;
    }
    return columns;
  }

 private:
  bool with_tokens_;
  Json mean_ = Json::array(), channels_ = Json::array(), head_ = Json::array(), tokens_ = Json::array(),
       tokens_by_channel_ = Json::array();
};

/// {layers, heads} of a state, weighted or not.
Json steps_json(const std::vector<LayerGains>& gains, StateKind state, bool weighted) {
  const bool with_tokens = !weighted && state != StateKind::kKPost;
  StepColumns layers(with_tokens);
  Json heads = Json::array();
  for (const LayerGains& layer : gains) {
    const StateGains& of_state = layer.states[state];
    layers.add(weighted ? *of_state.weighted_layer : of_state.layer);
    StepColumns columns(with_tokens);
    for (const StepGains& head : weighted ? of_state.weighted_heads : of_state.heads) columns.add(head);
    heads.push_back(columns.json());
  }
  return {{"layers", layers.json()}, {"heads", heads}};
}

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json gains_json(const std::vector<LayerGains>& gains, const StateSet& states) {
  Json json = Json::object();
  for (const StateKind state : states) {
    Json& of_state = json[std::string(name_of(state))] = steps_json(gains, state, false);
    if (state != StateKind::kKPost) {
      Json& whole = of_state["layers"]["layer"] = Json::array();
      for (const LayerGains& layer : gains) whole.push_back(optional_json(layer.states[state].whole));
    }
    Json& idle = of_state["layers"]["idle_share"] = Json::array();
    for (const LayerGains& layer : gains) idle.push_back(layer.states[state].idle_share);
    if (gains.front().states[state].weighted_layer) of_state["weighted"] = steps_json(gains, state, true);
  }
  Json& joint = json["joint"] = Json::array();
  for (const LayerGains& layer : gains) joint.push_back(optional_json(layer.joint));
  return json;
}

std::string digits(double value, const char* format = "%.2f") {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

/// "0.08 bit of k_pre and 0.06 bit of v", or shares in per cent.
std::string saved(const FamilyFinding& finding) {
  const bool share = finding.family == MethodFamily::kLowRank;
  std::string text;
  for (const auto& [state, value] : finding.saves) {
    if (!text.empty()) text += " and ";
    text += share ? digits(100 * value, "%.0f") + " %" : digits(value) + " bit";
    text += " of " + std::string(name_of(state));
  }
  return text;
}

std::string sentence(const FamilyFinding& finding, const ModelGains& gains) {
  const std::string verdict(kVerdictNames[static_cast<std::size_t>(finding.verdict)]), bits = saved(finding);
  switch (finding.family) {
    case MethodFamily::kMean:
      return "Subtracting each channel's mean " + verdict + ": it saves " + bits + ".";
    case MethodFamily::kTokens:
      return "Dropping frequencies along tokens " + verdict + ": without the means a DCT of " +
             std::to_string(
                 kBlockTokens[gains.removed.front().states[finding.saves.front().first].layer.tokens.size() - 1]) +
             " tokens saves " + bits + ".";
    case MethodFamily::kChannels:
      return "Other bits for other channels " + verdict + ": they save " + bits + ".";
    case MethodFamily::kTransform:
      return "A transform across channels " + verdict + ": a KLT saves " + bits + ".";
    case MethodFamily::kLowRank:
      return "Low rank " + verdict + ": at " + digits(kIdleRate, "%g") + " bits a real no bits go to " + bits +
             ", in components of the KLT of a head.";
    case MethodFamily::kJoint:
      return "Coding keys and values together " + verdict + ": it saves " + digits(finding.saves.front().second) +
             " bit of both.";
    case MethodFamily::kPlain:
      return "Plain quantisation " + verdict + " alone: it leaves " + bits + ".";
  }
  return {};
}

std::string blocks_of(const StepGains& steps, std::vector<double> StepGains::*values) {
  std::string text;
  for (const double value : steps.*values) text += (text.empty() ? "" : "/") + digits(value);
  return text;
}

/// Means over layers of what was measured, for the table.
StepGains mean_steps(const std::vector<LayerGains>& gains, StateKind state) {
  const auto layers = static_cast<double>(gains.size());
  StepGains mean = gains.front().states[state].layer;
  mean.mean = mean.channels = mean.head = 0;
  mean.tokens.assign(mean.tokens.size(), 0);
  for (const LayerGains& layer : gains) {
    const StepGains& steps = layer.states[state].layer;
    mean.mean += steps.mean / layers;
    mean.channels += steps.channels / layers;
    mean.head += steps.head / layers;
    for (std::size_t n = 0; n < mean.tokens.size(); ++n) mean.tokens[n] += steps.tokens[n] / layers;
  }
  return mean;
}

std::string table_row(const ModelGains& gains, StateKind state) {
  const StepGains steps = mean_steps(gains.removed, state);
  double whole = 0, joint = 0;
  for (const LayerGains& layer : gains.removed) {
    whole += layer.states[state].whole.value_or(0) / static_cast<double>(gains.removed.size());
    joint += layer.joint.value_or(0) / static_cast<double>(gains.removed.size());
  }
  const bool coded_whole = gains.removed.front().states[state].whole.has_value();
  const bool coded_jointly = state != StateKind::kKPost && gains.removed.front().joint.has_value();
  std::array<char, 160> line{};
  std::snprintf(line.data(), line.size(), "  %-8s %6.2f %9.2f %9.2f %10s %10s  %s\n",
                std::string(name_of(state)).c_str(), steps.mean, steps.channels, steps.head,
                coded_whole ? digits(whole).c_str() : "-", coded_jointly ? digits(joint).c_str() : "-",
                steps.tokens.empty() ? "-" : blocks_of(steps, &StepGains::tokens).c_str());
  return line.data();
}

}  // namespace

Json coding_gain_json(const ModelGains& gains) {
  Json json{{"tokens", gains.tokens},           {"first_token", gains.shape.first_token},
            {"kv_heads", gains.shape.kv_heads}, {"head_dim", gains.shape.head_dim},
            {"finest_bits", kFinestBits},       {"left_out", gains.left_out}};
  if (gains.removed.empty()) return json;
  const GainOptimism noise = gain_optimism(gains);
  json["block_tokens"] =
      std::vector(kBlockTokens.begin(), kBlockTokens.begin() + static_cast<std::ptrdiff_t>(noise.tokens.size()));
  json["mean_removed"] = gains_json(gains.removed, gains.shape.states);
  json["mean_kept"] = gains_json(gains.kept, gains.shape.states);
  json["optimism"] = {{"channels", noise.channels},
                      {"head", noise.head},
                      {"layer", noise.whole},
                      {"joint", noise.joint},
                      {"tokens", noise.tokens}};
  Json& families = json["families"] = Json::array();
  for (const FamilyFinding& finding : family_findings(gains)) {
    Json saves = Json::object();
    for (const auto& [state, value] : finding.saves) saves[std::string(name_of(state))] = value;
    families.push_back({{"family", kMethodFamilyNames[static_cast<std::size_t>(finding.family)]},
                        {"saves", saves},
                        {"verdict", kVerdictNames[static_cast<std::size_t>(finding.verdict)]},
                        {"words", sentence(finding, gains)}});
  }
  return json;
}

std::string coding_gain_text(const ModelGains& gains) {
  std::string text;
  if (!gains.removed.empty()) {
    text = "coding gain, bits a real (means over layers), from " + std::to_string(gains.tokens) + " tokens\n" +
           "             mean  channels  KLT head  KLT layer  KLT joint  DCT of tokens (";
    const std::size_t blocks = gain_optimism(gains).tokens.size();
    for (std::size_t n = 0; n < blocks; ++n) text += (n == 0 ? "" : "/") + std::to_string(kBlockTokens[n]);
    text += ")\n";
    for (const StateKind state : gains.shape.states) text += table_row(gains, state);
    for (const FamilyFinding& finding : family_findings(gains)) text += "  " + sentence(finding, gains) + "\n";
  }
  for (const std::string& missing : gains.left_out) text += "  left out: " + missing + "\n";
  return text;
}

}  // namespace kvs
