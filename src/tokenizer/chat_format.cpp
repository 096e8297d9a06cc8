// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/chat_format.h"

#include <array>
#include <cstddef>
#include <optional>

#include "core/error.h"
#include "core/utf8.h"
#include "tokenizer/chat_template_text.h"

namespace kvs::inline tokenizer {
namespace {

constexpr std::string_view kContent = "message['content']", kTrim = "|trim";

/// str.strip() of Python, for ASCII.
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\v\f\r\x1c\x1d\x1e\x1f";
  const std::size_t first = text.find_first_not_of(kSpaces);
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

void add_content(std::string_view content, ChatText& chat) {
  const std::size_t begin = chat.text.size();
  chat.text += content;
  if (!content.empty()) chat.contents.push_back({begin, chat.text.size()});
}

/// Returns the strings in what follows the last `add_generation_prompt`.
std::vector<std::string> generation_strings(std::string_view plain) {
  std::vector<std::string> strings;
  std::size_t at = plain.rfind("add_generation_prompt");
  if (at == std::string_view::npos) return strings;
  while ((at = plain.find('\'', at)) != std::string_view::npos) {
    const std::size_t end = plain.find('\'', at + 1);
    if (end == std::string_view::npos) break;
    strings.emplace_back(plain.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return strings;
}

/// Returns the system message that a ChatML template writes by itself.
std::string default_chatml_system(std::string_view plain) {
  constexpr std::string_view kBefore = "<|im_start|>system\n";
  for (std::size_t at = 0; (at = plain.find(kBefore, at)) != std::string_view::npos;) {
    at += kBefore.size();
    const std::string_view content = plain.substr(at, plain.find("<|im_end|>", at) - at);
    if (!content.empty() && content.find_first_of("'{}") == std::string_view::npos) return std::string(content);
  }
  return "";
}

}  // namespace

/// Recognises the formats. Every function returns nothing if the template is another one.
class ChatFormats {
 public:
  ChatFormats(std::string_view text, std::string_view bos)
      : plain_(plain_template(text)), strings_(generation_strings(plain_)) {
    if (has("bos_token")) begin_ = bos;
  }

  std::optional<ChatFormat> find() const {
    if (has("{{~")) return std::nullopt;  // text outside of expressions
    for (const auto& recognise : {&ChatFormats::chatml, &ChatFormats::llama3, &ChatFormats::gemma,
                                  &ChatFormats::mistral, &ChatFormats::phi3, &ChatFormats::phi4})
      if (std::optional<ChatFormat> format = (this->*recognise)()) return format;
    return std::nullopt;
  }

 private:
  bool has(std::string_view part) const { return plain_.find(part) != std::string::npos; }
  bool generates(std::string_view beginning) const { return strings_.size() == 1 && strings_.front() == beginning; }
  ChatFormat named(std::string name) const {
    ChatFormat format;
    format.name_ = std::move(name);
    format.begin_ = begin_;
    return format;
  }

  /// SmolLM2, Qwen 1.5 to 3, and others. Qwen 3 drops the thoughts of former turns.
  std::optional<ChatFormat> chatml() const {
    const std::string_view begin = "<|im_start|>assistant\n";
    const bool thinks = has("enable_thinking");
    const bool turns = has("'<|im_start|>'+message['role']+'\n'+message['content']+'<|im_end|>\n'") ||
                       (thinks && has("'<|im_start|>'+message['role']+'\n'+content+'<|im_end|>\n'"));
    const bool generated = generates(begin) || (thinks && has("enable_thinkingisfalse") && strings_.size() == 2 &&
                                                strings_[0] == begin && strings_[1] == "<think>\n\n</think>\n\n");
    if (!turns || !generated) return std::nullopt;
    ChatFormat format = named("ChatML");
    for (const auto& [turn, role] : {std::pair(&format.system_, "system"), std::pair(&format.user_, "user"),
                                     std::pair(&format.assistant_, "assistant")})
      *turn = {"<|im_start|>" + std::string(role) + '\n', "<|im_end|>\n"};
    format.default_system_ = default_chatml_system(plain_);
    format.generation_ = begin;
    format.drops_thoughts_ = thinks;
    return format;
  }

  /// Llama 3; from 3.1 on a system turn always states dates. A template that asks for today's date (3.2, 3.3) has the
  /// date of 3.1 for engines without a clock.
  std::optional<ChatFormat> llama3() const {
    const std::string_view begin = "<|start_header_id|>assistant<|end_header_id|>\n\n";
    if (!has("'<|start_header_id|>'+message['role']+'<|end_header_id|>\n\n'+message['content']|trim+'<|eot_id|>'") ||
        !generates(begin))
      return std::nullopt;
    ChatFormat format = named("Llama 3");
    for (const auto& [turn, role] : {std::pair(&format.system_, "system"), std::pair(&format.user_, "user"),
                                     std::pair(&format.assistant_, "assistant")})
      *turn = {"<|start_header_id|>" + std::string(role) + "<|end_header_id|>\n\n", "<|eot_id|>"};
    format.trims_ = format.trims_assistant_ = format.trims_system_ = true;
    format.generation_ = begin;
    if (!has("Cutting Knowledge Date")) return format;
    if (!has("{{'Cutting Knowledge Date: December 2023\n'}}{{'Today Date: '+date_string+'\n\n'}}") ||
        !has("setdate_string='26 Jul 2024'"))
      return std::nullopt;
    format.preamble_ = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";
    return format;
  }

  /// Gemma 1 to 3.
  std::optional<ChatFormat> gemma() const {
    if (!has("'<start_of_turn>'+role+'\n'") || !has("<end_of_turn>\n'}}") || !has("message['content']|trim") ||
        !generates("<start_of_turn>model\n"))
      return std::nullopt;
    ChatFormat format = named("Gemma");
    format.user_ = {"<start_of_turn>user\n", "<end_of_turn>\n"};
    format.assistant_ = {"<start_of_turn>model\n", "<end_of_turn>\n"};
    format.place_ = ChatFormat::System::kRefused;
    if (has("first_user_prefix")) {
      if (!has("setfirst_user_prefix=messages[0]['content']+'\n\n'") ||
          !has("'<start_of_turn>'+role+'\n'+(first_user_prefixifloop.firstelse'')"))
        return std::nullopt;
      format.place_ = ChatFormat::System::kFirstUser;
    } else if (!has("System role not supported")) {
      return std::nullopt;
    }
    format.trims_ = format.trims_assistant_ = true;
    format.generation_ = "<start_of_turn>model\n";
    return format;
  }

  /// Mistral 7B v0.1 to v0.3, Mixtral and Nemo, which differ in blanks.
  std::optional<ChatFormat> mistral() const {
    if (has("SYSTEM_PROMPT") || has("<<SYS>>")) return std::nullopt;
    ChatFormat format = named("Mistral");
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kUser{
        {{" [INST] ", " [/INST]"}, {"[INST] ", " [/INST]"}, {"[INST] ", "[/INST]"}, {"[INST]", "[/INST]"}}};
    for (const auto& [before, after] : kUser)
      if (const std::string written =
              "{{'" + std::string(before) + "'+message['content']+'" + std::string(after) + "'}}";
          format.user_.before.empty() && has(written))
        format.user_ = {std::string(before), std::string(after)};
    bool found = false;
    for (const std::string_view before : {" ", ""})
      for (const std::string_view trim : {std::string_view(""), kTrim})
        for (const std::string_view between : {"", " "})
          for (const std::string_view after : {"", " "}) {
            const auto joined = [](std::string_view blank) { return "'" + std::string(blank) + "'"; };
            std::string written = "{{" + (before.empty() ? "" : joined(before) + "+") + std::string(kContent) +
                                  std::string(trim) + (between.empty() ? "" : "+" + joined(between)) + "+eos_token" +
                                  (after.empty() ? "" : "+" + joined(after)) + "}}";
            if (found || !has(written)) continue;
            found = true;
            format.assistant_ = {std::string(before), std::string(between) + "</s>" + std::string(after)};
            format.trims_assistant_ = !trim.empty();
          }
    if (!found || format.user_.before.empty() || !strings_.empty()) return std::nullopt;
    const std::string with_system = "'" + format.user_.before + "'+system_message+'\n\n'+message['content']+'";
    if (!has("system_message"))
      format.place_ = ChatFormat::System::kRefused;
    else if (has("loop.firstandsystem_messageisdefined") && has(with_system))
      format.place_ = ChatFormat::System::kFirstUser;
    else if (has("loop.lastandsystem_messageisdefined") && has(with_system))
      format.place_ = ChatFormat::System::kLastUser;
    else
      return std::nullopt;
    return format;
  }

  /// Phi-3 and Phi-3.5; without line ends Phi-4-mini.
  std::optional<ChatFormat> phi3() const {
    const bool lines = has("'<|user|>\n'+message['content']+'<|end|>\n'");
    const bool one_expression = has("'<|'+message['role']+'|>'+message['content']+'<|end|>'");
    if (lines == one_expression || !generates(lines ? "<|assistant|>\n" : "<|assistant|>")) return std::nullopt;
    if (lines && !has("'<|assistant|>\n'+message['content']+'<|end|>\n'")) return std::nullopt;
    ChatFormat format = named("Phi");
    const std::string end = lines ? "\n" : "";
    format.system_ = {"<|system|>" + end, "<|end|>" + end};
    format.user_ = {"<|user|>" + end, "<|end|>" + end};
    format.assistant_ = {"<|assistant|>" + end, "<|end|>" + end};
    if (lines && !has("'<|system|>\n'+message['content']+'<|end|>\n'")) format.place_ = ChatFormat::System::kRefused;
    format.generation_ = format.assistant_.before;
    return format;
  }

  /// Phi-4.
  std::optional<ChatFormat> phi4() const {
    const std::string_view begin = "<|im_start|>assistant<|im_sep|>";
    for (const char* role : {"system", "user", "assistant"})
      if (!has("{{'<|im_start|>" + std::string(role) + "<|im_sep|>'+message['content']+'<|im_end|>'}}"))
        return std::nullopt;
    if (!generates(begin)) return std::nullopt;
    ChatFormat format = named("Phi");
    format.system_ = {"<|im_start|>system<|im_sep|>", "<|im_end|>"};
    format.user_ = {"<|im_start|>user<|im_sep|>", "<|im_end|>"};
    format.assistant_ = {std::string(begin), "<|im_end|>"};
    format.generation_ = begin;
    return format;
  }

  std::string plain_, begin_;
  std::vector<std::string> strings_;  // of the generation prompt
};

ChatFormat ChatFormat::of_template(std::string_view text, const std::string& where, std::string_view bos) {
  constexpr std::size_t kShown = 40;
  if (text.empty())
    throw Error(ErrorCode::kUnsupported, where,
                "found no chat template, expected one of ChatML, Llama 3, Gemma, "
                "Mistral or Phi");
  if (std::optional<ChatFormat> format = ChatFormats(text, bos).find()) return *std::move(format);
  throw Error(ErrorCode::kUnsupported, where,
              "found a chat template that begins with \"" + printable(text.substr(0, kShown)) +
                  "\", expected one of ChatML, Llama 3, Gemma, Mistral or Phi");
}

ChatText ChatFormat::render(std::span<const ChatMessage> messages, const std::string& where) const {
  const auto trim = [](bool trims, std::string_view text) { return std::string(trims ? trimmed(text) : text); };
  std::optional<std::string> system;
  if (!messages.empty() && messages.front().role == "system") {
    system = trim(trims_system_, messages.front().content);
    messages = messages.subspan(1);
  }
  if (messages.empty() || messages.size() % 2 == 0)
    throw Error(ErrorCode::kInput, where,
                "found " + std::to_string(messages.size()) +
                    " messages besides the system's, expected an odd number: user first "
                    "and last");
  if (system && place_ == System::kRefused)
    throw Error(ErrorCode::kUnsupported, where,
                "found a system message, expected none: the model's chat template (" + name_ + ") has no place for it");
  ChatText chat{begin_};
  if (place_ == System::kOwnTurn && (system || !preamble_.empty() || !default_system_.empty())) {
    chat.text += system_.before + preamble_;
    system ? add_content(*system, chat) : void(chat.text += default_system_);
    chat.text += system_.after;
  }
  for (std::size_t n = 0; n < messages.size(); ++n) {
    const bool is_user = n % 2 == 0;
    const auto& [role, content] = messages[n];
    if (role != (is_user ? "user" : "assistant"))
      throw Error(ErrorCode::kInput, where,
                  "found role '" + printable(role) + "', expected " + (is_user ? "user" : "assistant") +
                      ": an optional system message, then user and assistant in turns");
    if (!is_user && drops_thoughts_ && content.find("</think>") != std::string::npos)
      throw Error(ErrorCode::kUnsupported, where, "found an assistant's message with </think>, expected one without");
    const bool with_system =
        system && is_user &&
        ((place_ == System::kFirstUser && n == 0) || (place_ == System::kLastUser && n + 1 == messages.size()));
    const Turn& turn = is_user ? user_ : assistant_;
    chat.text += turn.before;
    if (with_system) {
      add_content(*system, chat);
      chat.text += "\n\n";
    }
    add_content(trim(is_user ? trims_ : trims_assistant_, content), chat);
    chat.text += turn.after;
  }
  chat.text += generation_;
  return chat;
}

}  // namespace kvs::inline tokenizer
