// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "export/report/markup.h"

namespace kvs::inline report {

/// The words of a table cell, and its sort key if the cell is a number.
struct Cell {
  // Implicit: a row can be written as a list of words and {words, number} pairs.
  Cell(std::string shown) : words(std::move(shown)) {}  // NOLINT(google-explicit-constructor)
  Cell(const char* shown) : words(shown) {}             // NOLINT(google-explicit-constructor)
  Cell(std::string shown, double value) : words(std::move(shown)), number(value) {}
  /// Returns the cell of a missing value: a dash, sorted last in either order.
  static Cell missing();
  bool is_missing() const { return !number && words == missing().words; }

  std::string words;
  std::optional<double> number;
};

/// Returns the cells of a number, of a share such as "12.4 %", and of a relative change such as "+1.2 %".
Cell number_cell(double value);
Cell share_cell(double share);
Cell change_cell(const std::optional<double>& change);
/// Returns the cell of an interval of changes, sorted by its lower end.
Cell interval_cell(const std::optional<std::pair<double, double>>& interval);

/// Returns the cell of a cache's share of the full cache's bytes, such as "12.4 %", plus the bytes that all sequences
/// share.
Cell bytes_cell(double share, double shared_bytes);

/// A table with a caption. The first column names the rows. A click on a header sorts the rows, if there are several.
class Table {
 public:
  struct Column {
    std::string name;
    bool numeric = true;
    std::string hint = "";  // meaning of the name
  };
  Table(std::string caption, std::vector<Column> columns);

  /// Adds a row.
  /// @param style  style of the row: "front-row", "stopped" or none
  /// @throws Error kInput unless there is a cell for every column: the lists of a file may differ in length
  void row(const std::vector<Cell>& cells, const std::string& style = "");
  bool empty() const noexcept { return rows_.empty(); }
  /// Returns the table without the columns in which every cell is missing.
  Markup markup() const;

 private:
  std::string caption_;
  std::vector<Column> columns_;
  struct Row {
    std::vector<Cell> cells;
    std::string style;
  };
  std::vector<bool> columns_with_values() const;
  Markup heads(const std::vector<bool>& shown) const;
  Markup body(const std::vector<bool>& shown) const;
  std::vector<Row> rows_;
};

}  // namespace kvs::inline report
