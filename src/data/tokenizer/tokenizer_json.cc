// tokenizer.json, and GPT-2's encoder.json with vocab.bpe: tokens as the keys of a JSON object, in letters for bytes or as
// sentence pieces, and merges as two of them.
#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "data/tokenizer/tokenizer_builder.h"
#include "data/tokenizer/tokenizer_json.h"

namespace cautious::data {
namespace {

using nlohmann::json;

// Tokens as a file writes them: in GPT-2's letters for bytes, or sentence pieces as they are.
using Spelling = std::optional<std::string> (*)(std::string_view);

std::optional<std::string> as_it_is(std::string_view text) { return std::string(text); }

std::optional<std::string> add_merge_of(TokenizerBuilder& builder, Spelling spelling, std::string_view left,
                                        std::string_view right) {
  const auto a = spelling(left), b = spelling(right);
  if (!a || !b) return fmt::format("{} is not written in GPT-2's letters for bytes", base::in_quotes(a ? right : left));
  return builder.add_merge(*a, *b);
}

// "left right"
std::optional<std::string> add_merge_line(TokenizerBuilder& builder, Spelling spelling, std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == line.npos || line.find(' ', space + 1) != line.npos || space == 0 || space + 1 == line.size())
    return fmt::format("{} is not two tokens with a space between", base::in_quotes(line));
  return add_merge_of(builder, spelling, line.substr(0, space), line.substr(space + 1));
}

std::optional<std::string> add_merge_json(TokenizerBuilder& builder, Spelling spelling, const json& merge) {
  if (merge.is_string()) return add_merge_line(builder, spelling, merge.get_ref<const std::string&>());
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
    return add_merge_of(builder, spelling, merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>());
  return fmt::format(R"({} is neither "left right" nor ["left", "right"])", shown_json(merge));
}

void check_model(const json& root, const std::string& file) {
  const json& model = member(root, "model");
  if (!model.is_object())
    base::refuse_content(file, "no object 'model'; not a tokenizer.json (for encoder.json and vocab.bpe give their folder)");
  const std::string type = type_of(model);
  // Old files leave the type out; then the merges tell.
  if (type != "BPE" && !(type.empty() && model.contains("merges")))
    base::refuse_content(file, fmt::format("model type {}; only BPE is supported", base::in_quotes(type)));
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (const json& value = member(model, name); !value.is_null() && value != "")
      base::refuse_content(file, fmt::format("model.{} is {}; only BPEs without are supported", name, shown_json(value)));
  }
  if (const json& dropout = member(model, "dropout"); !dropout.is_null() && dropout != 0)
    base::refuse_content(file,
                         fmt::format("model.dropout is {}; only deterministic tokenizers are supported", shown_json(dropout)));
}

struct ListedToken {
  std::string name;
  std::int64_t id;
  bool special;
};

// What a normalizer would make of a name that it is applied to.
bool is_changed(const std::string& name, const json& root) {
  return !member(root, "normalizer").is_null() && (is_on(root["model"], "byte_fallback", false) || to_nfc(name) != name);
}

std::vector<ListedToken> added_tokens(const json& root, const std::string& file) {
  std::vector<ListedToken> out;
  const json& added = member(root, "added_tokens");
  if (!added.is_null() && !added.is_array()) base::refuse_content(file, "added_tokens is not a list");
  for (const json& token : added) {
    const json &name = member(token, "content"), &id = member(token, "id");
    if (!name.is_string() || !id.is_number_integer())
      base::refuse_content(file, fmt::format("added token {} has no content or no id", shown_json(token)));
    for (const char* field : {"single_word", "lstrip", "rstrip"}) {
      if (is_on(token, field, false))
        base::refuse_content(
            file, fmt::format("added token {} has {} on; only names cut out exactly are supported", shown_json(name), field));
    }
    out.push_back({name.get<std::string>(), id.get<std::int64_t>(), is_on(token, "special", false)});
    if (!out.back().special && is_on(token, "normalized", false) && is_changed(out.back().name, root))
      base::refuse_content(file,
                           fmt::format("added token {} has normalized on, and the normalizer changes it", shown_json(name)));
  }
  return out;
}

// Also finds the bytes' tokens. Those with `names` have been added.
void add_vocabulary(TokenizerBuilder& builder, Spelling spelling, const json& vocabulary,
                    const std::set<std::string_view>& names, const std::string& file) {
  if (!vocabulary.is_object()) base::refuse_content(file, "the vocabulary is not an object of tokens and ids");
  for (const auto& [token, id] : vocabulary.items()) {
    if (!id.is_number_integer())
      base::refuse_content(file, fmt::format("token {} has the id {}", base::in_quotes(token), shown_json(id)));
    if (names.contains(token)) continue;
    auto text = spelling(token);
    if (!text)
      base::refuse_content(file, fmt::format("token {} is not written in GPT-2's letters for bytes", base::in_quotes(token)));
    check_content(file, builder.add_token(id.get<std::int64_t>(), *std::move(text)));
  }
  check_content(file, builder.find_bytes());
}

