// A study whose runs the caller makes, in this process and one after another: a training loop in Python, for example.
//
//   ExternalStudy study(external_plan({.lambdas = {0.1, 1}, .lrs = {1e-3}}), "study");
//   do {
//     while (const auto run = study.next()) study.finish(train(*run));
//   } while (study.waits() && sleep(1) == 0);
//   std::cout << study.conclude().text;
#pragma once

#include <chrono>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "study/agenda.h"
#include "study/directory.h"
#include "study/external_run.h"
#include "study/plan.h"
#include "study/report.h"

namespace cautious::study {

class ExternalStudy {
 public:
  // Makes or continues the study in the directory, together with others that do so. A plan with other runs than external ones,
  // and a directory that StudyDirectory refuses, are an Error.
  ExternalStudy(const Plan& plan, const std::filesystem::path& directory);
  ExternalStudy(const ExternalStudy&) = delete;

  // The run to make now; it has begun until finish(), fail() or next() is called. One that a killed program or next() leaves
  // without a result is given out again. Controls whose reference run recorded nothing are failed on the way. None: there is
  // nothing left to do, or only for other processes at the moment.
  std::optional<ExternalRun> next();
  // Whether other processes are at work, so that next() may have a run later.
  bool waits() const { return agenda_.waits(); }

  // The end of the run. An objective that is not finite: it diverged. A decay budget of NaN is not known. Of a run that another
  // process has taken over, because this one slept, nothing is written.
  void finish(double objective, double decay_budget = std::numeric_limits<double>::quiet_NaN());
  // It has no result: `why` in one line, and `log`, all that is known, in logs/<folder>.txt. It is tried again when the study
  // is continued.
  void fail(const std::string& why, const std::string& log);

  // How the last run ended, and what is left: "cwd seed=0: done, loss 2.5034, 1:05 | 5/18 runs done  27%  5:25 < 14:05".
  std::string progress() const;

  // Of the runs so far.
  Conclusion conclude() const;
  std::size_t count(RunStatus status) const;

 private:
  ExternalStudy(Plan plan, std::vector<PlannedRun> runs, const std::filesystem::path& directory);
  ExternalRun run() const;  // the current one
  void end(const Agenda::Ending& ending);

  Plan plan_;
  StudyDirectory directory_;
  Agenda agenda_;
  std::optional<std::size_t> current_, last_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now(), start_ = begun_;
};

}  // namespace cautious::study
