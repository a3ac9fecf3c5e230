// Benchmarks: small files in every format; the prompts letter by letter; examples; tokens of choices; files that are refused.
#include "data/tasks/task.h"

#include <fmt/format.h>

#include <cstdlib>
#include <set>

#include "data_fixture.h"
#include "tokenizer_fixture.h"

namespace cautious::data {
namespace tasks_test {

using Texts = std::vector<std::string>;

class Tasks : public DataFiles {
 protected:
  Task read(const std::string& name, bool examples = false) const { return read_task(name, folder_, examples); }
  TaskDoc only(const std::string& name, const std::string& file, const std::string& line) const {
    write(file, line + "\n");
    const Task task = read(name);
    EXPECT_EQ(task.docs.size(), 1u);
    return task.docs.front();
  }
  std::string refusal(const std::string& name, const std::string& file, const std::string& content) const {
    write(file, content);
    return line_of(Fault::data, [&] { read(name); });
  }
  void zip(const std::string& file) const {
    EXPECT_EQ(std::system(fmt::format("gzip '{}'", (folder_ / file).string()).c_str()), 0);
  }
};

TEST_F(Tasks, HellaSwag) {
  const TaskDoc doc =
      only("hellaswag", "hellaswag/validation.jsonl",
           R"({"ind": 4, "activity_label": "Removing ice from car", "ctx_a": "Then, the man writes over [step] the )"
           R"(snow.", "ctx_b": "then HE", "ctx": "x", "label": "3", "endings": [", adds wax.", "  lifts [title] a )"
           R"(board [substeps] up.", "[header] stops", "goes on."]})");
  EXPECT_EQ(doc.prompt, "Removing ice from car: Then, the man writes over the snow. Then he");
  EXPECT_EQ(doc.continuations, (Texts{" , adds wax.", " lifts. a board up.", "  stops", " goes on."}));
  EXPECT_EQ(doc.gold, std::vector<std::size_t>{3});
}

TEST_F(Tasks, HellaSwagOfLlmC) {
  const TaskDoc doc = only("hellaswag", "hellaswag_val.jsonl",
                           R"({"ctx": "A man sits. He", "label": 1, "endings": ["eats.", "sleeps.", "runs.", "sings."]})");
  EXPECT_EQ(doc.prompt, "A man sits. He");
  EXPECT_EQ(doc.continuations[1], " sleeps.");
  EXPECT_EQ(doc.gold[0], 1u);
}

TEST_F(Tasks, Arc) {
  const std::string line =
      R"({"id": "x", "question": "Which is hot?", "choices": {"text": ["ice", "fire", "rain"], "label": ["1", "2", "3"]}, )"
      R"("answerKey": "2"})";
  const TaskDoc doc = only("arc_easy", "ARC-Easy/test.jsonl", line);
  EXPECT_EQ(doc.prompt, "Question: Which is hot?\nAnswer:");
  EXPECT_EQ(doc.continuations, (Texts{" ice", " fire", " rain"}));
  EXPECT_EQ(doc.gold[0], 1u);
  EXPECT_EQ(only("arc_challenge", "arc_challenge.jsonl", line).prompt, doc.prompt);
}

TEST_F(Tasks, Piqa) {
  const TaskDoc doc = only("piqa", "piqa/validation.jsonl", R"({"goal": "boil", "sol1": "heat", "sol2": "cool", "label": 0})");
  EXPECT_EQ(doc.prompt, "Question: boil\nAnswer:");
  EXPECT_EQ(doc.continuations, (Texts{" heat", " cool"}));
  EXPECT_EQ(doc.gold[0], 0u);
}

TEST_F(Tasks, CommonsenseQa) {
  const TaskDoc doc = only("csqa", "commonsense_qa/validation.jsonl",
                           R"({"question": " Where? ", "choices": {"label": ["A", "B", "C", "D", "E"], "text": )"
                           R"(["bank", "home", "sea", "sky", "mall"]}, "answerKey": "E"})");
  EXPECT_EQ(doc.prompt, "Question: Where?\nA. bank\nB. home\nC. sea\nD. sky\nE. mall\nAnswer:");
  EXPECT_EQ(doc.continuations, (Texts{" A", " B", " C", " D", " E"}));
  EXPECT_EQ(doc.gold[0], 4u);
}

