#include "report/table.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include <cautious/error.h>

#include "report/svg.h"

namespace cautious::report {
namespace {

using Cells = std::vector<std::string>;

bool says_nothing(std::string_view cell) { return cell.empty() || cell == "-"; }

// A number, also with a sign, a bound, a unit sign or as an interval: "-0.01", "< 0.001", "[1, 2]", "2 +/- 1", "5%".
bool is_number(std::string_view cell) {
  if (cell == "nan" || cell == "inf" || cell == "-inf") return true;
  const bool digit = cell.find_first_of("0123456789") != std::string_view::npos;
  return digit && cell.find_first_not_of("0123456789+-./,eE[]<> %") == std::string_view::npos && cell.front() != 'e';
}

std::vector<bool> numeric_columns(const Table& table) {
  std::vector<bool> result(table.head.size(), false);
  for (std::size_t column = 0; column < result.size(); ++column) {
    const auto fits = [&](const Cells& row) { return says_nothing(row[column]) || is_number(row[column]); };
    const auto speaks = [&](const Cells& row) { return !says_nothing(row[column]); };
    result[column] = std::ranges::all_of(table.rows, fits) && std::ranges::any_of(table.rows, speaks);
  }
  return result;
}

std::string replaced(std::string_view text, std::string_view characters, std::string_view (*by)(char)) {
  std::string result;
  for (const char c : text) {
    if (characters.find(c) == std::string_view::npos) {
      result += c;
    } else {
      result += by(c);
    }
  }
  return result;
}

std::string csv_cell(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  return fmt::format("\"{}\"", replaced(cell, "\"", [](char) -> std::string_view { return "\"\""; }));
}

std::string markdown_text(const std::string& text) {
  return replaced(text, "|<*`\\\r\n", [](char c) -> std::string_view {
    switch (c) {
      case '|':
        return "\\|";
      case '<':
        return "\\<";
      case '*':
        return "\\*";
      case '`':
        return "\\`";
      case '\\':
        return "\\\\";
      default:
        return " ";
    }
  });
}

std::string_view latex_of(char c) {
  switch (c) {
    case '\\':
      return "\\textbackslash{}";
    case '~':
      return "\\textasciitilde{}";
    case '^':
      return "\\textasciicircum{}";
    case '<':
      return "$<$";
    case '>':
      return "$>$";
    case '&':
      return "\\&";
    case '%':
      return "\\%";
    case '$':
      return "\\$";
    case '#':
      return "\\#";
    case '_':
      return "\\_";
    case '{':
      return "\\{";
    case '}':
      return "\\}";
    default:
      return " ";
  }
}

std::string latex_text(std::string_view text) { return replaced(text, "\\~^<>&%$#_{}\r\n", latex_of); }

// A number's hyphen is a minus sign.
std::string latex_number(std::string_view text) {
  if (says_nothing(text)) return std::string(text);
  std::string result;
  for (const char c : text) result += c == '-' ? "$-$" : latex_text({&c, 1});
  return result;
}

std::string html_row(const Cells& row, std::string_view tag, const std::vector<bool>& numeric) {
  std::string text = "<tr>";
  for (std::size_t i = 0; i < row.size(); ++i) {
    text += fmt::format("<{}{}>{}</{}>", tag, numeric[i] ? " class=\"number\"" : "", svg_escape(row[i]), tag.substr(0, 2));
  }
  return text + "</tr>\n";
}

}  // namespace

std::string to_csv(const Table& table) {
  std::string text;
  const auto add = [&](const Cells& row) {
    for (std::size_t i = 0; i < row.size(); ++i) text += fmt::format("{}{}", i > 0 ? "," : "", csv_cell(row[i]));
    text += '\n';
  };
  if (table.csv.empty()) add(table.head);
  for (const Cells& row : table.csv.empty() ? table.rows : table.csv) add(row);
  return text;
}

std::vector<Cells> rows_of_csv(std::string_view text) {
  std::vector<Cells> rows;
  bool quoted = false, begun = false;  // inside a quoted cell, of a row that is not yet among them
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!begun) rows.emplace_back(1);
    begun = true;
    if (c == '"' && quoted && i + 1 < text.size() && text[i + 1] == '"') {
      rows.back().back() += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      rows.back().emplace_back();
    } else if (c == '\n' && !quoted) {
      begun = false;
    } else {
      rows.back().back() += c;
    }
  }
  if (quoted) throw Error(Fault::data, fmt::format("a quoted cell in row {} has no end", rows.size()));
  return rows;
}

std::string to_markdown(const Table& table) {
  std::string text = fmt::format("**{}**\n\n", markdown_text(table.title));
  const auto add = [&](const Cells& row) {
    for (const std::string& cell : row) text += fmt::format("| {} ", markdown_text(cell));
    text += "|\n";
  };
  add(table.head);
  for (const bool number : numeric_columns(table)) text += number ? "| ---: " : "| :--- ";
  text += "|\n";
  for (const Cells& row : table.rows) add(row);
  if (!table.note.empty()) text += fmt::format("\n{}\n", markdown_text(table.note));
  return text;
}

std::string to_latex(const Table& table) {
  const std::vector<bool> numeric = numeric_columns(table);
  std::string columns;
  for (const bool number : numeric) columns += number ? 'r' : 'l';
  std::string text = fmt::format(
      "% needs \\usepackage{{booktabs}}\n\\begin{{table}}\n\\centering\n\\caption{{{}}}\n\\label{{tab:{}}}\n"
      "\\begin{{tabular}}{{{}}}\n\\toprule\n",
      latex_text(table.title), table.name, columns);
  const auto add = [&](const Cells& row, bool head) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += (i > 0 ? " & " : "") + (numeric[i] && !head ? latex_number(row[i]) : latex_text(row[i]));
    }
    text += " \\\\\n";
  };
  add(table.head, true);
  text += "\\midrule\n";
  for (const Cells& row : table.rows) add(row, false);
  text += "\\bottomrule\n\\end{tabular}\n";
  if (!table.note.empty()) text += fmt::format("\\par\\smallskip{{\\footnotesize {}}}\n", latex_text(table.note));
  return text + "\\end{table}\n";
}

std::string to_html(const Table& table) {
  const std::vector<bool> numeric = numeric_columns(table);
  std::string text = fmt::format(
      "<div class=\"scroll\"><table id=\"table-{}\">\n<caption><span>{}</span></caption>\n<thead>{}</thead>\n<tbody>\n",
      table.name, svg_escape(table.title), html_row(table.head, "th scope=\"col\"", numeric));
  for (const Cells& row : table.rows) text += html_row(row, "td", numeric);
  text += "</tbody>\n</table></div>\n";
  if (!table.note.empty()) text += fmt::format("<p class=\"note\">{}</p>\n", svg_escape(table.note));
  return text;
}

}  // namespace cautious::report
