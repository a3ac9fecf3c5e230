"""What the programs say about themselves, as manual pages and for completion, so that neither can go stale.

usage: manual.py PROGRAM OUT    writes OUT/man1/cautious.1, OUT/man1/cautious-VERB.1 of every verb, and OUT/cautious.bash
"""
import fnmatch
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
COLUMN = 28  # where meanings begin (src/cli/help.cc)
# Keys that cautious compare refuses (kComparisonDecides of src/study/compare.cc).
COMPARE_DECIDES = {"--model.preset", "--data.path", "--train.steps", "--optimizer.name", "--optimizer.lr", "--optimizer.weight_decay",
                   "--optimizer.decay"}


class Program:
    def __init__(self, path):
        self.path = path

    def says(self, *words):
        """Standard output, or nothing if the command fails, as verbs of libtorch do in a build without it."""
        done = subprocess.run([self.path, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return done.stdout if done.returncode == 0 else ""


class Help:
    """The help of a verb: `about`, `examples`, `more` (paragraphs), `usage`, `sections` of (left side, meaning)."""

    def __init__(self, text):
        self.text, self.examples, self.more, self.sections = text, [], [], {}
        blocks = [block.split("\n") for block in text.strip("\n").split("\n\n")]
        self.about, self.usage = blocks[0][0], ""
        for lines in blocks[1:]:
            head = lines[0]
            if head == "Examples:":
                self.examples = lines[1:]
            elif head.startswith("Usage: "):
                self.usage = head.removeprefix("Usage: ")
            elif head.endswith(":") and len(lines) > 1 and lines[1].startswith("  "):
                self.sections[head[:-1]] = entries(lines[1:])
            else:
                self.more.append(lines)

    def verbs(self):
        return [left for name in ("Verbs", "Subcommands") for left, _ in self.sections.get(name, [])]

    def arguments(self):
        return self.sections.get("Arguments", [])

    def options(self):
        """(names, value, meaning) of each."""
        for name, rows in self.sections.items():
            if name not in ("Verbs", "Subcommands", "Arguments"):
                for left, meaning in rows:
                    names, _, value = left.partition(" ")
                    yield names.split(","), value.replace("(required)", "").strip(), meaning


def entries(lines):
    result = []
    for line in lines:
        if line.startswith(" " * COLUMN):
            result[-1][1].append(line[COLUMN:])
        elif len(line) > COLUMN and line[COLUMN - 1] == " ":
            result.append((line[:COLUMN].strip(), [line[COLUMN:]]))
        else:
            result.append((line.strip(), []))
    return [(left, "\n".join(meaning)) for left, meaning in result]


def collect(program, *words):
    """{"lab toy": Help, ...} of the program and of every verb, those below a verb included."""
    found = Help(program.says(*words, "--help") or "-\n")
    if found.about == "-":
        return {}
    result = {" ".join(words): found}
    for verb in found.verbs():
        result.update(collect(program, *words, verb))
    return result


# Completion

def choices(text):
    """The names in a list "a, b, c"; none where it is a range or prose. A name with a capital letter stands for others."""
    words = [word.strip() for word in text.split(",")]
    if len(words) < 2 or any(word.isdigit() or not re.fullmatch(r"[a-z0-9][\w.:-]*", word) for word in words):
        return []
    return [word for word in words if word == word.lower()]


def column(text):
    """The names in the first column of a table under its head."""
    return re.findall(r"^([a-z0-9][\w.-]*)  +\S", text, re.M)[1:]


class Values:
    """What can stand behind an option or as an argument: names, and @file or @dir."""

    def __init__(self, program, helps, keys):
        self.program, self.keys, self.sets = program, keys, {}
        for line in program.says("data", "list").split("\n")[1:-1]:
            name, content = line.split()[:2]
            self.sets.setdefault(content, []).append(name)
        self.presets = self.of_meaning(next((m for n, _, m in helps["train"].options() if "--preset" in n), "")
                                       if "train" in helps else "")

    def of_meaning(self, meaning):
        flat = " ".join(meaning.split("\n  ")[0].split())  # without lines on the recipes' own values
        result = []
        for listed in re.findall(r"valid: ([^;()]*)", flat):
            result += choices(listed)
        for words in re.findall(r"as printed by 'cautious ([^']*)'", flat):
            result += column(self.program.says(*words.split()))
        known = [("known set of instructions", ["instructions"]), ("known set", ["text", "images", "instructions", "benchmarks"]),
                 ("known model", ["model"])]
        for words, contents in known:
            if words in flat:
                return result + [name for content in contents for name in self.sets.get(content, [])]
        return result

    def of(self, value, meaning):
        if value.startswith("KEY=VALUE"):
            listed = ", ".join(re.findall(r"valid: (.*)", " ".join(meaning.split()))).split(", ")
            return [f"{key[2:]}=" for key in self.keys for name in listed if fnmatch.fnmatch(key[2:], name)] + ["@list"]
        names = self.of_meaning(meaning) or value.split("|") * ("|" in value)
        if not names and ("preset of cautious train" in meaning or value == "NAMES" and meaning.startswith("Models")):
            names = self.presets
        kind = value.rstrip(".").lower()
        if kind in ("dir", "folder"):
            names = names + ["@dir"]
        elif kind in ("file", "path", "model", "run", "plan", "trace", "image", "problem") or \
                value == "NAME" and "a folder" in meaning:
            names = names + ["@file"]
        return names + ["@list"] * (value == "NAMES")


def keys(program):
    """{"--optimizer.name": (values, meaning)}: every key that a run may have, whatever its task, rule and decay."""
    text = program.says("train", "--print-config")
    if not text:
        return {}
    rules, decays = (choices(re.search(rf"^\[optimizer\]\n(?:.+\n)*?# {key} = .*\| (.*)$", text, re.M)[1])
                     for key in ("name", "decay"))
    runs = [["train"], ["train", "--preset", "vit-nano-4"], ["finetune"]]
    for i in range(max(len(rules), len(decays))):  # each of them once
        runs.append(["train", f"--optimizer.name={rules[i % len(rules)]}", f"--optimizer.decay={decays[i % len(decays)]}"])
    found = {}
    for run in runs:
        section = ""
        for line in program.says(*run, "--print-config").split("\n"):
            if match := re.fullmatch(r"\[(.*)\]", line):
                section = match[1] + "."
            elif match := re.fullmatch(r"(?:# )?([a-z_0-9]+) = .*?# (.*) \| (.*)", line):
                values, _ = found.setdefault(f"--{section}{match[1]}", ([], f"{match[2]}; valid: {match[3]}"))
                values += choices(match[3]) or place(match[3])
    return found


def place(valid):
    return ["@dir"] if "directory" in valid or valid == "a folder" else ["@file"] if re.search("file|path|folder", valid) else []


def completion(program, helps, settings):
    values, table = Values(program, helps, settings), {}
    for verb, told in helps.items():
        if told.verbs():
            table[f"{verb} VERBS"] = told.verbs()
        for left, meaning in told.arguments():
            table.setdefault(f"{verb} ARGUMENT", []).extend(values.of(left.split()[0], meaning))
        table[f"{verb} OPTIONS"] = [name for names, _, _ in told.options() for name in names if name.startswith("--")]
        for names, value, meaning in told.options():
            if value:
                table.update({f"{verb} {name}": values.of(value, meaning) for name in names})
    table["KEYS"] = [f"{key}=" for key in settings]
    table["compare KEYS"] = [f"{key}=" for key in settings if key not in COMPARE_DECIDES]
    also = {"--data.path": "compare --data", "--data.tokenizer": "tokenize --tokenizer", "--model.preset": "train --preset"}
    for key, (known, _) in settings.items():
        table[f"KEY {key}"] = known + table.get(also.get(key), [])
    rows = ""
    for where, names in table.items():
        words = sorted(dict.fromkeys(names), key=lambda name: name.startswith("@"))
        rows += f"  ['{where}']='{' '.join(words)}'\n"
    return (HERE / "cautious.bash").read_text().replace("  # TABLE\n", rows)


# Manual pages

def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha")
    return re.sub(r"^([.])", r"\\&\1", text.replace("~", "\\(ti"), flags=re.M)


def verbatim(lines):
    return ".nf\n" + "".join(roff(line.removeprefix("  ")) + "\n" for line in lines) + ".fi\n"


def rows(listed):
    result = ""
    for left, meaning in listed:
        names, _, value = left.partition(" ")
        bold = ", ".join(f"\\fB{roff(name)}\\fR" for name in names.split(","))
        result += f".TP\n{bold}{' ' + roff(value) if value else ''}\n" + roff(meaning).replace("\n  ", "\n.br\n") + "\n"
    return result


def page(verb, helps, status, settings):
    told, name = helps[verb], "cautious-" + verb
    below = [key for key in helps if key.startswith(verb + " ")]
    text = f'.TH {name.upper().replace("-", chr(92) + "-")} 1 "" "cautious" "User Commands"\n.nh\n.ad l\n.SH NAME\n'
    text += f"{roff(name)} \\- {roff(told.about[0].lower() + told.about[1:].rstrip('.'))}\n.SH SYNOPSIS\n"
    text += "\n.br\n".join(f"\\fB{roff(helps[key].usage)}\\fR" for key in below or [verb]) + "\n.SH DESCRIPTION\n"
    text += roff(told.about) + "\n"
    for paragraph in told.more:
        text += ".PP\n" + roff("\n".join(paragraph)) + "\n"
    for key in [verb, *below]:
        if key != verb:
            text += f".SH {roff(key.upper())}\n{roff(helps[key].about)}\n"
            for paragraph in helps[key].more:
                text += ".PP\n" + roff("\n".join(paragraph)) + "\n"
        for section, listed in helps[key].sections.items():
            head = f".SH {roff(section.upper())}\n" if key == verb else f".SS {roff(section)}\n"
            text += head + rows(listed)
    if verb == "train" and settings:
        text += ".SH CONFIGURATION\n" + rows((f"{key}=VALUE", meaning) for key, (_, meaning) in settings.items())
    examples = list(dict.fromkeys(line for key in [verb, *below] for line in helps[key].examples))
    text += ".SH EXAMPLES\n" + verbatim(examples) + status + ".SH SEE ALSO\n.BR cautious (1)"
    others = [other for other in helps if other and " " not in other and other != verb]
    return text + "".join(f",\n.BR cautious\\-{other} (1)" for other in others) + "\n"


def main():
    program, out = Program(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    helps, settings = collect(program), keys(program)
    front = (HERE / "cautious.1").read_text()
    status = re.search(r"^\.SH EXIT STATUS\n.*?(?=^\.SH)", front, re.S | re.M)[0]
    (out / "man1").mkdir(parents=True, exist_ok=True)
    pages = [verb for verb in helps if verb and " " not in verb]
    for verb in pages:
        (out / "man1" / f"cautious-{verb}.1").write_text(page(verb, helps, status, settings))
    also = ",\n".join(f".BR cautious\\-{verb} (1)" for verb in pages)
    (out / "man1" / "cautious.1").write_text(front.replace(".SH SEE ALSO\n", f".SH SEE ALSO\n{also}.\n.PP\n"))
    (out / "cautious.bash").write_text(completion(program, helps, settings))


if __name__ == "__main__":
    main()
