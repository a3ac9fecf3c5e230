// What configurations and plans ask of files and of reports, for their fuzzers: they must not open what an input happens to
// name, and need no charts.
#include <cautious/error.h>

#include "data/corpus.h"
#include "run/checkpoint.h"
#include "run/run_data.h"
#include "study/report.h"

namespace cautious {

std::filesystem::path data::default_cache() { return "cache"; }
data::ImageFacts data::image_facts(const ImageSpec&) { return {.training = 1000, .size = 28, .channels = 1, .classes = 10}; }

std::optional<std::int64_t> run::vocabulary_of(const RunConfig&) { return 300; }
run::LessonData run::open_lessons(const RunConfig&) { throw Error(Fault::data, "file: has no conversations"); }
std::filesystem::path run::tokenizer_beside(const std::filesystem::path& model) { return model; }
std::filesystem::path run::find_checkpoint(const std::filesystem::path&) { throw Error(Fault::data, "file: is no model"); }

std::vector<std::string> study::lead_figures(const Plan&, run::TaskKind) { return {"arms", "amounts"}; }

}  // namespace cautious
