// `cautious lab toy`: the paper's toy experiment (Figures 2 and 3) on any problem. Some arms go from one start, and where do
// they end: on the minimisers, on their Pareto front, in AdamW's box? Unless arms are given they are Adam, AdamW and Adam + CWD
// with the same learning rate, betas and eps, and Muon's where the problem is one of matrices: its three, and CWD with the mask
// by the momentum.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cautious/detail/field.h>
#include <cautious/recipe.h>
#include <cautious/schedule.h>

#include "lab/experiment.h"
#include "lab/problem/minimisers.h"
#include "lab/problem/problem.h"
#include "report/page.h"

namespace CLI {
class App;
}

namespace cautious::lab {

// An arm is a recipe, written on a line as to_string(Recipe) does: "adamw decay=cautious beta2=0.95 lr=0.02".
struct ToyArm {
  std::string name;  // "Adam + CWD"
  Recipe recipe;
  std::optional<double> lr;  // instead of the one all arms share
};

inline constexpr std::size_t kMostArms = 8;
inline constexpr Range kToyLr{0, 1, true, false};
inline constexpr Range kToyWeightDecay{0, 100, true, false};

// weight_decay where the line does not say. Throws an Error that names the word it cannot use and its character.
ToyArm parse_arm(std::string_view line, double weight_decay);

// "Adam", "AdamW", "Adam + CWD", "Lion + decay", "Muon + CWD", "Adam + random".
std::string name_of(const Recipe& recipe);

// For files: letters, digits and '_'.
std::string key_of(const ToyArm& arm);

// Two arms of one name get the lines they came from as names.
std::vector<ToyArm> parse_arms(const std::vector<std::string>& lines, double weight_decay);

// The defaults make all arms settle and the box |x| <= 1 / weight_decay = 2 keep clear of the minimisers of circle and
// parabola. beta2 = 0.95 as in language models: with 0.999 AdamW needs many times the steps to come to rest.
struct ToyOptions {
  double lr = 0.01;
  double weight_decay = 0.5;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  std::int64_t steps = 4000;
  ScheduleKind schedule = ScheduleKind::cosine;  // down to 0 unless constant
  std::optional<Point> start = {};               // the problem's own unless set
  std::vector<ToyArm> arms = {};                 // the usual ones if empty
};

inline constexpr Range kToySteps{1, 1e6, false, false};
inline constexpr Range kToyPath{1, 4e6, false, false};  // steps times variables: every point is kept
inline constexpr Range kToyStart{-1e6, 1e6, false, false};

// An end point counts as on a set within kOn of it. While the learning rate is high, cautious decay chatters about the curve;
// an iterate counts as arrived within kNear.
inline constexpr double kOn = 1e-3;
inline constexpr double kNear = 0.05;

struct ToyRun {
  ToyArm arm;
  std::vector<Point> path;  // the start and the point after each step
  double f = 0;
  bool at_rest = false;
  bool minimum = false;                 // the nearest stationary point is a minimiser: no curvature there is negative
  std::optional<double> to_minimisers;  // to the nearest stationary point; nothing: none was found
  std::optional<Pareto> pareto;         // of the nearest minimiser
  std::optional<double> to_front, to_local_front;  // problems of two variables only
  double to_box = 0;
  std::optional<std::int64_t> arrival;  // the step after which it stays within kNear of the front; two variables only
  double slide = 0;                     // distance between the point at arrival and the end

