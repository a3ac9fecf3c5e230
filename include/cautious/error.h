// The one exception of the library: what is wrong, the value, the valid choices.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace cautious {

// Who has to act: the caller (usage), the owner of a file's or buffer's content (data), or the machine (failure).
enum class Fault { usage, data, failure };

// What an Error is about. Callers decide by this, never by the text of the message.
struct ErrorContext {
  std::string key = {};    // the field, option or key concerned: "beta1", "optimizer.lr"
  std::string where = {};  // file, file:line or object: "run.toml:12"
};

class Error : public std::runtime_error {
 public:
  // what() is one line for a person, "where: message", or the message alone.
  Error(Fault fault, const std::string& message, ErrorContext context = {})
      : std::runtime_error(context.where.empty() ? message : context.where + ": " + message),
        fault_(fault),
        parts_(std::make_shared<const Parts>(Parts{message, std::move(context)})) {}

  Fault fault() const noexcept { return fault_; }
  const std::string& message() const noexcept { return parts_->message; }  // without where()
  const std::string& key() const noexcept { return parts_->context.key; }  // may be empty, as where()
  const std::string& where() const noexcept { return parts_->context.where; }

  // The same error as seen from further out: `where` comes before its own.
  Error within(const std::string& where) const { return within(where, fault_); }
  Error within(const std::string& where, Fault fault) const {
    return {fault, message(), {key(), this->where().empty() ? where : where + ": " + this->where()}};
  }

 private:
  struct Parts {
    std::string message;
    ErrorContext context;
  };
  Fault fault_;
  std::shared_ptr<const Parts> parts_;  // shared: copying an exception must not throw
};

}  // namespace cautious