TEST_F(Tasks, WinoGrandeScoresWhatFollowsEitherName) {
  const TaskDoc doc =
      only("winogrande", "winogrande/validation.jsonl",
           R"({"sentence": "Ann beat Sue because _  was fast.", "option1": "Ann", "option2": "Sue", "answer": "1"})");
  EXPECT_EQ(doc.openings, (Texts{"Ann beat Sue because Ann", "Ann beat Sue because Sue"}));
  EXPECT_EQ(doc.continuations, (Texts{" was fast.", " was fast."}));
  EXPECT_EQ(doc.gold[0], 0u);
}

TEST_F(Tasks, AgiEval) {
  const TaskDoc whole =
      only("agieval", "agieval/lsat_ar/test.jsonl",
           R"({"query": "Q: Who? A: Among A through C, the answer is", "choices": ["(A)x", "(B)y", "(C)z"], "gold": [0, 2]})");
  EXPECT_EQ(whole.prompt, "Q: Who? A: Among A through C, the answer is");
  EXPECT_EQ(whole.continuations[2], " (C)z");
  EXPECT_EQ(whole.gold, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(whole.subset, "lsat_ar");
  const TaskDoc parts =
      only("agieval", "agieval/lsat_ar/test.jsonl",
           R"({"passage": "Long.", "question": "Who?", "options": ["(A)x", "(B)y"], "label": "B", "answer": null})");
  EXPECT_EQ(parts.prompt, "Long.Q: Who? Answer Choices: (A)x (B)y\nA: Among A through B, the answer is");
  EXPECT_EQ(parts.gold[0], 1u);
}

std::string mmlu_line(int number, const std::string& subject) {
  return fmt::format(R"({{"question": " q{}? ", "subject": "{}", "choices": ["w", "x", "y", "z"], "answer": {}}})", number,
                     subject, number % 4) +
         "\n";
}

TEST_F(Tasks, MmluHasSubjectsAndTheFirstExamplesOfEach) {
  for (const std::string subject : {"us_history", "anatomy"}) {
    write(fmt::format("mmlu/{}/test.jsonl", subject), mmlu_line(1, subject) + mmlu_line(2, subject));
    write(fmt::format("mmlu/{}/dev.jsonl", subject), mmlu_line(5, subject) + mmlu_line(6, subject) + mmlu_line(7, subject));
  }
  const Task task = read("mmlu", true);
  EXPECT_EQ(task.docs.size(), 4u);
  EXPECT_EQ(task.subsets.at("anatomy"), (std::vector<std::size_t>{0, 1}));
  const std::string letters = "\nA. w\nB. x\nC. y\nD. z\nAnswer:";
  const std::string start = "The following are multiple choice questions (with answers) about us history.\n\n";
  EXPECT_EQ(context_of(task, 2, 0, 0), start + "q1?" + letters);
  for (const std::uint64_t seed : {0, 9}) {
    EXPECT_EQ(context_of(task, 3, 2, seed), start + "q5?" + letters + " B\n\n" + "q6?" + letters + " C\n\n" + "q2?" + letters);
  }
  EXPECT_EQ(line_of(Fault::data, [&] { context_of(task, 3, 4, 0); }),
            "mmlu of us_history: --shots is 4, but there are only 3 examples");
}

TEST_F(Tasks, MmluInOneFile) {
  write("mmlu/test.jsonl", mmlu_line(1, "anatomy") + mmlu_line(2, "virology") + mmlu_line(3, "anatomy"));
  const Task task = read("mmlu", true);
  EXPECT_EQ(task.subsets.at("anatomy"), (std::vector<std::size_t>{0, 2}));
  EXPECT_TRUE(has(context_of(task, 0, 1, 0), "q3?"));  // without dev.jsonl, the others of the subject
  EXPECT_TRUE(has(context_of(task, 2, 1, 0), "q1?"));
  EXPECT_EQ(line_of(Fault::data, [&] { context_of(task, 1, 1, 0); }),
            "mmlu of virology: --shots is 1, but there are only 0 examples");
}

std::string piqa_lines(int count, const std::string& word) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += fmt::format(R"({{"goal": "{}{}", "sol1": "a{}", "sol2": "b", "label": 0}})", word, i, i) + "\n";
  }
  return lines;
}

