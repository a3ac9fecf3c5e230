// Recipes by name, fields by name, checks, the one-line form, and the words of the error messages.
#include <cautious/recipe.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <cautious/error.h>

#include "base/text.h"
#include "usage_message.h"

namespace cautious {
namespace recipe_test {

std::string failure_of_set(Recipe recipe, std::string_view field, std::string_view value) {
  const std::string before = to_string(recipe);
  const std::string words = message([&] { set(recipe, field, value); });
  EXPECT_EQ(to_string(recipe), before) << "a failed set() changed the recipe";
  return words;
}

TEST(Recipe, NamesAndLines) {
  const std::vector<std::string> names{"sgd", "sgdm", "adam", "adamw", "adamc", "lion", "lion-k", "muon"};
  for (const std::string& name : names) EXPECT_NO_THROW(check(recipe(name))) << name;
  const std::vector<std::string> known = recipe_names();
  for (const std::string& name : names) EXPECT_NE(std::find(known.begin(), known.end(), name), known.end()) << name;
  EXPECT_EQ(std::set<std::string>(known.begin(), known.end()).size(), known.size());

  EXPECT_EQ(to_string(recipe("sgd")), "sgd decay=decoupled coupling=plain weight_decay=0.0001");
  EXPECT_EQ(to_string(recipe("sgdm")), "sgdm beta=0.9 decay=decoupled coupling=plain weight_decay=0.0001");
  EXPECT_EQ(to_string(recipe("adam")), "adam beta1=0.9 beta2=0.999 eps=1e-08 decay=none coupling=plain weight_decay=0");
  EXPECT_EQ(to_string(recipe("adamw")), "adam beta1=0.9 beta2=0.999 eps=1e-08 decay=decoupled coupling=plain weight_decay=0.1");
  EXPECT_EQ(to_string(recipe("adamc")),
            "adam beta1=0.9 beta2=0.999 eps=1e-08 decay=decoupled coupling=corrected weight_decay=0.1");
  EXPECT_EQ(to_string(recipe("lion")), "lion beta1=0.9 beta2=0.99 decay=decoupled coupling=plain weight_decay=0.1");
  EXPECT_EQ(to_string(recipe("lion-k")),
            "lion-k beta1=0.9 beta2=0.99 k=l1 p=2 e=0.001 fraction=0.1 schedule=paper steps=0 scale=none eps=0 blocks=1 "
            "coefficients= decay=decoupled coupling=plain weight_decay=0.1");
  EXPECT_EQ(to_string(recipe("muon")),
            "muon beta=0.95 nesterov=off schedule=paper steps=0 scale=none eps=0 blocks=1 coefficients= decay=decoupled "
            "coupling=plain weight_decay=0.1");
}

TEST(Recipe, DecaysByName) {
  for (const std::string& name : decay_names()) EXPECT_EQ(name_of(decay(name)), name);
  EXPECT_EQ(decay_names().size(), std::variant_size_v<Decay>);
  EXPECT_TRUE(has_anchor(decay("anchored")) && has_anchor(decay("selective")) && !has_anchor(decay("cautious")));
}

// A mask by the momentum is another one only where the direction is shaped.
TEST(Recipe, MaskByMomentum) {
  const std::string line = "lion-k beta1=0.9 beta2=0.99 k=topk";
  const Recipe muon = parse_recipe("muon mask=momentum decay=cautious");
  EXPECT_EQ(std::get<Cautious>(muon.decay).mask, MaskBy::momentum);
  EXPECT_NE(to_string(muon).find(" decay=cautious mask=momentum coupling=plain "), std::string::npos) << to_string(muon);
  EXPECT_EQ(to_string(parse_recipe(to_string(muon))), to_string(muon));
  EXPECT_EQ(to_string(parse_recipe(line + " decay=cautious mask=momentum")).rfind(line, 0), 0u);
  EXPECT_NE(to_string(parse_recipe("adamw decay=cautious")).find(" decay=cautious mask=direction "), std::string::npos);
  for (const std::string name : {"sgd", "sgdm", "adam", "lion"}) {
    Recipe ours = recipe(name);
    ours.decay = Cautious{};
    const std::string refusal = "mask=momentum is for rules that shape their direction (lion-k, muon); that of " + name +
                                " is not shaped and has the signs of what it is made of already: leave mask=direction";
    EXPECT_EQ(failure_of_set(ours, "mask", "momentum"), refusal);
    ours.decay = muon.decay;
    EXPECT_EQ(message([&] { check(ours); }), refusal);
    EXPECT_EQ(message([&] { (void)Optimizer(ours); }), refusal);
    EXPECT_EQ(std::get<Cautious>(decay_for(ours.rule, muon.decay)).mask, MaskBy::direction);
  }
  EXPECT_EQ(std::get<Cautious>(decay_for(recipe("lion-k").rule, muon.decay)).mask, MaskBy::momentum);
  EXPECT_EQ(failure_of_set(muon, "mask", "gradient"), "no mask of cautious named 'gradient'; choices: direction, momentum");
  for (const std::string policy : {"opposed", "shuffled"}) {
    const Recipe ours = parse_recipe("muon mask=momentum decay=" + policy);
    EXPECT_TRUE(by_momentum(ours.decay) && !by_momentum(decay_for(recipe("adam").rule, ours.decay))) << policy;
  }
  EXPECT_NE(failure_of_set(recipe("muon"), "mask", "momentum"), "") << "decoupled decay has no mask to choose";
}

// The one-word promise of the fields: what fields() prints, set() takes, and nothing changes.
TEST(Recipe, EveryFieldRoundTrips) {
  for (const std::string& name : recipe_names()) {
    for (const std::string& policy : decay_names()) {
      Recipe ours = recipe(name);
      set(ours, "decay", policy);
      const std::string line = to_string(ours);
      std::set<std::string> seen;
      for (const FieldInfo& field : fields(ours)) {
        EXPECT_TRUE(seen.insert(field.name).second) << "two fields named " << field.name;
        EXPECT_FALSE(field.help.empty() || field.valid.empty()) << field.name;
        set(ours, field.name, field.value);
      }
      EXPECT_EQ(to_string(ours), line);
    }
  }
}

TEST(Recipe, NumbersRoundTripExactly) {
  Recipe ours = recipe("adamw");
  const double beta = std::nextafter(0.95, 1), tiny = 4.9e-324;
  std::get<Adam>(ours.rule).beta2 = beta;
  std::get<Adam>(ours.rule).eps = tiny;
  Recipe again = recipe("adamw");
  for (const FieldInfo& field : fields(ours)) set(again, field.name, field.value);
  EXPECT_EQ(std::get<Adam>(again.rule).beta2, beta);
  EXPECT_EQ(std::get<Adam>(again.rule).eps, tiny);
}

TEST(Recipe, FieldsFromNumbers) {
  Recipe ours = recipe("muon");
  set(ours, "beta", 0.1 + 0.2);
  set(ours, "steps", 7);
  EXPECT_EQ(std::get<Muon>(ours.rule).beta, 0.1 + 0.2);
  EXPECT_EQ(std::get<Muon>(ours.rule).polar.steps, 7);
  const std::string before = to_string(ours);
  EXPECT_EQ(message([&] { set(ours, "beta", 1); }), "beta of muon is '1'; valid: [0, 1)");
  EXPECT_EQ(message([&] { set(ours, "steps", 0.5); }),
            "steps of the polar factor is '0.5', not a whole number; valid: [0, 100]");
  EXPECT_EQ(message([&] { set(ours, "beta9", 0.5); }).substr(0, 23), "no field of muon with d");
  EXPECT_EQ(to_string(ours), before);
}

TEST(Recipe, SetDecayResetsItsFields) {
  Recipe ours = recipe("adamw");
  set(ours, "decay", "random");
  set(ours, "density", "0.25");
  EXPECT_EQ(std::get<Random>(ours.decay).density, 0.25);
  set(ours, "decay", "random");
  EXPECT_EQ(std::get<Random>(ours.decay).density, 0.5);
  set(ours, "coupling", "squared");
  EXPECT_EQ(ours.coupling, Coupling::squared);
}

TEST(Recipe, ErrorsNameValueAndChoices) {
  EXPECT_EQ(message([] { recipe("adamm"); }),
            "no optimizer named 'adamm'; did you mean 'adam'? choices: " + base::join(recipe_names()));
  EXPECT_EQ(message([] { decay("cautios"); }),
            "no decay named 'cautios'; did you mean 'cautious'? choices: " + base::join(decay_names()));
  const Recipe ours = recipe("adamw");
  EXPECT_EQ(failure_of_set(ours, "beta1", "1"), "beta1 of adam is '1'; valid: [0, 1)");
  EXPECT_EQ(failure_of_set(ours, "beta1", "nan"), "beta1 of adam is 'nan'; valid: [0, 1)");
  EXPECT_EQ(failure_of_set(ours, "weight_decay", "inf"), "weight_decay is 'inf'; valid: [0, inf)");
  EXPECT_EQ(failure_of_set(ours, "weight_decay", "-0.1"), "weight_decay is '-0.1'; valid: [0, inf)");
  EXPECT_EQ(failure_of_set(ours, "weight_decay", "1e999"), "weight_decay is '1e999'; valid: [0, inf)");
  for (const char* text : {"", " 1", "1 ", "0.1x", "1,5", "0x1p-3", "--1", "one"}) {
    EXPECT_EQ(failure_of_set(ours, "eps", text), "eps of adam is '" + std::string(text) + "', not a number; valid: [0, inf)");
  }
  EXPECT_EQ(
      failure_of_set(ours, "beta3", "1"),
      "no field of adam with decay decoupled named 'beta3'; did you mean 'beta1'? choices: beta1, beta2, eps, decay, coupling, "
      "weight_decay");
  EXPECT_EQ(failure_of_set(recipe("lion-k"), "k", "l3"),
            "no k of lion-k named 'l3'; choices: l1, l2, lp, huber, relativistic, threshold, topk, nuclear");
  EXPECT_EQ(failure_of_set(ours, "coupling", "corected"),
            "no coupling named 'corected'; did you mean 'corrected'? choices: plain, corrected, independent, squared");
}

// The fields of a part count as the rule's, and their messages name the part.
TEST(Recipe, FieldsOfAPart) {
  Recipe ours = recipe("muon");
  for (const auto& [field, value] : {std::pair{"schedule", "polar-express-8"},
                                     {"scale", "rms"},
                                     {"nesterov", "on"},
                                     {"steps", "3"},
                                     {"eps", "1e-07"},
                                     {"blocks", "4"}}) {
    set(ours, field, value);
  }
  EXPECT_EQ(to_string(ours),
            "muon beta=0.95 nesterov=on schedule=polar-express-8 steps=3 scale=rms eps=1e-07 blocks=4 coefficients= "
            "decay=decoupled coupling=plain weight_decay=0.1");
  const Polar& polar = std::get<Muon>(ours.rule).polar;
  EXPECT_TRUE(polar.schedule == NewtonSchulz::polar_express_8 && polar.scale == MatrixScale::rms && polar.blocks == 4);
  EXPECT_NO_THROW(check(ours));
  for (const char* rule : {"muon", "lion-k"}) {
    const Recipe whole = recipe(rule);
    EXPECT_EQ(failure_of_set(whole, "steps", "-1"), "steps of the polar factor is '-1'; valid: [0, 100]");
    EXPECT_EQ(failure_of_set(whole, "steps", "1.5"), "steps of the polar factor is '1.5', not a whole number; valid: [0, 100]");
    EXPECT_EQ(failure_of_set(whole, "blocks", "0"), "blocks of the polar factor is '0'; valid: [1, 1000000000]");
    EXPECT_EQ(failure_of_set(whole, "eps", "-1"), "eps of the polar factor is '-1'; valid: [0, inf)");
    EXPECT_EQ(failure_of_set(whole, "schedule", "papper"),
              "no schedule of the polar factor named 'papper'; did you mean 'paper'? choices: paper, quintic, polar-express, "
              "polar-express-8, cans, turbo, exact, custom");
    EXPECT_EQ(failure_of_set(whole, "scale", "big"), "no scale of the polar factor named 'big'; choices: none, jordan, rms");
  }
  set(ours, "schedule", "jordan");  // of Muon's own code; written by its first name
  EXPECT_EQ(std::get<Muon>(ours.rule).polar.schedule, NewtonSchulz::jordan);
  EXPECT_NE(to_string(ours).find(" schedule=paper "), std::string::npos);
  EXPECT_EQ(quintics(std::get<Muon>(ours.rule).polar).front().a, 3.4445);
  EXPECT_EQ(failure_of_set(ours, "nesterov", "yes"), "no nesterov of muon named 'yes'; choices: off, on");
  std::get<Muon>(ours.rule).polar.steps = 101;
  EXPECT_EQ(message([&] { check(ours); }), "steps of the polar factor is 101; valid: [0, 100]");
}

TEST(Recipe, ListsOfNumbers) {
  Recipe ours = recipe("muon");
  const auto& coefficients = std::get<Muon>(ours.rule).polar.coefficients;
  set(ours, "schedule", "custom");
  set(ours, "coefficients", "1.5,-0.5,1e-300");
  EXPECT_EQ(coefficients, (std::vector<double>{1.5, -0.5, 1e-300}));
  EXPECT_NE(to_string(ours).find(" coefficients=1.5,-0.5,1e-300 "), std::string::npos) << to_string(ours);
  EXPECT_NO_THROW(check(ours));
  const double odd = std::nextafter(3.4445, 4);
  std::get<Muon>(ours.rule).polar.coefficients = {odd, 4.9e-324, -0.0};
  Recipe again = recipe("muon");
  for (const FieldInfo& field : fields(ours)) set(again, field.name, field.value);
  EXPECT_EQ(to_string(again), to_string(ours));
  EXPECT_EQ(std::get<Muon>(again.rule).polar.coefficients, coefficients);
  for (const char* text : {"1,x", ",", "1,,2", "1,2,3,", ",1", " 1", "1, 2", "1;2"}) {
    const std::string words = failure_of_set(ours, "coefficients", text);
    EXPECT_EQ(words.rfind("coefficients of the polar factor is '", 0), 0u) << text << ": " << words;
  }
  EXPECT_NE(failure_of_set(ours, "coefficients", "1,inf,2"), "");
  set(ours, "coefficients", "1,2,3,4");
  EXPECT_EQ(message([&] { check(ours); }), "coefficients has 4 numbers; schedule 'custom' needs three for each step: a,b,c");
  set(ours, "coefficients", "");
  EXPECT_TRUE(coefficients.empty());
  EXPECT_EQ(message([&] { check(ours); }), "coefficients has 0 numbers; schedule 'custom' needs three for each step: a,b,c");
  set(ours, "schedule", "cans");
  set(ours, "coefficients", "1,2,3");
  EXPECT_EQ(message([&] { check(ours); }), "coefficients are given, but schedule is 'cans'; they belong to schedule 'custom'");
  set(ours, "coefficients", "");
  set(ours, "schedule", "exact");
  set(ours, "steps", "2");
  EXPECT_EQ(message([&] { check(ours); }), "steps is 2, but schedule 'exact' has none; leave it 0");
}

// Throws or not, with the Error's context.
Error refused_line(std::string_view line) {
  try {
    (void)parse_recipe(line);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::usage);
    return error;
  }
  return Error(Fault::failure, "nothing was thrown");
}

TEST(ParsedRecipe, IsTheInverseOfTheLine) {
  for (const std::string& name : recipe_names()) {
    EXPECT_EQ(to_string(parse_recipe(name)), to_string(recipe(name)));
    for (const std::string& policy : decay_names()) {
      for (const std::string_view coupling : names_of(Coupling{})) {
        Recipe ours = recipe(name);
        set(ours, "decay", policy);
        set(ours, "coupling", coupling);
        ours.weight_decay = 0.1 + 0.2;
        const std::string line = to_string(ours);
        EXPECT_EQ(to_string(parse_recipe(line)), line);
      }
    }
  }
  const std::string custom =
      "muon beta=0.9 nesterov=on schedule=custom steps=0 scale=rms eps=0 blocks=1 "
      "coefficients=3.4445,-4.775,2.0315 decay=random density=0.25 coupling=plain weight_decay=0.1";
  EXPECT_EQ(to_string(parse_recipe(custom)), custom);
}

TEST(ParsedRecipe, TakesFieldsInAnyOrder) {
  Recipe ours = recipe("adamc");
  ours.decay = Random{.density = 0.25};
  std::get<Adam>(ours.rule).beta2 = 0.95;
  EXPECT_EQ(to_string(parse_recipe("  adamc\tdensity=0.25  beta2=0.95 decay=random ")), to_string(ours));
  EXPECT_EQ(parse_recipe("adamw weight_decay=0").weight_decay, 0);
}

TEST(ParsedRecipe, SaysWhatIsWrongAndWhere) {
  const auto expect = [](std::string_view line, std::string_view what, std::string_view key) {
    const Error error = refused_line(line);
    EXPECT_EQ(error.what(), what);
    EXPECT_EQ(error.key(), key) << line;
  };
  expect("adamww",
         "recipe 'adamww', character 1: no optimizer named 'adamww'; did you mean 'adamw'? choices: sgd, sgdm, adam, "
         "adamw, adamc, lion, lion-k, muon",
         "optimizer");
  expect(" lion bet1=0.9",
         "recipe ' lion bet1=0.9', character 7: no field of lion with decay decoupled named 'bet1'; did you mean "
         "'beta1'? choices: beta1, beta2, decay, coupling, weight_decay",
         "bet1");
  expect("lion beta1=2", "recipe 'lion beta1=2', character 6: beta1 of lion is '2'; valid: [0, 1)", "beta1");
  expect("lion beta1=", "recipe 'lion beta1=', character 6: beta1 of lion is '', not a number; valid: [0, 1)", "beta1");
  expect("lion cautious", "recipe 'lion cautious', character 6: expected FIELD=VALUE, found 'cautious'", "cautious");
  expect("lion =1", "recipe 'lion =1', character 6: expected FIELD=VALUE, found '=1'", "");
  expect("lion beta1=0.5 beta1=0.6", "recipe 'lion beta1=0.5 beta1=0.6', character 16: beta1 is given twice", "beta1");
  expect("sgd decay=cautios",
         "recipe 'sgd decay=cautios', character 5: no decay named 'cautios'; did you mean 'cautious'? "
         "choices: none, decoupled, cautious, opposed, gradient, random, shuffled, layerwise, selective, anchored",
         "decay");
  for (const char* empty : {"", "  ", "\t"}) {
    EXPECT_EQ(refused_line(empty).what(),
              std::string("the recipe is empty; write one as in \"adamw decay=cautious beta2=0.95\"; "
                          "recipes: sgd, sgdm, adam, adamw, adamc, lion, lion-k, muon"));
  }
  EXPECT_EQ(refused_line("lion beta1=2").message(), "beta1 of lion is '2'; valid: [0, 1)");
  EXPECT_EQ(refused_line("lion beta1=2").where(), "recipe 'lion beta1=2', character 6");
}

TEST(Recipe, CheckSeesMembersSetDirectly) {
  Recipe ours = recipe("adamw");
  std::get<Adam>(ours.rule).beta2 = 1;
  EXPECT_EQ(message([&] { check(ours); }), "beta2 of adam is 1; valid: [0, 1)");
  ours = recipe("adamw");
  ours.weight_decay = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(message([&] { check(ours); }), "weight_decay is nan; valid: [0, inf)");
  ours = recipe("adamw");
  ours.decay = Random{.density = 1.5};
  EXPECT_EQ(message([&] { check(ours); }), "density of random is 1.5; valid: [0, 1]");
  ours = recipe("adamw");
  ours.coupling = static_cast<Coupling>(9);
  EXPECT_EQ(message([&] { check(ours); }), "coupling is number 9; choices: plain, corrected, independent, squared");
}

TEST(Names, Suggestions) {
  const std::vector<std::string_view> choices{"none", "decoupled", "cautious", "gradient", "cosine"};
  EXPECT_EQ(base::closest("cautios", choices), "cautious");
  EXPECT_EQ(base::closest("Cautious", choices), "cautious");
  EXPECT_EQ(base::closest("cuatious", choices), "cautious");  // neighbours swapped
  EXPECT_EQ(base::closest("cos", choices), "cosine");         // a beginning
  EXPECT_EQ(base::closest("muon", choices), "");
  EXPECT_EQ(base::closest("", choices), "");
  EXPECT_EQ(base::closest(std::string(100000, 'c'), choices), "");
}

TEST(Names, OneLineWhateverTheUserTyped) {
  EXPECT_EQ(base::in_quotes("a\nb\x1b"), "'a\\x0ab\\x1b'");
  EXPECT_EQ(base::in_quotes(std::string(100, 'a')), "'" + std::string(80, 'a') + "...' (100 bytes)");
}

TEST(Names, WholeNumbers) {
  const Range range{0, 100, false, false};
  EXPECT_EQ(base::to_integer("n", "42", range), 42);
  EXPECT_EQ(message([&] { base::to_integer("n", "4.2", range); }), "n is '4.2', not a whole number; valid: [0, 100]");
  EXPECT_EQ(message([&] { base::to_integer("n", "101", range); }), "n is '101'; valid: [0, 100]");
}

}  // namespace recipe_test
}  // namespace cautious
