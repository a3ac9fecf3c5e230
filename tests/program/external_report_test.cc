// The report of a study of external runs: all that is known, and nothing that is not.
#include <limits>

#include "external_study.h"

namespace cautious::study {
namespace external_report_test {

class ExternalReport : public ExternalFiles {
 protected:
  // What a reader sees of the page: no scripts, no pictures.
  static std::string text_of(const std::string& page) {
    std::string body = page.substr(page.find("<body"));
    body.resize(body.find("<script"));
    for (std::size_t at; (at = body.find("base64,")) != body.npos;) body.erase(at, body.find('"', at) - at);
    return body;
  }
  static void check_text(const std::string& page) {
    for (const char* const wrong : {"token", "images", "validation", "initial weights", "parameters on", ">nan", " nan", "NaN",
                                    "No data", "cautious train", "cautious study", "bits per byte", "the paper"}) {
      EXPECT_EQ(text_of(page).find(wrong), std::string::npos) << wrong;
    }
  }
};

TEST_F(ExternalReport, HoldsWhatIsKnown) {
  make(helpful);
  conclusion();
  const std::string page = content(study() / "report.html");
  check_text(page);
  EXPECT_EQ(names(study() / "figures"), (std::set<std::string>{"amounts.svg", "arms.svg", "contrasts.svg",
                                                               "contrasts_exploratory.svg", "sweep_weight_decay.svg"}));
  for (const std::string& name : names(study() / "figures")) {
    const std::string svg = content(study() / "figures" / name);
    EXPECT_EQ(svg.find("nan"), svg.npos) << name;
    EXPECT_NE(svg.find("class=\"mark"), svg.npos) << name << " shows nothing";
  }
  EXPECT_EQ(page, html_of(study())) << "'cautious report' makes the same page";
  EXPECT_TRUE(content(study() / "tables" / "runs.csv").starts_with("arm,point,seed,use,loss,decay budget,seconds,status\n"));
  EXPECT_TRUE(content(study() / "tables" / "settings.csv").find("objective") == std::string::npos);
}

TEST_F(ExternalReport, WithoutAmountsOfDecayNoneAreShown) {
  ExternalStudy study(external_plan(comparison()), this->study());
  while (const auto run = study.next()) study.finish(loss_of(*run, helpful));
  study.conclude();
  check_text(content(this->study() / "report.html"));
  EXPECT_FALSE(names(this->study() / "figures").contains("amounts.svg"));
}

TEST_F(ExternalReport, AStudyThatHasNotEndedSaysSo) {
  make(helpful, 5);
  const std::string page = html_of(study());
  check_text(page);
  EXPECT_NE(page.find("The study has not ended"), page.npos);
}

TEST_F(ExternalReport, OfASingleRun) {
  const std::string folder = make(helpful, 1).front();
  const std::string page = html_of(study() / "runs" / folder);
  check_text(page);
  EXPECT_NE(page.find("knows what it reported"), page.npos);
  write_report_of(study() / "runs" / folder);
  EXPECT_TRUE(names(study() / "runs" / folder / "figures").empty());
}

}  // namespace external_report_test
}  // namespace cautious::study
