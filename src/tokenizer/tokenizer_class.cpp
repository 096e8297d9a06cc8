// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer_class.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/split_patterns.h"

namespace kvs::inline tokenizer {
namespace {

constexpr std::string_view kFast = "Fast", kClass = "Tokenizer";

std::string without_fast(std::string_view name) {
  return std::string(name.ends_with(kFast) ? name.substr(0, name.size() - kFast.size()) : name);
}

/// Classes of Transformers 5.24 that build their own steps, without the suffix "Tokenizer".
constexpr std::array<std::string_view, 91> kOwnSteps{"Albert",
                                                     "Bart",
                                                     "Barthez",
                                                     "Bartpho",
                                                     "BertGeneration",
                                                     "BertJapanese",
                                                     "Bert",
                                                     "Bertweet",
                                                     "BigBird",
                                                     "BioGpt",
                                                     "Blenderbot",
                                                     "BlenderbotSmall",
                                                     "ByT5",
                                                     "CLIP",
                                                     "CTRL",
                                                     "Camembert",
                                                     "Canine",
                                                     "Clvp",
                                                     "CodeLlama",
                                                     "Cohere",
                                                     "CpmAnt",
                                                     "Cpm",
                                                     "DPRQuestionEncoder",
                                                     "Deberta",
                                                     "DebertaV2",
                                                     "Dia",
                                                     "Esm",
                                                     "Esmc",
                                                     "FSMT",
                                                     "Flaubert",
                                                     "Funnel",
                                                     "GPT2",
                                                     "GPTNeoXJapanese",
                                                     "GPTNeoX",
                                                     "GPTSw3",
                                                     "Gemma",
                                                     "Herbert",
                                                     "LED",
                                                     "Lasr",
                                                     "LayoutLMv2",
                                                     "LayoutLMv3",
                                                     "LayoutXLM",
                                                     "Llama",
                                                     "Luke",
                                                     "Lxmert",
                                                     "M2M100",
                                                     "MBart50",
                                                     "MBart",
                                                     "MLuke",
                                                     "MPNet",
                                                     "Marian",
                                                     "MarkupLM",
                                                     "Mgpstr",
                                                     "MobileBert",
                                                     "Mvp",
                                                     "MyT5",
                                                     "Nllb",
                                                     "Nougat",
                                                     "OpenAIGPT",
                                                     "PLBart",
                                                     "Pegasus",
                                                     "Perceiver",
                                                     "Phobert",
                                                     "ProphetNet",
                                                     "Qwen2",
                                                     "Qwen3_5",
                                                     "Rag",
                                                     "Reformer",
                                                     "RemBert",
                                                     "RoCBert",
                                                     "RoFormer",
                                                     "Roberta",
                                                     "SeamlessM4T",
                                                     "Siglip2",
                                                     "Siglip",
                                                     "Speech2Text",
                                                     "SpeechT5",
                                                     "Splinter",
                                                     "T5",
                                                     "Tapas",
                                                     "Tipsv2",
                                                     "Udop",
                                                     "VideoPrism",
                                                     "Vits",
                                                     "Wav2Vec2CTC",
                                                     "Wav2Vec2PhonemeCTC",
                                                     "Whisper",
                                                     "XGLM",
                                                     "XLMRoberta",
                                                     "XLM",
                                                     "XLNet"};

/// The class that Transformers registers for a model type that this program supports; empty if there is none.
struct Registered {
  std::string_view model_type, name;
  bool replaces_named = false;  // the class that a folder names is known to be wrong
};
constexpr std::string_view kBackend = "TokenizersBackend";
constexpr std::array kRegistered{Registered{"mistral", kBackend},           Registered{"qwen2", "Qwen2Tokenizer", true},
                                 Registered{"qwen3", "Qwen2Tokenizer"},     Registered{"gemma2", "GemmaTokenizer"},
                                 Registered{"gemma3", "GemmaTokenizer"},    Registered{"gemma3_text", "GemmaTokenizer"},
                                 Registered{"phi3", kBackend, true},        Registered{"olmo2", kBackend},
                                 Registered{"gpt_neox", "GPTNeoXTokenizer"}};

/// Returns `name` if it is a class with its own steps, otherwise "".
std::string with_own_steps(const std::string& name) {
  if (!name.ends_with(kClass)) return {};
  const std::string_view start = std::string_view(name).substr(0, name.size() - kClass.size());
  return std::ranges::find(kOwnSteps, start) == kOwnSteps.end() ? std::string() : name;
}

bool has_byte_level(const Json& step) {
  if (!step.is_object()) return false;
  if (step.value("type", Json()) == "ByteLevel") return true;
  for (const char* list : {"normalizers", "pretokenizers", "processors", "decoders"})
    if (step.contains(list) && step.at(list).is_array() && std::ranges::any_of(step.at(list), has_byte_level))
      return true;
  return false;
}

bool names_byte_level(const Json& tokenizer) {
  constexpr std::array kSteps{"normalizer", "pre_tokenizer", "post_processor", "decoder"};
  return tokenizer.is_object() && std::ranges::any_of(kSteps, [&](const char* step) {
           return tokenizer.contains(step) && has_byte_level(tokenizer.at(step));
         });
}

/// The steps that a class builds around the vocabulary and merges of a BPE.
struct ClassSteps {
  Json normalizer = nullptr, pre_tokenizer = nullptr;
  bool fuse_unk = false, byte_fallback = false, has_unknown = false;
  std::vector<std::pair<std::string_view, std::string_view>> tokens = {};  // used for names that no file sets
  bool adds_special_again = false;                                         // without the flags of the files
};

Json byte_level_step(bool prefix, bool split) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", prefix}, {"trim_offsets", true}, {"use_regex", split}};
}

Json split_then_byte_level(std::string_view pattern, bool prefix) {
  return {{"type", "Sequence"},
          {"pretokenizers",
           {{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}},
            byte_level_step(prefix, false)}}};
}