TEST_F(Tasks, ExamplesAreDrawnForEachItemAndAreNeverTheItem) {
  write("piqa/validation.jsonl", piqa_lines(8, "v"));
  const Task alone = read("piqa", true);
  std::set<std::string> contexts;
  for (std::size_t i = 0; i < 8; ++i) {
    const std::string context = context_of(alone, i, 7, 3);
    contexts.insert(context);
    for (std::size_t j = 0; j < 8; ++j) {  // all others once, with their answer, the item last and without
      const std::string question = fmt::format("Question: v{}\nAnswer:", j);
      EXPECT_EQ(context.find(fmt::format("{} a{}\n\n", question, j)) != context.npos, i != j);
      EXPECT_EQ(context.find(question), context.rfind(question));
    }
    EXPECT_TRUE(context.ends_with(fmt::format("\n\nQuestion: v{}\nAnswer:", i)));
    EXPECT_EQ(context, context_of(read("piqa", true), i, 7, 3));
  }
  EXPECT_EQ(contexts.size(), 8u);
  EXPECT_NE(context_of(alone, 0, 3, 3), context_of(alone, 0, 3, 4));
  EXPECT_EQ(line_of(Fault::data, [&] { context_of(alone, 0, 8, 3); }), "piqa: --shots is 8, but there are only 7 examples");
  write("piqa/train.jsonl", piqa_lines(9, "t"));
  EXPECT_EQ(read("piqa", false).files.size(), 1u);
  const Task trained = read("piqa", true);
  EXPECT_EQ(trained.files.size(), 2u);
  EXPECT_FALSE(has(context_of(trained, 0, 9, 0), "v1"));
  EXPECT_TRUE(has(context_of(trained, 0, 9, 0), "t8"));
}

TEST_F(Tasks, AnExampleOfWinoGrandeIsTheRightSentence) {
  write("winogrande/validation.jsonl",
        "{\"sentence\": \"A _ b.\", \"option1\": \"x\", \"option2\": \"y\", \"answer\": \"2\"}\n"
        "{\"sentence\": \"C _ d.\", \"option1\": \"x\", \"option2\": \"y\", \"answer\": \"1\"}\n");
  EXPECT_EQ(context_of(read("winogrande"), 1, 1, 0), "A y b.\n\n");
}

std::string request(int doc, int index, const std::string& context, const std::string& choice, int label) {
  return fmt::format(
             R"({{"request_type": "loglikelihood", "doc": {{"id": "q"}}, "request": {{"context": "{}", "continuation": "{}"}}, )"
             R"("idx": {}, "task_name": "t", "doc_id": {}, "native_id": 1, "label": {}}})",
             context, choice, index, doc, label) +
         "\n";
}

TEST_F(Tasks, RequestsOfOlmo) {
  write("hellaswag/requests.jsonl", request(0, 0, "ctx", " a", 1) + request(0, 1, "ctx", " b", 1) +
                                        request(1, 0, "one", " c", 0) + request(1, 1, "two", " c", 0) +
                                        request(1000000, 0, "", " c", 0));
  zip("hellaswag/requests.jsonl");
  const Task task = read("hellaswag");
  ASSERT_EQ(task.docs.size(), 2u);
  EXPECT_EQ(context_of(task, 0, 0, 0), "ctx");
  EXPECT_EQ(task.docs[0].continuations, (Texts{" a", " b"}));
  EXPECT_EQ(task.docs[0].gold[0], 1u);
  EXPECT_TRUE(task.docs[0].openings.empty());
  EXPECT_EQ(task.docs[1].openings, (Texts{"one", "two"}));
  EXPECT_TRUE(has(line_of(Fault::usage, [&] { context_of(task, 0, 5, 0); }), "hellaswag: --shots is 5, but the prompts of"));
  const auto refused = [&](const std::string& lines) { return refusal("piqa", "piqa/requests.jsonl", lines); };
  EXPECT_TRUE(has(refused(request(0, 1, "c", " a", 0)), "requests.jsonl: line 1: idx is 1, but the choices before it are 0"));
  EXPECT_TRUE(
      has(refused(request(0, 0, "c", " a", 3) + request(1, 0, "c", " a", 0)), "line 1: label is 3, but the doc has 1 choices"));
  EXPECT_TRUE(has(refused(request(0, 0, "c", " a", 1)), "line 1: label is 1"));
  EXPECT_TRUE(has(refused("{\"request_type\": \"generate\"}"), "line 1: request_type is 'generate'; valid: loglikelihood"));
  EXPECT_TRUE(has(refused(request(1000000, 0, "", " c", 0)), "requests.jsonl: no items of piqa"));
}

