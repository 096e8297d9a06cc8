// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/property_tree/xml_parser.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace kvs::draw::test {

/// An element of an SVG, with its contents. @throws boost::property_tree::xml_parser_error unless it is XML
using Xml = boost::property_tree::ptree;
inline Xml parsed(const std::string& svg) {
  std::istringstream stream(svg);
  Xml xml;
  boost::property_tree::read_xml(stream, xml);
  return xml;
}

/// All elements of a name, in the order of the document.
inline void add_elements(const Xml& of, const std::string& name, std::vector<Xml>& found) {
  for (const auto& [child, content] : of) {
    if (child == name) found.push_back(content);
    add_elements(content, name, found);
  }
}
inline std::vector<Xml> elements(const Xml& of, const std::string& name) {
  std::vector<Xml> found;
  add_elements(of, name, found);
  return found;
}

/// The words of all texts, in the order of the document.
inline std::vector<std::string> texts(const std::string& svg) {
  std::vector<std::string> words;
  for (const Xml& text : elements(parsed(svg), "text")) words.push_back(text.data());
  return words;
}

inline std::string attribute(const Xml& element, const std::string& name) {
  return element.get<std::string>("<xmlattr>." + name, "");
}
inline double number(const Xml& element, const std::string& name) { return element.get<double>("<xmlattr>." + name); }

}  // namespace kvs::draw::test
