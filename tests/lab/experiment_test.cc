// What an experiment says, in the terminal and in its files: failures first, and beside what holds what was broken.
#include "lab/experiment.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"

namespace cautious::lab::experiment_test {
namespace {

Section section(std::string title, std::vector<Claim> claims) {
  Section made;
  made.title = std::move(title);
  made.command = "cautious lab toy";
  made.claims = std::move(claims);
  return made;
}

std::vector<Experiment> two_experiments() {
  Claim holds{"A holds", "Table 1", Outcome::holds, "3 of 3"};
  holds.mutations = {{"without K1", "348 of 3740", true}, {"without K2", "0 of 3740", false}};
  Claim bare{"B holds", "", Outcome::holds, "1 of 1"};
  Claim reasoned{"C holds", "", Outcome::holds, "2 of 2"};
  reasoned.unbreakable = "an identity";
  Claim fails{"D holds", "", Outcome::fails, "0 of 1"};
  fails.by_hand = "x = 2";
  return {{"toy", "Toys", {section("First", {holds, bare})}}, {"bound", "Bounds", {section("Second", {reasoned, fails})}}};
}

TEST(Experiment, FailuresComeFirstAndEveryMutationIsSaid) {
  EXPECT_EQ(terminal_text(two_experiments()),
            "What does not hold\n"
            "  fails      D holds\n             0 of 1\n             By hand: x = 2\n\n"
            "First\n"
            "  holds      A holds (Table 1)\n             3 of 3\n"
            "             Broken, without K1: 348 of 3740; noticed\n"
            "             Broken, without K2: 0 of 3740; not noticed\n"
            "  holds      B holds\n             1 of 1\n             Not broken on purpose: no mutation is run\n\n"
            "Second\n"
            "  holds      C holds\n             2 of 2\n             Not broken on purpose: an identity\n\n"
            "toy: 2 of 2 claims hold (1 with a mutation that was noticed)\n"
            "bound: 1 of 2 claims hold (0 with a mutation that was noticed), 1 does not\n");
}

// With --out as it was given; commands of parts of a page write beside it, not over it.
TEST(Experiment, CommandsWriteWhereThePageIs) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "experiment test";
  std::filesystem::create_directories(folder);
  const auto commands = [&](std::vector<Experiment> experiments) {
    write(std::move(experiments), folder);
    const std::string page = base::read_file(folder / "report.html");
    EXPECT_NE(page.find("<code>cautious lab toy --out '" + folder.string()), std::string::npos);
    return nlohmann::json::parse(base::read_file(folder / "toy.json"))["sections"][0]["command"].get<std::string>();
  };
  std::vector<Experiment> experiments = two_experiments();
  EXPECT_EQ(commands(experiments), "cautious lab toy --out '" + folder.string() + "'");
  experiments[1].sections[0].command = "cautious lab bound";
  EXPECT_EQ(commands(experiments), "cautious lab toy --out '" + (folder / "toy").string() + "'");
}

TEST(Experiment, FilesSayTheSame) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "experiment_test";
  std::filesystem::create_directories(folder);
  write(two_experiments(), folder);
  const auto toy = nlohmann::json::parse(base::read_file(folder / "toy.json"));
  EXPECT_EQ(toy["holds"], 2);
  EXPECT_EQ(toy["noticed"], 1);
  const auto& claims = toy["sections"][0]["claims"];
  EXPECT_EQ(claims[0]["mutations"][0]["change"], "without K1");
  EXPECT_EQ(claims[0]["mutations"][0]["noticed"], true);
  EXPECT_TRUE(claims[1]["mutations"].empty());
  const auto bound = nlohmann::json::parse(base::read_file(folder / "bound.json"));
  EXPECT_EQ(bound["sections"][0]["claims"][0]["unbreakable"], "an identity");
  EXPECT_EQ(bound["sections"][0]["claims"][1]["by_hand"], "x = 2");
  const std::string page = base::read_file(folder / "report.html");
  const auto body = page.find("<h2");
  EXPECT_LT(page.find("What does not hold</h2>"), page.find("Toys</h2>"));
  EXPECT_LT(page.find("x = 2", body), page.find("348 of 3740", body));
  EXPECT_NE(page.find("<h3 id=\"section-3\">First</h3>"), std::string::npos);
  EXPECT_NE(page.find("<h3 id=\"section-5\">Second</h3>"), std::string::npos);
  EXPECT_NE(page.find("<a href=\"#section-5\">Second</a>"),
            page.rfind("<a href=\"#section-5\">Second</a>"));  // contents, claim
  EXPECT_NE(page.find("3 of 4 claims hold (1 with a mutation that was noticed), 1 does not."), std::string::npos);
  EXPECT_NE(page.find("<a class=\"part\" href=\"#section-1\">What does not hold</a>"), std::string::npos);
}

}  // namespace
}  // namespace cautious::lab::experiment_test
