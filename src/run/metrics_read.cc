// metrics.jsonl back into rows. JSON as a stream of events: a key that occurs twice is seen, and nothing but numbers is taken.
#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>

#include <cautious/error.h>
#include "base/text.h"
#include "run/metrics.h"

namespace cautious::run {
namespace {

class RowEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit RowEvents(std::string place) : place_(std::move(place)) {}

  MetricsRow take() {
    if (!has_step_) refuse("no 'step'");
    return std::move(row_);
  }

  bool null() override { return value(std::numeric_limits<double>::quiet_NaN(), "null"); }
  bool boolean(bool value) override { misplaced(value ? "true" : "false"); }
  // Integers come here only when written with a minus; -0 is a number of its own.
  bool number_integer(number_integer_t number) override {
    return value(number == 0 ? -0.0 : static_cast<double>(number), number == 0 ? "-0" : std::to_string(number));
  }
  bool number_unsigned(number_unsigned_t number) override {
    if (!inside_ || key_ != "step") return value(static_cast<double>(number), std::to_string(number));
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) misplaced(std::to_string(number));
    row_.step = static_cast<std::int64_t>(number);
    has_step_ = true;
    return true;
  }
  bool number_float(number_float_t number, const string_t& text) override { return value(number, text); }
  bool string(string_t& text) override { misplaced("the string " + base::in_quotes(text)); }
  bool binary(binary_t&) override { misplaced("binary"); }
  bool start_array(std::size_t) override { misplaced("an array"); }
  bool end_array() override { return true; }
  bool start_object(std::size_t) override {
    if (inside_) misplaced("an object");
    inside_ = true;
    return true;
  }
  bool end_object() override {
    inside_ = false;
    return true;
  }
  bool key(string_t& name) override {
    if (!keys_.insert(name).second) refuse(fmt::format("{} occurs twice", base::in_quotes(name)));
    key_ = name;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int kOverflow = 406;
    refuse(fmt::format("{} at byte {}", error.id == kOverflow ? "a number beyond the range of doubles" : "not JSON", position));
  }

 private:
  bool value(double number, std::string_view text) {
    if (!inside_ || key_ == "step") misplaced(text);
    row_.values.emplace_back(key_, number);
    return true;
  }
  [[noreturn]] void misplaced(std::string_view what) const {
    if (!inside_) refuse(fmt::format("{} instead of an object", what));
    const std::string_view expected = key_ == "step" ? "a whole number from 0 to 2^63-1" : "a number or null";
    refuse(fmt::format("{} is {}; expected {}", base::in_quotes(key_), what, expected));
  }
  [[noreturn]] void refuse(std::string_view what) const { throw Error(Fault::data, fmt::format("{}: {}", place_, what)); }

  std::string place_;
  MetricsRow row_;
  std::unordered_set<std::string> keys_;
  std::string key_;  // the last one
  bool inside_ = false, has_step_ = false;
};

std::string content(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  const auto refuse = [&](const std::string& why) {
    throw Error(Fault::data, fmt::format("{}: cannot read: {}", path.string(), why));
  };
  if (!std::filesystem::exists(status)) refuse(error.message());
  if (!std::filesystem::is_regular_file(status)) refuse("not a regular file");
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse(std::generic_category().message(errno));
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) throw Error(Fault::failure, path.string() + ": cannot read to the end");
  return text;
}

}  // namespace

std::vector<MetricsRow> read_metrics(const std::filesystem::path& jsonl) {
  const std::string text = content(jsonl);
  std::vector<MetricsRow> rows;
  std::string_view rest = text;
  for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
    const std::string_view line = rest.substr(0, end);
    const std::string place = fmt::format("{}: line {}", jsonl.string(), rows.size() + 1);
    // To the JSON parser a NUL is the end of the text, whatever follows.
    if (const auto nul = line.find('\0'); nul != line.npos)
      throw Error(Fault::data, fmt::format("{}: NUL at byte {}", place, nul + 1));
    RowEvents events(place);
    nlohmann::json::sax_parse(line.begin(), line.end(), &events);
    rows.push_back(events.take());
  }
  return rows;
}

}  // namespace cautious::run
