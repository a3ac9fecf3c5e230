// The methods of texts and mappings in chat templates, and what texts are made of.
#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/utf8_stream.h"
#include "data/tokenizer/template_values.h"

namespace cautious::data {
namespace {

// What Python takes for white space.
bool is_space(std::string_view character) {
  if (character.size() == 1) return std::string_view(" \t\n\r\v\f\x1c\x1d\x1e\x1f").find(character[0]) != character.npos;
  constexpr std::array<std::string_view, 19> kWide{"\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003",
                                                   "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
                                                   "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};
  return std::find(kWide.begin(), kWide.end(), character) != kWide.end();
}

std::string_view first_character(std::string_view text) {
  return text.substr(0, std::max<std::size_t>(1, base::utf8_character(text)));
}

std::string_view last_character(std::string_view text) {
  for (std::size_t size = 2; size <= std::min<std::size_t>(4, text.size()); ++size) {
    const std::string_view end = text.substr(text.size() - size);
    if (base::utf8_character(end) == size) return end;
  }
  return text.substr(text.size() - 1);
}

// Calls `each` with every character and its code point, -1 for a byte that is none.
template <class Each>
void each_character(std::string_view text, const Each& each) {
  while (!text.empty()) {
    const std::string_view character = first_character(text);
    utf8proc_int32_t code = -1;
    utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(character.data()),
                     static_cast<utf8proc_ssize_t>(character.size()), &code);
    each(character, code);
    text.remove_prefix(character.size());
  }
}

void add_code(std::string& out, std::string_view character, utf8proc_int32_t code) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  if (code < 0) {
    out += character;
  } else {
    out.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(utf8proc_encode_char(code, bytes.data())));
  }
}

TemplateValue split_text(TemplateWork& work, const std::string& text, TemplateParameters& parameters) {
  const TemplateValue separator = parameters.take("sep"), count = parameters.take("maxsplit");
  std::int64_t most = count.is<TemplateUndefined>() ? -1 : as_integer(work, count, "maxsplit");
  TemplateList out;
  work.spend(20 * text.size());
  if (separator.is<TemplateUndefined>() || separator.is<TemplateNone>()) {
    std::string_view rest = text;
    const auto skip = [&](bool spaces) {
      std::size_t size = 0;
      while (size < rest.size() && is_space(first_character(rest.substr(size))) == spaces)
        size += first_character(rest.substr(size)).size();
      return size;
    };
    for (rest.remove_prefix(skip(true)); !rest.empty(); rest.remove_prefix(skip(true))) {
      const std::string_view word = most-- == 0 ? rest : rest.substr(0, skip(false));
      out.emplace_back(word);
      rest.remove_prefix(word.size());
    }
    return out;
  }
  const std::string& cut = as_text(work, separator, "the separator");
  if (cut.empty()) work.fail("split with an empty separator");
  work.spend(text.size() * (1 + cut.size() / 64));
  for (std::size_t at = 0;;) {
    const std::size_t end = most-- == 0 ? text.npos : text.find(cut, at);
    out.emplace_back(text.substr(at, end == text.npos ? end : end - at));
    if (end == text.npos) return out;
    at = end + cut.size();
  }
}

// Of one text, or any of a list.
bool begins_or_ends(TemplateWork& work, const std::string& text, const TemplateValue& with, bool begins) {
  const auto holds = [&](const TemplateValue& one) {
    const std::string& part = as_text(work, one, "what a text begins or ends with");
    work.spend(part.size());
    return begins ? text.starts_with(part) : text.ends_with(part);
  };
  if (!with.list()) return holds(with);
  return std::any_of(with.list()->begin(), with.list()->end(), holds);
}

TemplateValue text_method(TemplateWork& work, const TemplateValue& value, std::string_view name,
                          TemplateParameters& parameters) {
  const std::string& text = *value.text();
  work.spend(text.size());
  if (name == "strip" || name == "lstrip" || name == "rstrip")
    return stripped(work, text, name != "rstrip", name != "lstrip", parameters.take("chars"));
  if (name == "startswith" || name == "endswith")
    return begins_or_ends(work, text, parameters.take("prefix"), name == "startswith");
  if (name == "split") return split_text(work, text, parameters);
  if (name == "upper" || name == "lower") return in_case(text, name == "upper");
  if (name == "title") return in_title_case(text, true);
  if (name == "replace") {
    const TemplateValue old = parameters.take("old"), by = parameters.take("new"), count = parameters.take("count");
    return replaced(work, text, as_text(work, old, "what is replaced"), as_text(work, by, "the replacement"),
                    count.is<TemplateUndefined>() ? -1 : as_integer(work, count, "count"));
  }
  if (name == "join") return filtered(work, "join", parameters.take("iterable"), {{value}, {}});
  work.fail(fmt::format("a text has no method {}", base::in_quotes(name)));
}

