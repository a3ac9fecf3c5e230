// Chat templates of a folder, templates that are refused, and templates that would never end. What they render is held against
// Jinja in chat_template_test.py.
#include "data/tokenizer/chat_template.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tokenizer_fixture.h"

namespace cautious::data {
namespace chat_template_test {

const std::vector<Message> kTalk = {{"user", "hi"}, {"assistant", "yes"}};

std::string rendered(const std::string& text, const std::vector<Message>& messages = kTalk) {
  return ChatTemplate::parse(text, "here").render(messages, true);
}

std::string refused(const std::string& text) {
  return data_message([&] { rendered(text); });
}

TEST(ChatTemplateText, IsMadeOfMessages) {
  EXPECT_EQ(rendered("{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }};{% endfor %}{% if "
                     "add_generation_prompt %}>{% endif %}"),
            "user: hi;assistant: yes;>");
  EXPECT_EQ(ChatTemplate::parse("{{ bos_token }}{{ eos_token }}", "", {"<s>", std::nullopt}).render({}, false), "<s>");
  EXPECT_EQ(rendered("{{ messages[0].content }}", {{"user", "\xff\xc3"}}), "\xff\xc3");  // bytes are left as they are
}

TEST(ChatTemplateText, IsRefusedWithItsLine) {
  EXPECT_EQ(refused("\n{{ x | nothing }}"), "here: line 2: the filter 'nothing' is not supported");
  EXPECT_EQ(refused("a\nb\n{% include 'x' %}"), "here: line 3: the statement 'include' is not supported");
  EXPECT_EQ(refused("{{ 1 is prime }}"), "here: line 1: the test 'prime' is not supported");
  EXPECT_EQ(refused("{{ strftime_now('%d') }}"), "here: line 1: the function 'strftime_now' is not supported");
  EXPECT_EQ(refused("{{ messages.append(1) }}"), "here: line 1: a list has no method 'append'");
  EXPECT_EQ(refused("{{ messages }}"), "here: line 1: a list is written as text; use tojson or join");
  EXPECT_EQ(refused("{{ 'a' | trim(x=1) }}"), "here: line 1: trim has no argument 'x'");
  EXPECT_EQ(refused("{% if true %}\n{{ 2 }"), "here: line 2: a '}' that nothing opened");
  EXPECT_EQ(refused("{{ raise_exception('no\\n' ~ messages[0].role) }}"),
            "here: line 1: the template refuses the conversation: no user");
  EXPECT_TRUE(has(refused("{{ 99999999999999999999 }}"), "the number '99999999999999999999' is too large"));
  EXPECT_TRUE(has(refused("{{ 9223372036854775807 + 1 }}"), "a number is too large"));
  EXPECT_EQ(rendered("{{ -9223372036854775807 - 1 }} {{ (-9223372036854775807 - 1) % -1 }}"), "-9223372036854775808 0");
  EXPECT_TRUE(has(refused("{{ (-9223372036854775807 - 1) // -1 }}"), "a number is too large"));
  EXPECT_TRUE(has(refused("{{ '\\ud800' }}"), "is not followed by the 4 digits of a character"));
}

TEST(ChatTemplateText, ComesToAnEnd) {
  const std::string endless = "does not come to an end, or makes too much text";
  EXPECT_TRUE(has(refused("{% for a in range(1000000000000) %}{% endfor %}"), endless));
  EXPECT_TRUE(has(refused("{% set r = range(100000) %}{% for a in r %}{% for b in r %}{% endfor %}{% endfor %}"), endless));
  EXPECT_TRUE(has(refused("{% set n = namespace(x='aaaaaaaa') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}"),
                  endless));
  EXPECT_TRUE(has(refused("{{ 'a' * 1000000000000 }}"), endless));
  EXPECT_TRUE(has(refused("{% set a = 'a' * 1000000 %}{{ (a ~ 'b') in (a ~ a) }}"), endless));
  EXPECT_TRUE(has(refused("{% set a = 'a' * 1000000 %}{{ a.replace('a', a) }}"), endless));
  EXPECT_TRUE(has(refused("{% set a = 'a' * 1000000 %}{{ a.strip(a) }}"), endless));
  EXPECT_TRUE(has(refused("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), "macros call each other too deeply"));
  EXPECT_TRUE(has(refused("{% set n = namespace(x=[]) %}{% for i in range(99) %}{% set n.x = [n.x] %}{% endfor %}"),
                  "values nested too deeply"));
  EXPECT_TRUE(has(refused("{% set n = namespace() %}{% set n.x = [n] %}"), "a namespace within another value"));
  const auto repeated = [](const char* part) {
    std::string out;
    for (int i = 0; i < 5000; ++i) out += part;
    return out;
  };
  for (const auto& [open, close] : {std::pair("(", ")"), std::pair("[", "]"), std::pair("-", ""), std::pair("not ", ""),
                                    std::pair("a[", "]"), std::pair("a|trim(", ")"), std::pair("1 if ", ""),
                                    std::pair("{'a':", "}"), std::pair("1 + ", ""), std::pair("1 or ", "")}) {
    EXPECT_TRUE(has(refused("{{ " + repeated(open) + "1" + repeated(close) + " }}"), "nested too deeply")) << open;
  }
  EXPECT_TRUE(has(refused(repeated("{% if 1 %}") + repeated("{% endif %}")), "nested too deeply"));
  EXPECT_EQ(refused(repeated("{% if 1 %}{% elif 2 %}{% endif %}")), "");
  EXPECT_TRUE(has(refused(std::string(2'000'000, 'a')), "the chat template has 2000000 bytes; valid: [0, 1048576]"));
  // A long conversation may take its time.
  EXPECT_EQ(rendered("{% for m in messages %}{{ m.content | trim ~ m.content | length }}{% endfor %}",
                     std::vector<Message>(50, {"user", std::string(100'000, 'x')}))
                .size(),
            50u * 100'006);
}

using ChatTemplateFiles = TokenizerFiles;

TEST_F(ChatTemplateFiles, ComeFromTheFolder) {
  const auto of = [&] { return ChatTemplate::of_folder(folder_); };
  EXPECT_FALSE(of());
  write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}})");
  EXPECT_FALSE(of());
  write("tokenizer_config.json",
        R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "chat_template": "{{ bos_token }}x{{ eos_token }}"})");
  EXPECT_EQ(of()->render({}, false), "<s>x</s>");
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]})");
  EXPECT_EQ(of()->render({}, false), "d");
  write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "r"}]})");
  EXPECT_TRUE(has(data_message(of), "tokenizer_config.json: chat_template is a list without a template named 'default'"));
  write("tokenizer_config.json", R"({"chat_template": 5})");
  EXPECT_TRUE(has(data_message(of), "chat_template is '5'; valid:"));
  write("tokenizer_config.json", R"({"chat_template": "{{ 1 "})");
  EXPECT_TRUE(has(data_message(of), "tokenizer_config.json: chat template: line 1: no }} ends it"));
  write("tokenizer_config.json", R"({"chat_template": "old"})");
  write("chat_template.jinja", "new");
  EXPECT_EQ(of()->render({}, false), "new");
}

}  // namespace chat_template_test
}  // namespace cautious::data
