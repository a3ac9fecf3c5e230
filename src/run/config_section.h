// How a member of RunConfig becomes a key: one add() for each type there is.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text.h"
#include "run/config_keys.h"

namespace cautious::run {

// Find takes a RunConfig, const or not, to the owner of the members.
template <class Find>
class Section {
 public:
  Section(std::vector<Key>& keys, const RunConfig& config, std::string name, Find find)
      : keys_(keys), config_(config), name_(std::move(name)), find_(find) {}

  template <class Owner>
  void add(std::string_view key, double Owner::*member, const Range& range, std::string_view help) {
    push(key, to_toml(value(member)), to_string(range), help, member,
         [range](std::string_view what, const ConfigValue& given) { return to_number(what, given, range); });
  }

  template <class Owner, std::integral Whole>
  void add(std::string_view key, Whole Owner::*member, const WholeRange& range, std::string_view help) {
    push(key, fmt::format("{}", value(member)), to_string(range), help, member,
         [range](std::string_view what, const ConfigValue& given) { return static_cast<Whole>(to_whole(what, given, range)); });
  }

  template <class Owner>
  void add(std::string_view key, bool Owner::*member, std::string_view help) {
    push(key, to_toml(value(member)), "true, false", help, member, to_boolean);
  }

  template <class Owner, class Enum>
  requires std::is_enum_v<Enum>
  void add(std::string_view key, Enum Owner::*member, std::string_view help) {
    const std::string valid = base::join(names_of(Enum{}));
    push(key, to_toml(cautious::name_of(value(member))), valid, help, member,
         [key = std::string(key), valid](std::string_view what, const ConfigValue& given) {
           const std::string word = to_word(what, given, valid);
           return told_of(what, [&] { return base::named<Enum>(key, word); });
         });
  }

  template <class Owner>
  void add(std::string_view key, std::string Owner::*member, std::string_view valid, std::string_view help) {
    push(key, to_toml(std::string_view(value(member))), std::string(valid), help, member,
         [valid = std::string(valid)](std::string_view what, const ConfigValue& given) { return to_word(what, given, valid); });
  }

  template <class Owner>
  void add(std::string_view key, std::vector<std::string> Owner::*member, std::string_view valid, std::string_view help) {
    push(key, to_toml(value(member)), std::string(valid), help, member, to_words);
  }

  // A key with a way of its own.
  void add(std::string_view key, std::string toml, std::string valid, std::string_view help,
           std::function<void(RunConfig&, std::string_view what, const ConfigValue&)> set) {
    keys_.push_back({{fmt::format("{}.{}", name_, key), std::move(toml), std::move(valid), std::string(help)}, std::move(set)});
  }

  // Makes the last key one of rivals: it has a value if it decides, and setting it first clears them all.
  void rival(bool decides, void (*clear)(RunConfig&)) {
    Key& last = keys_.back();
    if (!decides) last.value.clear();
    last.set = [set = std::move(last.set), clear](RunConfig& config, std::string_view what, const ConfigValue& given) {
      RunConfig changed = config;
      clear(changed);
      set(changed, what, given);
      config = std::move(changed);
    };
  }

 private:
  template <class Member>
  const auto& value(Member member) const {
    return find_(config_).*member;
  }

  template <class Member, class Read>
  void push(std::string_view key, std::string toml, std::string valid, std::string_view help, Member member, Read read) {
    add(key, std::move(toml), std::move(valid), help,
        [find = find_, member, read](RunConfig& config, std::string_view what, const ConfigValue& given) {
          find(config).*member = read(what, given);
        });
  }

  std::vector<Key>& keys_;
  const RunConfig& config_;
  std::string name_;
  Find find_;
};

}  // namespace cautious::run
