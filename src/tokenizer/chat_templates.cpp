// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/chat_templates.h"

#include "io/descriptor.h"
#include "io/file.h"
#include "io/python_json.h"

namespace kvs::inline tokenizer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxTemplateBytes = std::size_t{16} << 20;
constexpr const char* kDefaultTemplate = "default";

std::map<std::string, std::string> templates_of_config(const fs::path& path) {
  std::map<std::string, std::string> templates;
  if (!is_there(path)) return templates;
  const Json document =
      parse_python_json(read_text_file(path, kMaxTemplateBytes), path.string(), {.bytes = kMaxTemplateBytes});
  const JsonCursor root(document, path.string());
  if (!root.has("chat_template")) return templates;
  const JsonCursor given = root.at("chat_template");
  if (given.value().is_string()) {
    templates[kDefaultTemplate] = given.string();
  } else if (given.value().is_object()) {
    for (const std::string& name : given.keys()) templates[name] = given.at(name).string();
  } else {
    for (std::size_t i = 0; i < given.array_size(); ++i)
      templates[given.at(i).at("name").string()] = given.at(i).at("template").string();
  }
  return templates;
}

}  // namespace

std::map<std::string, std::string> read_chat_templates(const fs::path& folder) {
  std::map<std::string, std::string> templates;
  if (const fs::path path = folder / "chat_template.jinja"; is_there(path))
    templates[kDefaultTemplate] = read_text_file(path, kMaxTemplateBytes);
  if (const fs::path more = folder / "additional_chat_templates"; fs::is_directory(more))
    for (const fs::directory_entry& entry : fs::directory_iterator(more))
      if (entry.path().extension() == ".jinja")
        templates[entry.path().stem().native()] = read_text_file(entry.path(), kMaxTemplateBytes);
  return templates.empty() ? templates_of_config(folder / "tokenizer_config.json") : templates;
}

}  // namespace kvs::inline tokenizer
