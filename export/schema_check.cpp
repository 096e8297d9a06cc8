#include "export/schema_check.h"

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "export/config.h"
#include "export/schema_violation.h"

namespace kvs {

void check_schema(const Json& config, const std::string& where) {
  // valijson's adapter takes nlohmann::json; both documents are small.
  const auto schema_document = nlohmann::json::parse(config_schema());
  const auto target = nlohmann::json::parse(config.dump());
  valijson::Schema schema;
  valijson::SchemaParser parser;
  const valijson::adapters::NlohmannJsonAdapter schema_adapter(schema_document);
  parser.populateSchema(schema_adapter, schema);
  valijson::Validator validator;
  valijson::ValidationResults results;
  if (validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(target), &results)) return;
  // The most specific complaint is the one with the longest path.
  valijson::ValidationResults::Error error, deepest;
  while (results.popError(error))
    if (deepest.description.empty() || error.context.size() > deepest.context.size()) deepest = error;
  fail_schema(parse_json(config_schema(), "schema"), config, where, deepest.context, deepest.description);
}

}  // namespace kvs
