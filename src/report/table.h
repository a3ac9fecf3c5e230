// A table as data, written as CSV, Markdown, LaTeX and HTML.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cautious::report {

struct Table {
  std::string name;   // of its files: letters, digits, '_'
  std::string title;  // one line
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;      // as long as head; numbers are right-aligned
  std::string note;                                // below it; may be empty
  std::vector<std::vector<std::string>> csv = {};  // for CSV instead, in full precision: head, then rows; empty: the same
};

std::string to_csv(const Table& table);
// The rows that such a text has. One whose last quoted cell does not end is an Error(Fault::data).
std::vector<std::vector<std::string>> rows_of_csv(std::string_view text);
std::string to_markdown(const Table& table);
std::string to_latex(const Table& table);  // booktabs
std::string to_html(const Table& table);

}  // namespace cautious::report
