#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "draw/chart.h"

namespace kvs {

/// How well what is hidden at a depth of a text of some length is found.
struct RetrievalMap {
  /// One measure of it.
  struct Values {
    std::string key, title;
    bool is_share = true;                             // from 0 to 1; else a log-likelihood
    std::vector<std::vector<double>> values;          // [depth][length]; not a number: not asked
    std::vector<std::vector<std::string>> told = {};  // [depth][length]; empty: the values alone
  };
  std::string heading;
  std::vector<std::size_t> lengths;  // tokens, ascending
  std::vector<double> depths;        // 0 … 1, ascending
  std::vector<Values> maps;
};

/// Maps of depth × length.
draw::Chart retrieval_chart(const RetrievalMap& map);

}  // namespace kvs