  const Point& end() const { return path.back(); }
};

// What is claimed of an arm: that it stops at a minimiser (no decay), at the least f in the box (decay of sign-like rules), on
// the local Pareto front (CWD), or nothing.
enum class ToyQuestion { minimiser, box, front, none };
ToyQuestion question_of(const ToyArm& arm, const ToyOptions& options);

// An arm with something broken, of which the claim should not be true.
struct ToyBroken {
  std::string change;
  std::vector<Point> path;
};
struct ToyControl {
  std::string change;
  ToyRun run;
};

struct ToyStudy {
  Problem problem;
  ToyOptions options;
  double box = 0;                      // half side 1 / weight_decay
  double least_in_box = 0;             // least f found there: what AdamW should reach according to the paper
  double lowest = 0;                   // least f known: the problem's, or that of the paths where it is lower
  double view_low = 0, view_high = 1;  // the problem's view, widened to the paths
  std::optional<FrontTrace> trace;     // of a problem of two variables, in that view
  std::vector<ToyRun> runs;
  std::vector<std::vector<ToyControl>> controls;  // of each run
};

// Throws an Error(Fault::usage) that names the value and the valid range; so does run_toy.
void check(const Problem& problem, const ToyOptions& options);

// `alive` is called now and then and may throw to stop.
ToyStudy run_toy(const Problem& problem, const ToyOptions& options, const std::function<void()>& alive = {});

// One arm's points under that schedule: path[0] is the start.
std::vector<Point> toy_path(const Problem& problem, const ToyArm& arm, const ToyOptions& options);

std::vector<ToyBroken> broken_arms(const Problem& problem, const ToyArm& arm, const ToyOptions& options);

// Distance to the box |x_i| <= half_side; 0 inside.
double to_box(double half_side, PointView x);

double distance(PointView a, PointView b);

// The least value of a problem in the box |x_i| <= half_side that projected gradient descent finds, from the guesses (moved
// into the box), the origin and a few random points.
double least_in_box(const Problem& problem, double half_side, const std::vector<Point>& guesses);

// The claims of the paper's captions and of section 2.2 against the end points of a study: one per arm, worded by its rule and
// decay.
std::vector<Claim> toy_claims(const ToyStudy& study);

// The caption of Figure 3 from a start beyond the circle.
Claim far_arc_claim();

// "toy_deep_linear": what the names of a study's files begin with.
std::string file_stem(const Problem& problem);

// One line of what all arms share.
std::string settings(const ToyOptions& options);

// The plane with contours, minimisers, Pareto front, box and paths for two variables, f and the size of x over the steps for
// more.
std::vector<report::Figure> toy_figures(const ToyStudy& study);

// Least squares drawn at random, several sizes and optimizers, with and without decay and mask: who ends at a Pareto-optimal
// minimiser?
Section random_problems(std::size_t problems_per_size, const Progress& progress);

// One equation <A, X> = b for a 2 x 2 matrix, on which Muon + CWD slides to a minimiser that another beats.
struct MuonEnd {
  Point end;
  Pareto pareto = Pareto::undecided;
  double off = 0;  // largest entry of the difference from the predicted point
};
extern const std::string_view kMuonByHand, kMuonByMomentum;  // why
MuonEnd muon_end(std::string_view arm);
Claim muon_claim();

// Why does the trajectory not stop on reaching the Pareto set? Runs at a constant learning rate on the near arc of the circle,
// which is Pareto-optimal, set against a prediction of their motion along it.
Section why_it_slides_on(double weight_decay);

// Studies as the sections of an experiment. `arguments`: what the command line said besides the problem and --out (" --steps
// 100"), for the commands of the report.
Experiment toy_experiment(const std::vector<Problem>& problems, const ToyOptions& options, const std::string& arguments,
                          const Progress& progress);

// As a shell takes it for one word.
std::string in_shell_quotes(const std::string& text);

// The command line; arguments.cc belongs to the program, which has CLI11.
class ToyArguments {
 public:
  // The options write into this object, so it must outlive the parse.
  void add_to(CLI::App& app);

  // Reads and checks everything; what comes back runs it.
  std::function<Experiment(const Progress&)> read() const;

 private:
  std::string problem_ = "all";
  std::vector<std::string> arms_;
  std::map<std::string, std::string, std::less<>> words_;  // the options that were given
};

}  // namespace cautious::lab