TemplateValue dict_method(TemplateWork& work, const TemplateDict& dict, std::string_view name, TemplateParameters& parameters) {
  if (name == "get") {
    const TemplateValue key = parameters.take("key"), other = parameters.take("default");
    const TemplateValue* found = key.text() ? find_key(work, dict, *key.text()) : nullptr;
    return found ? *found : other.is<TemplateUndefined>() ? TemplateValue(TemplateNone{}) : other;
  }
  if (name != "items" && name != "keys" && name != "values")
    work.fail(fmt::format("a mapping has no method {}", base::in_quotes(name)));
  TemplateList out;
  for (const auto& [key, item] : dict) {
    work.spend(key.size() + 30);
    if (name == "items") out.emplace_back(TemplateList{TemplateValue(key), item});
    if (name == "keys") out.emplace_back(key);
    if (name == "values") out.push_back(item);
  }
  return out;
}

}  // namespace

std::string stripped(TemplateWork& work, const std::string& text, bool left, bool right, const TemplateValue& characters) {
  const std::string* const some = characters.text();
  work.spend(some ? text.size() * (1 + some->size()) : text.size());
  const auto goes = [&](std::string_view character) {
    return some ? some->find(character) != some->npos : is_space(character);
  };
  std::string_view rest = text;
  while (left && !rest.empty() && goes(first_character(rest))) rest.remove_prefix(first_character(rest).size());
  while (right && !rest.empty() && goes(last_character(rest))) rest.remove_suffix(last_character(rest).size());
  return std::string(rest);
}

std::string in_case(std::string_view text, bool upper) {
  std::string out;
  each_character(text, [&](std::string_view character, utf8proc_int32_t code) {
    add_code(out, character, code < 0 ? code : upper ? utf8proc_toupper(code) : utf8proc_tolower(code));
  });
  return out;
}

std::string in_title_case(std::string_view text, bool after_any) {
  std::string out;
  bool inside = false;
  each_character(text, [&](std::string_view character, utf8proc_int32_t code) {
    const bool cased = code >= 0 && (utf8proc_toupper(code) != code || utf8proc_tolower(code) != code);
    const bool divides = is_space(character) || std::string_view("-({[<").find(character) != std::string_view::npos;
    add_code(out, character, code < 0 ? code : inside ? utf8proc_tolower(code) : utf8proc_toupper(code));
    inside = after_any ? cased : !divides;
  });
  return out;
}

std::string replaced(TemplateWork& work, const std::string& text, const std::string& old, const std::string& by,
                     std::int64_t most) {
  if (old.empty()) work.fail("what is replaced is empty");
  work.spend(text.size() * (1 + old.size() / 64));
  std::string out;
  for (std::size_t at = 0;;) {
    const std::size_t found = most-- == 0 ? text.npos : text.find(old, at);
    out += text.substr(at, found == text.npos ? found : found - at);
    if (found == text.npos) return out;
    work.spend(by.size() + 1);
    out += by;
    at = found + old.size();
  }
}

TemplateList range_of(TemplateWork& work, TemplateParameters& parameters) {
  const TemplateValue first = parameters.take("start"), last = parameters.take("stop"), by = parameters.take("step");
  const bool alone = last.is<TemplateUndefined>();
  const std::int64_t begin = alone ? 0 : as_integer(work, first, "range"),
                     end = as_integer(work, alone ? first : last, "range");
  const std::int64_t step = by.is<TemplateUndefined>() ? 1 : as_integer(work, by, "range");
  if (step != 1 && step != -1) work.fail(fmt::format("a range with step {}; valid: 1, -1", step));
  TemplateList out;
  for (std::int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
    work.spend(20);
    out.emplace_back(i);
  }
  return out;
}

TemplateValue method_result(TemplateWork& work, const TemplateValue& value, std::string_view name,
                            TemplateArguments arguments) {
  TemplateParameters parameters(work, name, std::move(arguments));
  if (!value.text() && !value.dict()) work.fail(fmt::format("{} has no method {}", value.kind(), base::in_quotes(name)));
  TemplateValue out =
      value.text() ? text_method(work, value, name, parameters) : dict_method(work, *value.dict(), name, parameters);
  parameters.finish();
  return out;
}

}  // namespace cautious::data
