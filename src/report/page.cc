#include "report/page.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/sha256.h"
#include "base/text.h"
#include "report/style.h"
#include "report/svg.h"

namespace cautious::report {
namespace {

struct Badge {
  std::string_view outcome, sign, words;
};
constexpr std::array<Badge, 4> kBadges{
    {{"holds", "✓", "holds"}, {"fails", "✗", "does not hold"}, {"undecided", "?", "undecided"}, {"noted", "•", "noted"}}};

// The hash of a script as a policy names it, in base64.
std::string policy_hash(std::string_view script) {
  const std::string hex = base::sha256_of(script);
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return fmt::format("'sha256-{}'", base::to_base64(bytes));
}

}  // namespace

std::string content_policy() {
  std::string scripts;
  for (const std::string_view script : {kSliderScript, kUplotScript, kReportScript, kFollowScript})
    scripts += " " + policy_hash(script);
  return fmt::format(
      "default-src 'none'; script-src{}; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
      "base-uri 'none'; form-action 'none'",
      scripts);
}

std::string heading_anchor(std::size_t n) { return fmt::format("section-{}", n); }

void HtmlPage::heading(std::string_view text, bool part) {
  if (headings_.empty()) front_ = std::exchange(body_, {});
  const bool grouped = !headings_.empty() && headings_.front().part;
  const char* tag = part || !grouped ? "h2" : "h3";
  body_ += fmt::format("<{0} id=\"{1}\">{2}</{0}>\n", tag, heading_anchor(headings_.size() + 1), svg_escape(text));
  headings_.push_back({std::string(text), part});
}

void HtmlPage::part(std::string_view heading) { this->heading(heading, true); }
void HtmlPage::section(std::string_view heading) { this->heading(heading, false); }

// A line per part, with its sections.
std::string HtmlPage::contents() const {
  if (headings_.empty()) return {};
  std::string list;
  for (std::size_t i = 0; i < headings_.size(); ++i) {
    if (headings_[i].part) list += i == 0 ? "<div>\n" : "</div>\n<div>\n";
    list += fmt::format("<a{} href=\"#{}\">{}</a>\n", headings_[i].part ? " class=\"part\"" : "", heading_anchor(i + 1),
                        svg_escape(headings_[i].text));
  }
  const bool grouped = headings_.front().part;
  return fmt::format("<nav{} aria-label=\"Contents\">\n{}{}</nav>\n", grouped ? " class=\"grouped\"" : "", list,
                     grouped ? "</div>\n" : "");
}

void HtmlPage::paragraph(std::string_view text, std::string_view kind) {
  body_ += kind.empty() ? fmt::format("<p>{}</p>\n", svg_escape(text))
                        : fmt::format("<p class=\"{}\">{}</p>\n", kind, svg_escape(text));
}

// As an image, because the names and styles in one SVG would meet those of the next.
void HtmlPage::figure(const Figure& figure) {
  const std::string image = fmt::format("<img class=\"still\" alt=\"{}\" src=\"data:image/svg+xml;base64,{}\">",
                                        svg_escape(figure.title + ". " + figure.description), base::to_base64(figure.svg));
  body_ += fmt::format("<figure id=\"figure-{}\">\n", figure.name);
  body_ +=
      figure.narrow.empty()
          ? image + "\n"
          : fmt::format("<picture><source media=\"(max-width: 640px)\" srcset=\"data:image/svg+xml;base64,{}\">{}</picture>\n",
                        base::to_base64(figure.narrow), image);
  if (!figure.script.empty()) {
    body_ += fmt::format("<script type=\"application/json\" class=\"{}\">{}</script>\n", figure.script, figure.data_json);
  }
  if (!figure.caption.empty()) body_ += fmt::format("<figcaption>{}</figcaption>\n", svg_escape(figure.caption));
  body_ += "</figure>\n";
}

void HtmlPage::pictures(const std::vector<Picture>& pictures) {
  body_ += "<div class=\"pictures\">\n";
  for (const Picture& picture : pictures) {
    body_ += fmt::format(
        "<figure><img alt=\"{}\" title=\"{}\" src=\"data:image/png;base64,{}\"><figcaption><b>{}</b>{}</figcaption></figure>\n",
        svg_escape(picture.name + ": " + picture.lead + picture.text), svg_escape(picture.name), picture.png,
        svg_escape(picture.lead), svg_escape(picture.text));
  }
  body_ += "</div>\n";
}

void HtmlPage::claim(std::string_view text, std::string_view source, std::string_view outcome, std::string_view evidence,
                     const std::vector<ClaimRemark>& remarks) {
  const auto badge = std::find_if(kBadges.begin(), kBadges.end(), [&](const Badge& b) { return b.outcome == outcome; });
  if (badge == kBadges.end()) {
    throw Error(Fault::usage,
                fmt::format("no outcome of a claim named '{}'; choices: holds, fails, undecided, noted", outcome));
  }
  body_ +=
      fmt::format("<div class=\"claim {}\">\n<span class=\"badge\"><span aria-hidden=\"true\">{}</span> {}</span>\n<div>\n",
                  badge->outcome, badge->sign, badge->words);
  body_ += fmt::format("<p class=\"claim-text\">{}", svg_escape(text));
  if (!source.empty()) body_ += fmt::format(" <span class=\"source\">{}</span>", svg_escape(source));
  body_ += "</p>\n";
  if (!evidence.empty()) body_ += fmt::format("<p class=\"evidence\">{}</p>\n", svg_escape(evidence));
  for (const ClaimRemark& remark : remarks) {
    const std::string words = svg_escape(remark.text);
    body_ += fmt::format("<p class=\"remark {}\"><b>{}</b> {}</p>\n", remark.kind, svg_escape(remark.lead),
                         remark.link.empty() ? words : fmt::format("<a href=\"#{}\">{}</a>", remark.link, words));
  }
  body_ += "</div>\n</div>\n";
}

void HtmlPage::table(const Table& table) { body_ += to_html(table); }

void HtmlPage::tables_side_by_side(const std::vector<Table>& tables) {
  body_ += "<div class=\"beside\">\n";
  for (const Table& table : tables) body_ += "<div>\n" + to_html(table) + "</div>\n";
  body_ += "</div>\n";
}

void HtmlPage::commands(const std::vector<std::string>& lines) {
  body_ += "<pre><code>";
  for (const std::string& line : lines) body_ += svg_escape(line) + "\n";
  body_ += "</code></pre>\n";
}

void HtmlPage::open_details(std::string_view summary) {
  body_ += fmt::format("<details>\n<summary>{}</summary>\n", svg_escape(summary));
}

void HtmlPage::close_details() { body_ += "</details>\n"; }

std::string HtmlPage::finish() const {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n",
      content_policy(), svg_escape(title_));
  if (!kUplotScript.empty()) text += fmt::format("<style>{}</style>\n", kUplotStyle);
  text += fmt::format("<style>{}{}</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n", series_properties(), kReportStyle,
                      svg_escape(title_));
  text += front_ + contents() + body_ + fmt::format("</main>\n<script>{}</script>\n", kSliderScript);
  if (!kUplotScript.empty()) {
    text += fmt::format("<!-- uPlot, MIT licence: {} -->\n<script>{}</script>\n<script>{}</script>\n", kUplotLicence,
                        kUplotScript, kReportScript);
  }
  return text + "</body>\n</html>\n";
}

}  // namespace cautious::report