TEST_F(Tasks, CompressedFilesAndSingleFiles) {
  const auto file = write("piqa_val.jsonl", piqa_lines(3, "g"));
  EXPECT_EQ(read_task("piqa", file, false).docs.size(), 3u);
  zip("piqa_val.jsonl");
  EXPECT_EQ(read("piqa").docs.size(), 3u);
  EXPECT_EQ(read("piqa").files, std::vector<std::filesystem::path>{folder_ / "piqa_val.jsonl.gz"});
}

TEST_F(Tasks, MalformedItemsAreRefusedWithTheirLine) {
  const auto refused = [&](const std::string& line) {
    return refusal("hellaswag", "hellaswag.jsonl",
                   R"({"ctx": "a", "label": 0, "endings": ["x", "y"]})"
                   "\n\n" +
                       line);
  };
  EXPECT_TRUE(has(refused(R"({"ctx": "a", "endings": ["x", "y"]})"),
                  "hellaswag.jsonl: line 3: no field 'label'; fields: 'ctx', 'endings'"));
  EXPECT_TRUE(has(refused(R"({"ctx": "a", "label": "", "endings": ["x", "y"]})"),
                  "line 3: field 'label' is '\"\"', not one of the 2 choices; valid: 0 to 1"));
  EXPECT_TRUE(
      has(refused(R"({"ctx": "a", "label": 2, "endings": ["x", "y"]})"), "field 'label' is '2', not one of the 2 choices"));
  EXPECT_TRUE(has(refused(R"({"ctx": "a", "label": 0.5, "endings": ["x", "y"]})"), "field 'label' is '0.5'"));
  EXPECT_TRUE(
      has(refused(R"({"ctx": "a", "label": 0, "endings": ["x"]})"), "line 3: field 'endings' has 1 texts; valid: 2 to 26"));
  EXPECT_TRUE(has(refused(R"({"ctx": "a", "label": 0, "endings": ["x", 7]})"), "line 3: field 'endings' has '7', not a text"));
  EXPECT_TRUE(has(refused(R"({"ctx": "a", "label": 0, "endings": "xy"})"), "field 'endings' is of type string, not a list"));
  EXPECT_TRUE(has(refused(R"({"ctx": 1, "label": 0, "endings": ["x", "y"]})"), "field 'ctx' is of type number, not a string"));
  EXPECT_TRUE(has(refused("{"), "line 3: not JSON"));
  EXPECT_TRUE(has(refused("7"), "line 3: a JSON number, not an object"));
  EXPECT_TRUE(
      has(refusal("winogrande", "winogrande.jsonl", R"({"sentence": "no gap"})"), "line 1: no _ in the sentence 'no gap'"));
  EXPECT_TRUE(has(refusal("csqa", "csqa.jsonl", R"({"question": "q", "choices": ["a"], "answerKey": "A"})"),
                  "line 1: field 'choices' is of type array, not {\"text\""));
  EXPECT_TRUE(has(refusal("csqa", "csqa.jsonl",
                          R"({"question": "q", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": "C"})"),
                  "field 'answerKey' is 'C', and there are 2 choices with the labels A, B"));
  EXPECT_TRUE(has(refusal("mmlu", "mmlu.jsonl", R"({"question": "q", "choices": ["a", "b", "c", "d"], "answer": 1})"),
                  "line 1: no field 'subject'"));
  EXPECT_TRUE(has(refusal("agieval", "agieval.jsonl", R"({"query": "q", "choices": ["a", "b"], "gold": []})"),
                  "field 'gold' names no choice"));
}