// The vocabulary, with the added tokens.
void add_tokens(TokenizerBuilder& builder, Spelling spelling, const json& root, const std::string& file) {
  const json& vocabulary = member(root["model"], "vocab");
  const std::vector<ListedToken> added = added_tokens(root, file);
  builder.expect(vocabulary.size() + added.size());
  std::set<std::string_view> names, listed;
  for (const ListedToken& token : added) {
    if (!listed.insert(token.name).second)
      base::refuse_content(file, fmt::format("added token {} occurs twice", base::in_quotes(token.name)));
    const json& id = member(vocabulary, token.name.c_str());
    if (!id.is_null() && id != token.id)
      base::refuse_content(file, fmt::format("added token {} has id {}, but {} in the vocabulary", base::in_quotes(token.name),
                                             token.id, shown_json(id)));
    // A name that the vocabulary spells alike may take part in merges.
    if (!token.special && !id.is_null() && spelling(token.name) == token.name && token.name.find(' ') == token.name.npos)
      continue;
    check_content(file, token.special ? builder.add_special(token.id, token.name) : builder.add_cut(token.id, token.name));
    names.insert(token.name);
  }
  add_vocabulary(builder, spelling, vocabulary, names, file);
  for (const ListedToken& token : added) {
    if (!names.contains(token.name)) builder.cut_out(static_cast<Token>(token.id), token.name);
  }
}

void add_merges(TokenizerBuilder& builder, Spelling spelling, const json& model, const std::string& file) {
  const json& merges = member(model, "merges");
  if (!merges.is_array()) base::refuse_content(file, "model.merges is not a list");
  for (std::size_t i = 0; i < merges.size(); ++i)
    check_content(fmt::format("{}: merge {}", file, i + 1), add_merge_json(builder, spelling, merges[i]));
}

// What tokenizer_config.json says goes before what the post-processor does.
void set_ends(TokenizerBuilder& builder, const json& root, const std::filesystem::path& path) {
  const TextEnds ends = text_ends(root, path.string());
  const auto config = path.filename() == "tokenizer.json" ? tokenizer_config(path.parent_path()) : std::nullopt;
  const std::string where = config ? config->path.string() : path.string();
  const std::optional<bool> add_bos = config ? config->add_bos : std::nullopt;
  if (add_bos == true && !config->bos) base::refuse_content(where, "add_bos_token is on, but there is no bos_token");
  const auto& beginning = add_bos == true ? config->bos : ends.beginning;
  if (beginning && add_bos != false) check_content(add_bos ? where : path.string(), builder.begin_with(*beginning));
  if (config && config->eos) {
    check_content(where, builder.end_with(*config->eos));
  } else if (ends.end) {
    check_content(path.string(), builder.end_with(*ends.end));
  }
  check_content(path.string(), builder.find_no_end());
}

}  // namespace

Tokenizer read_tokenizer_json(const std::filesystem::path& path) {
  const std::string file = path.string();
  const json root = json_of_file(path);
  check_model(root, file);
  const json& model = root["model"];
  const TextSteps steps = text_steps(root, file);
  const Spelling spelling = steps.prefix ? as_it_is : from_letters;
  TokenizerBuilder builder = base::with_context(
      file, [&] { return steps.prefix ? TokenizerBuilder(*steps.prefix) : TokenizerBuilder(steps.pattern); });
  if (steps.composed) builder.compose();
  add_tokens(builder, spelling, root, file);
  add_merges(builder, spelling, model, file);
  if (const json& unknown = member(model, "unk_token"); unknown.is_string()) builder.name_unknown(unknown.get<std::string>());
  if (is_on(model, "ignore_merges", false)) {
    if (steps.prefix) base::refuse_content(file, "model.ignore_merges is on, which sentence pieces do not support");
    builder.keep_whole();
  }
  if (const auto token = builder.find_inner_space(); token && steps.splits_words)
    base::refuse_content(file,
                         fmt::format("pre_tokenizer Metaspace has split on, but merges make {}", base::in_quotes(*token)));
  set_ends(builder, root, path);
  return builder.build();
}

Tokenizer read_gpt2_files(const std::filesystem::path& encoder, const std::filesystem::path& merges) {
  TokenizerBuilder builder{std::string(kGpt2Pattern)};
  const json vocabulary = json_of_file(encoder);
  builder.expect(vocabulary.size());
  if (const json& end = member(vocabulary, kDocumentEnd.data()); end.is_number_integer())
    check_content(encoder.string(), builder.add_special(end.get<std::int64_t>(), std::string(kDocumentEnd)));
  add_vocabulary(builder, from_letters, vocabulary, {kDocumentEnd}, encoder.string());
  each_line(base::read_file(merges), [&](std::size_t number, std::string_view line) {
    if (line.empty() || (number == 1 && line.starts_with("#version"))) return;
    check_content(fmt::format("{}:{}", merges.string(), number), add_merge_line(builder, from_letters, line));
  });
  return builder.build();
}

}  // namespace cautious::data
