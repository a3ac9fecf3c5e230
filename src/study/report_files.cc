#include "study/report_files.h"

#include <system_error>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/atomic_file.h"

namespace cautious::study {
namespace {

std::filesystem::path folder_in(const std::filesystem::path& directory, const char* name) {
  std::filesystem::path folder = directory / name;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(Fault::failure, fmt::format("{}: cannot be made: {}", folder.string(), error.message()));
  return folder;
}

}  // namespace

std::filesystem::path write_files(const std::filesystem::path& directory, const std::string& page,
                                  const std::vector<report::Figure>& figures, const std::vector<report::Table>& tables) {
  const std::filesystem::path drawn = folder_in(directory, "figures"), written = folder_in(directory, "tables");
  for (const report::Figure& figure : figures) base::write_atomically(drawn / (figure.name + ".svg"), figure.svg);
  for (const report::Table& table : tables) {
    base::write_atomically(written / (table.name + ".csv"), to_csv(table));
    base::write_atomically(written / (table.name + ".md"), to_markdown(table));
    base::write_atomically(written / (table.name + ".tex"), to_latex(table));
  }
  base::write_atomically(directory / "report.html", page);
  return directory / "report.html";
}

}  // namespace cautious::study
