// SPDX-License-Identifier: Apache-2.0
#include "calibrate/config/schema_check.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "calibrate/config/config.h"
#include "calibrate/config/schema_violation.h"

namespace kvs::inline calibrate {
namespace {

std::unique_ptr<valijson::Schema> compiled() {
  const auto document = nlohmann::json::parse(config_schema());
  auto schema = std::make_unique<valijson::Schema>();
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(document), *schema);
  return schema;
}

/// valijson reads integers as signed ones.
void widen_large_numbers(nlohmann::json& value) {
  if (value.is_structured())
    for (nlohmann::json& part : value) widen_large_numbers(part);
  else if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
    value = value.get<double>();
}

}  // namespace

void check_schema(const Json& config, const std::string& where) {
  // valijson's adapter needs nlohmann::json; the document is small.
  static const std::unique_ptr<valijson::Schema> schema = compiled();
  auto target = nlohmann::json::parse(config.dump());
  widen_large_numbers(target);
  valijson::Validator validator;
  valijson::ValidationResults results;
  if (validator.validate(*schema, valijson::adapters::NlohmannJsonAdapter(target), &results)) return;
  // The error with the longest path is the most specific one.
  valijson::ValidationResults::Error error, deepest;
  while (results.popError(error))
    if (deepest.description.empty() || error.context.size() > deepest.context.size()) deepest = error;
  fail_schema(parsed_config_schema(), config, where, deepest.context, deepest.description);
}

}  // namespace kvs::inline calibrate
