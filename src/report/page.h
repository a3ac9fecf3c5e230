// A report as one HTML page that needs no other file: figures are images inside it, and where JavaScript runs its line
// charts can be zoomed and its paths followed with a slider. Texts are plain and are escaped here.
#pragma once

#include <any>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/table.h"

namespace cautious::report {

// A chart as a page and a file show it. Made of anything that has a title, a description, kScript, to_svg() and page_json(); of
// what has narrow_svg() too, a page shows that on a narrow screen.
struct Figure {
  std::string name;                // of its file: letters, digits, '_'
  std::string title, description;  // the description is for those who cannot see it
  std::string svg;
  std::string narrow;       // the same for a narrow screen; empty: there is none
  std::string_view script;  // the script of the page that draws it again, "chart" or "paths"; empty: it stays an image
  std::string data_json;    // for the script, safe inside <script>
  std::string caption;      // below it; may be empty
  std::any chart;           // what was drawn, in full precision

  template <class Chart>
  Figure(std::string file_name, Chart shown, std::string below)
      : name(std::move(file_name)),
        title(shown.title),
        description(shown.description),
        svg(to_svg(shown)),
        script(Chart::kScript),
        data_json(page_json(shown)),
        caption(std::move(below)),
        chart(std::move(shown)) {
    if constexpr (requires(const Chart& any) { narrow_svg(any); }) narrow = narrow_svg(std::any_cast<const Chart&>(chart));
  }
};

// A remark below a claim. `kind`: a class of the style sheet, "by-hand", "noticed", "unnoticed".
struct ClaimRemark {
  std::string_view kind;
  std::string lead, text;  // "without K1", "348 of 3740 are violated"
  std::string link = {};   // an anchor of the page that the text leads to; may be empty
};

// An image of a grid of them.
struct Picture {
  std::string png;         // in base64
  std::string name;        // what it is, for those who cannot see it
  std::string lead, text;  // below it: "Shirt", ", taken for Coat (99.9%)"
};

// Of the n-th heading of a page, parts and sections counted together from 1.
std::string heading_anchor(std::size_t n);

// A policy for browsers (Content-Security-Policy): a page runs our scripts, known by their hashes, and nothing else, and asks
// nobody but where it came from.
std::string content_policy();

// Of a page that is served while its files change: reloads it when /stamp is no longer what <meta name="stamp"> says. A server
// that is gone is waited for.
inline constexpr std::string_view kFollowScript =
    "const stamp = document.querySelector('meta[name=stamp]').content;\n"
    "setInterval(() => fetch('/stamp').then((answer) => answer.text()).then((now) => { if (now !== stamp) "
    "location.reload(); }).catch(() => {}), 2000);\n";

class HtmlPage {
 public:
  explicit HtmlPage(std::string title) : title_(std::move(title)) {}

  // A heading above sections; the list of contents is then grouped.
  void part(std::string_view heading);
  // A heading that the list of contents names.
  void section(std::string_view heading);
  // `kind`: a class of the style sheet, "verdict", "status", "note", "caution"; empty for plain text.
  void paragraph(std::string_view text, std::string_view kind = {});
  void figure(const Figure& figure);
  // Small images side by side, every pixel of which can be seen.
  void pictures(const std::vector<Picture>& pictures);
  // What was claimed, by whom (may be empty), and what decides it. `outcome`: "holds", "fails", "undecided" or "noted".
  void claim(std::string_view text, std::string_view source, std::string_view outcome, std::string_view evidence,
             const std::vector<ClaimRemark>& remarks = {});
  void table(const Table& table);
  void tables_side_by_side(const std::vector<Table>& tables);
  void commands(const std::vector<std::string>& lines);
  // What is between the two is folded away until the reader opens it.
  void open_details(std::string_view summary);
  void close_details();

  // The document. The list of contents comes before the first section.
  std::string finish() const;

 private:
  struct Heading {
    std::string text;
    bool part;
  };
  void heading(std::string_view text, bool part);
  std::string contents() const;

  std::string title_, front_, body_;
  std::vector<Heading> headings_;
};

// Text files that the build puts into the program: our scripts and style sheet, and uPlot's. uPlot's are empty where the build
// could not fetch it; figures are then static.
extern const std::string_view kReportScript, kSliderScript, kReportStyle, kUplotScript, kUplotStyle, kUplotLicence;

}  // namespace cautious::report
