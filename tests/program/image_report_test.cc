// The report of an image classifier's run: its curves, which class is taken for which, and the worst mistakes.
#include <string>

#include <fmt/format.h>

#include "run_fixture.h"
#include "study/report.h"
#include "svg_reading.h"

namespace cautious::study {
namespace image_report_test {

constexpr const char* kPng = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::string mistake_of(int label, int predicted, const char* probability, const std::string& png = kPng) {
  return fmt::format(R"({{"name":"image <{0}>","label":{0},"predicted":{1},"probability":{2},"of_label":0.001,"png":"{3}"}})",
                     label, predicted, probability, png);
}

std::string evaluation_of(const std::string& classes, const std::string& confusion, const std::string& mistakes) {
  return fmt::format(R"({{"classes":[{}],"confusion":[{}],"mistakes":[{}]}})", classes, confusion, mistakes);
}

const std::string kThree = R"("Shirt","Coat","T<op")", kCounts = "[7,2,1],[0,9,1],[0,0,0]";

class ImageReport : public RunFiles {
 protected:
  void SetUp() override {
    RunFiles::SetUp();
    store(directory_ / "config.toml", "");
    std::string metrics;
    for (int step = 10; step <= 100; step += 10) {
      metrics += fmt::format("{{\"step\":{},\"images\":{},\"loss\":1,\"val_loss\":2,\"val_error\":{},\"val_top5_error\":3}}\n",
                             step, 32 * step, 1000.0 / step);
    }
    store(directory_ / "metrics.jsonl", metrics);
    evaluate(evaluation_of(kThree, kCounts, mistake_of(0, 1, "0.99991") + "," + mistake_of(1, 2, "0.75")));
  }
  void evaluate(const std::string& text) const { store(directory_ / "evaluation.json", text); }
  std::string refused_evaluation(const std::string& text) const {
    evaluate(text);
    const std::string line = refused(Fault::data, [&] { html_of(directory_); });
    EXPECT_TRUE(line.starts_with((directory_ / "evaluation.json").string() + ": ")) << line;
    return line;
  }
};

TEST_F(ImageReport, ShowsErrorsClassesAndMistakes) {
  const std::string html = content(write_report_of(directory_));
  for (const char* words : {">Error</h2>", ">Classes</h2>", ">Worst mistakes</h2>", "nats per image",
                            "16 of 20 images are classified right (80.00%). Most often, Shirt is taken for Coat (2 of 10), ",
                            "<b>Shirt</b>, taken for Coat (&gt; 99.9%)", "<b>Coat</b>, taken for T&lt;op (75.0%)",
                            "alt=\"image &lt;0&gt;: Shirt, taken for Coat", "<td>Coat</td>"}) {
    EXPECT_TRUE(has(html, words)) << words;
  }
  EXPECT_FALSE(has(html, "nats per token"));
  EXPECT_EQ(count(html, fmt::format("src=\"data:image/png;base64,{}\"", kPng)), 2u);
  EXPECT_EQ(count(html, "src="), 2u + 11u);
}

TEST_F(ImageReport, FilesBesideThePage) {
  write_report_of(directory_);
  for (const char* name : {"error.svg", "error_end.svg", "loss.svg", "confusion.svg"}) {
    EXPECT_TRUE(names(directory_ / "figures").contains(name)) << name;
  }
  EXPECT_EQ(content(directory_ / "tables/classes.csv"),
            "class,images,top-1 accuracy (%)\nShirt,10,70.00\nCoat,10,90.00\nT<op,0,-\n");
  EXPECT_TRUE(names(directory_ / "tables").contains("classes.tex"));
  EXPECT_EQ(content(directory_ / "tables/confusion.csv"), "class,Shirt,Coat,T<op\nShirt,7,2,1\nCoat,0,9,1\nT<op,0,0,0\n");
}

TEST_F(ImageReport, StampFollowsTheEvaluation) {
  const std::string before = stamp_of(directory_);
  evaluate(evaluation_of(kThree, kCounts, ""));
  EXPECT_NE(stamp_of(directory_), before);
  EXPECT_FALSE(has(html_of(directory_), "Worst mistakes"));
}

TEST_F(ImageReport, WithoutAnEvaluation) {
  std::filesystem::remove(directory_ / "evaluation.json");
  const std::string html = html_of(directory_);
  EXPECT_TRUE(has(html, ">Error</h2>"));
  EXPECT_FALSE(has(html, ">Classes</h2>"));
}

TEST_F(ImageReport, AThousandClassesAreATable) {
  std::string classes, rows;
  for (int i = 0; i < 101; ++i) {
    classes += fmt::format("{}\"{}\"", i ? "," : "", i);
    rows += i ? ",[0" : "[0";
    for (int k = 1; k < 101; ++k) rows += ",0";
    rows += "]";
  }
  evaluate(evaluation_of(classes, rows, ""));
  EXPECT_TRUE(has(content(write_report_of(directory_)), "Which of 101 classes is taken for which is in tables/confusion.csv."));
  EXPECT_FALSE(names(directory_ / "figures").contains("confusion.svg"));
}

TEST_F(ImageReport, DamagedEvaluationsAreNamed) {
  const std::string fine = mistake_of(0, 1, "0.5");
  EXPECT_TRUE(has(refused_evaluation("nonsense"), "not a JSON object; remove the file, or evaluate the run again"));
  EXPECT_TRUE(has(refused_evaluation("{}"), "'classes' is missing"));
  EXPECT_TRUE(has(refused_evaluation(R"({"classes":3})"), "'classes' is '3', not an array of names"));
  EXPECT_TRUE(has(refused_evaluation(evaluation_of("", "", "")), "'classes' is empty"));
  EXPECT_TRUE(has(refused_evaluation(evaluation_of("1", "[1]", "")), "'classes' holds something that is not a string"));
  for (const char* counts : {"", "[1,2,3]", "[1],[1],[1]", "[1,2,3],[1,2,3],[1,2]", "[1,2,3],[1,2,3],[1,2,-3]",
                             "[1,2,3],[1,2,3],[1,2,0.5]", "[1,2,3],[1,2,3],[1,2,18446744073709551615]", "1,2,3"}) {
    EXPECT_TRUE(has(refused_evaluation(evaluation_of(kThree, counts, "")), "'confusion' is not 3 rows of 3 counts")) << counts;
  }
  EXPECT_TRUE(has(refused_evaluation(evaluation_of(kThree, kCounts, mistake_of(0, 3, "0.5"))),
                  "'predicted' is 3, but there are 3 classes"));
  EXPECT_TRUE(has(refused_evaluation(evaluation_of(kThree, kCounts, mistake_of(-1, 1, "0.5"))), "'label' is '-1', not"));
  EXPECT_TRUE(has(refused_evaluation(evaluation_of(kThree, kCounts, mistake_of(0, 1, "\"x\""))), "'probability' is "));
  for (const char* probability : {"-0.5", "1.5"}) {
    EXPECT_TRUE(has(refused_evaluation(evaluation_of(kThree, kCounts, mistake_of(0, 1, probability))),
                    fmt::format("'probability' is {}; valid: [0, 1]", probability)));
  }
  EXPECT_TRUE(has(refused_evaluation(evaluation_of(kThree, kCounts, mistake_of(0, 1, "0.5", "iVBORw0KGgo'><script>"))),
                  "'png' of 'image <0>' is not a PNG in base64"));
  EXPECT_TRUE(has(refused_evaluation(evaluation_of(kThree, kCounts, "7")), "'name' is missing"));
  std::string many = fine;
  for (int i = 0; i < 40; ++i) many += "," + fine;
  EXPECT_TRUE(has(refused_evaluation(evaluation_of(kThree, kCounts, many)), "'mistakes' has 41 entries; valid: at most 40"));
}

}  // namespace image_report_test
}  // namespace cautious::study