/// Source: __init__ of each class in transformers/models/*/tokenization_*.py, version 5.24.
std::optional<ClassSteps> steps_of(const std::string& name, const TokenizerSettings& settings) {
  const Json nfc{{"type", "NFC"}};
  const bool prefix = settings.add_prefix_space.value_or(false);
  const std::string_view end = "<|endoftext|>";
  if (name == "LlamaTokenizer") {
    const char* scheme = !settings.add_prefix_space.value_or(true) ? "never" : settings.legacy ? "always" : "first";
    return ClassSteps{.pre_tokenizer = {{"type", "Metaspace"},
                                        {"replacement", kSpaceMarker},
                                        {"prepend_scheme", scheme},
                                        {"split", false}},
                      .fuse_unk = true,
                      .byte_fallback = true,
                      .tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}}};
  }
  if (name == "GemmaTokenizer")
    return ClassSteps{.normalizer = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMarker}},
                      .fuse_unk = true,
                      .byte_fallback = true,
                      .has_unknown = true,
                      .tokens = {{"bos_token", "<bos>"},
                                 {"eos_token", "<eos>"},
                                 {"unk_token", "<unk>"},
                                 {"pad_token", "<pad>"},
                                 {"mask_token", "<mask>"}}};
  if (name == "Qwen2Tokenizer" || name == "Qwen3_5Tokenizer")
    return ClassSteps{
        .normalizer = nfc,
        .pre_tokenizer = split_then_byte_level(name == "Qwen2Tokenizer" ? patterns::kQwen2 : patterns::kQwen35, prefix),
        .tokens = {{"eos_token", end}, {"unk_token", end}, {"pad_token", end}},
        .adds_special_again = name == "Qwen2Tokenizer"};
  if (name == "GPT2Tokenizer" || name == "GPTNeoXTokenizer") {
    ClassSteps steps{.pre_tokenizer = byte_level_step(prefix, true),
                     .tokens = {{"bos_token", end}, {"eos_token", end}, {"unk_token", end}}};
    if (name == "GPTNeoXTokenizer") {
      steps.normalizer = nfc;
      steps.tokens.emplace_back("pad_token", "<|padding|>");
    }
    return steps;
  }
  return std::nullopt;
}

void build_model(Json& model, const ClassSteps& steps, const TokenizerSettings& settings) {
  for (const char* option : {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "unk_token"})
    model[option] = nullptr;
  if (const AddedSpec* unknown = settings.find_named("unk_token"); steps.has_unknown && unknown != nullptr)
    model["unk_token"] = unknown->content;
  model["fuse_unk"] = steps.fuse_unk;
  model["byte_fallback"] = steps.byte_fallback;
  model["ignore_merges"] = false;
}

/// Adds them again at the end as plain special tokens, which removes their flags.
void add_special_again(TokenizerSettings& settings) {
  std::vector<AddedSpec> all = settings.named_in_order();
  all.insert(all.end(), settings.extra.begin(), settings.extra.end());
  for (const AddedSpec& token : all) settings.again.push_back(AddedSpec::special_text(token.content));
}

}  // namespace

std::string auto_tokenizer_class(const TokenizerClassNames& names, const Json& tokenizer) {
  const auto row = std::ranges::find(kRegistered, names.model_type, &Registered::model_type);
  const Registered registered = row == kRegistered.end() ? Registered{} : *row;
  const std::string named = without_fast(names.named.empty() ? names.of_model : names.named);
  if (named == "LlamaTokenizer" && !registered.replaces_named && names_byte_level(tokenizer)) return {};
  if (named.empty() || named == registered.name) return with_own_steps(std::string(registered.name));
  if (registered.name.empty()) return with_own_steps(named);
  if (registered.name == kBackend) return {};
  return with_own_steps(registered.replaces_named ? std::string(registered.name) : named);
}

void apply_tokenizer_class(Json& tokenizer, TokenizerSettings& settings) {
  if (settings.class_name.empty() || !tokenizer.is_object() || !tokenizer.contains("model")) return;
  const std::optional<ClassSteps> steps = steps_of(settings.class_name, settings);
  Json& model = tokenizer["model"];
  if (!steps || !model.is_object() || model.value("type", Json("BPE")) != "BPE") {
    settings.notes.push_back("Transformers' class " + settings.class_name +
                             " has steps of its own; those of tokenizer.json are taken, so that ids may differ");
    return;
  }
  for (const auto& [name, token] : steps->tokens)
    if (!settings.has_named(name)) settings.set_named(name, AddedSpec::special_text(std::string(token)));
  build_model(model, *steps, settings);
  tokenizer["normalizer"] = steps->normalizer;
  tokenizer["pre_tokenizer"] = steps->pre_tokenizer;
  tokenizer["added_tokens"] = Json::array();  // the tokens of `settings` replace them
  if (settings.class_name == "GPTNeoXTokenizer") tokenizer["post_processor"] = nullptr;  // it asks for no BOS
  if (steps->adds_special_again) add_special_again(settings);
}

}  // namespace kvs::inline tokenizer
