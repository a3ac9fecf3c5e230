// What configurations, plans and runs ask of files, of reports and of the build, for their fuzzers: they must not open what an
// input happens to name, and need neither verdicts nor scripts.
#include <cautious/error.h>

#include "data/corpus.h"
#include "report/page.h"
#include "run/checkpoint.h"
#include "run/provenance.h"
#include "run/run_data.h"
#include "study/report.h"

namespace cautious {

std::filesystem::path data::cache_named(const std::string&) { return "cache"; }
data::ImageFacts data::image_facts(const ImageSpec&) { return {.training = 1000, .size = 28, .channels = 1, .classes = 10}; }

std::optional<std::int64_t> run::vocabulary_of(const RunConfig&) { return 300; }
run::LessonData run::open_lessons(const RunConfig&) { throw Error(Fault::data, "file: has no conversations"); }
std::filesystem::path run::tokenizer_beside(const std::filesystem::path& model) { return model; }
std::filesystem::path run::find_checkpoint(const std::filesystem::path&) { throw Error(Fault::data, "file: is no model"); }

std::vector<std::string> study::lead_figures(const Plan&, run::TaskKind) { return {"arms", "amounts"}; }
study::Verdict study::verdict_of(const Results&) { throw Error(Fault::data, "file: is a study"); }
std::string study::report_html(const Results&, const Verdict&) { return {}; }
std::filesystem::path study::write_report(const Results&, const Verdict&) { return {}; }

run::Provenance run::provenance() { return {"0", "0", "none", "none", 1}; }
const std::string_view report::kReportScript, report::kSliderScript, report::kReportStyle, report::kUplotScript,
    report::kUplotStyle, report::kUplotLicence;

}  // namespace cautious