TEST_F(Tasks, MissingFilesAndNamesSayWhatThereCouldBe) {
  EXPECT_TRUE(
      has(line_of(Fault::data, [&] { read("mmlu"); }),
          ": no items of mmlu; looked for mmlu/test.jsonl, mmlu/requests.jsonl, mmlu/<subset>/test.jsonl, mmlu.jsonl and "
          "mmlu_val.jsonl, also with .gz"));
  EXPECT_TRUE(has(refusal("piqa", "piqa.jsonl", ""), "piqa.jsonl: is empty"));
  EXPECT_TRUE(has(refusal("piqa", "piqa.jsonl", "\n\n"), "piqa.jsonl: has no documents, only blank lines"));
  EXPECT_TRUE(has(line_of(Fault::data, [&] { read_task("piqa", folder_ / "nowhere", false); }), "--data: no file or folder"));
  EXPECT_TRUE(has(line_of(Fault::usage, [&] { read("helaswag"); }), "no task named 'helaswag'; did you mean 'hellaswag'?"));
}

TEST_F(Tasks, TokensOfChoices) {
  const Tokenizer bytes = Tokenizer::bytes();
  const TaskDoc doc{"", {}, {" b", " cd"}, {0}, ""};
  const std::vector<ChoiceTokens> plain = tokens_of(doc, "a", bytes);
  EXPECT_EQ(plain[0].tokens, (std::vector<std::int64_t>{'a', ' ', 'b'}));
  EXPECT_EQ(plain[0].scored, 2);
  EXPECT_EQ(plain[1].scored, 3);
  const std::vector<ChoiceTokens> spaced = tokens_of(doc, "a \n", bytes);  // the spaces go to the choice
  EXPECT_EQ(spaced[0].tokens, (std::vector<std::int64_t>{'a', ' ', '\n', ' ', 'b'}));
  EXPECT_EQ(spaced[0].scored, 4);
  const std::vector<ChoiceTokens> empty = tokens_of(doc, "", bytes);
  EXPECT_EQ(empty[0].tokens, (std::vector<std::int64_t>{0, ' ', 'b'}));  // byte 0 ends a document
  EXPECT_EQ(empty[0].scored, 2);
  const std::vector<ChoiceTokens> opened = tokens_of({"", {"x", "y"}, {" b", " b"}, {0}, ""}, "a", bytes);
  EXPECT_EQ(opened[1].tokens, (std::vector<std::int64_t>{'a', 'y', ' ', 'b'}));
}

TEST_F(Tasks, TokensThatMergeAndTheBeginningOfTexts) {
  write("tokenizer.json", json_text("{}", R"({"added_tokens": [{"id": 265, "content": "<|endoftext|>", "special": true},
      {"id": 266, "content": "<s>", "special": true}]})"));
  const TaskDoc doc{"", {}, {"b", " the"}, {0}, ""};
  const std::vector<ChoiceTokens> plain = tokens_of(doc, "xa", Tokenizer::read(folder_));
  EXPECT_EQ(plain[0].tokens, (std::vector<std::int64_t>{'x', 'a', 'b'}));  // "ab" is one token, as many as "a": b alone
  EXPECT_EQ(plain[0].scored, 1);
  EXPECT_EQ(plain[1].tokens, (std::vector<std::int64_t>{'x', 'a', 258}));
  EXPECT_EQ(tokens_of(doc, "", Tokenizer::read(folder_))[0].tokens, (std::vector<std::int64_t>{265, 'b'}));
  write("tokenizer_config.json", R"({"bos_token": "<s>", "add_bos_token": true})");
  const std::vector<ChoiceTokens> begun = tokens_of(doc, "xa", Tokenizer::read(folder_));
  EXPECT_EQ(begun[1].tokens, (std::vector<std::int64_t>{266, 'x', 'a', 258}));
  EXPECT_EQ(begun[1].scored, 1);
  EXPECT_EQ(tokens_of(doc, "", Tokenizer::read(folder_))[0].tokens, (std::vector<std::int64_t>{266, 'b'}));
}

}  // namespace tasks_test
}  // namespace cautious::data
