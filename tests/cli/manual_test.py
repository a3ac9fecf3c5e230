"""Manual pages and completion, made of the programs' own help: nothing is left out, groff is content, a Tab starts nothing."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
GENERATOR = pathlib.Path(__file__).resolve().parents[2] / "share/manual.py"
TRAINS = (PROGRAM.parent / "cautious-train").exists()
# What bash does when Tab is pressed at the end of the line; "cautious" itself must not be needed.
TAB = r"""
source "$1"
cautious() { echo started; }
COMP_LINE=$2 COMP_POINT=${#2}
read -ra COMP_WORDS <<<"${2//=/ = }"
[[ $2 == *" " || $2 == *= ]] && COMP_WORDS+=("")
[[ $2 == *= ]] && unset "COMP_WORDS[-1]"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_cautious cautious "" ""
printf '%s\n' "${COMPREPLY[@]}"
"""


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.out = pathlib.Path(folder.name)
        subprocess.run([sys.executable, "-B", GENERATOR, PROGRAM, cls.out], check=True)

    def help(self, *verb):
        done = subprocess.run([PROGRAM, *verb, "--help"], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else ""

    def verbs(self, *above):
        listed = re.search(r"^(?:Verbs|Subcommands):\n((?:  .*\n)+)", self.help(*above), re.M)
        return re.findall(r"^  (\S+)", listed[1], re.M) if listed else []

    def tab(self, line, files=()):
        with tempfile.TemporaryDirectory() as folder:
            for name in files:
                pathlib.Path(folder, name).mkdir() if name.endswith("/") else pathlib.Path(folder, name).touch()
            done = subprocess.run(["bash", "--norc", "-c", TAB, "tab", self.out / "cautious.bash", line], capture_output=True,
                                  text=True, cwd=folder, env={"PATH": ""}, executable=shutil.which("bash"))
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_every_verb_has_a_page_with_all_of_its_options(self):
        verbs = [verb for verb in self.verbs() if self.help(verb)]
        self.assertGreater(len(verbs), 10)
        front = (self.out / "man1/cautious.1").read_text().replace("\\-", "-")
        for verb in verbs:
            page = (self.out / f"man1/cautious-{verb}.1").read_text().replace("\\-", "-")
            for head in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"):
                self.assertRegex(page, rf"(?m)^\.SH {head}$", verb)
            for below in [[], *([name] for name in self.verbs(verb))]:
                options = re.findall(r"^  (?:-\w,)?(--[\w-]+)", self.help(verb, *below), re.M)
                self.assertIn("--help", options)
                for option in options:
                    self.assertIn(f"\\fB{option}\\fR", page, verb)
            self.assertIn(f".BR cautious-{verb} (1)", front)
            self.assertRegex(front, rf"(?m)^\.(B|BI|BR) \"?{verb}\b")

    def test_help_is_at_most_120_wide(self):
        for verb in self.verbs():
            for words in [[], [verb], *([verb, below] for below in self.verbs(verb))]:
                for line in self.help(*words).split("\n"):
                    self.assertLessEqual(len(line), 120, line)

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_groff_is_content(self):
        for page in sorted((self.out / "man1").iterdir()):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page)

    def test_verbs_and_options(self):
        self.assertEqual(self.tab("cautious comp"), ["compare"])
        self.assertEqual(self.tab("cautious lab fi"), ["fixedpoint"])
        self.assertEqual(self.tab("cautious help lab dy"), ["dynamics"])
        self.assertEqual(self.tab("cautious lab toy --be"), ["--beta1", "--beta2"])
        self.assertEqual(self.tab("cautious compare --dry"), ["--dry-run"])
        self.assertEqual(self.tab("cautious replay --weight-d"), ["--weight_decay"])
        self.assertEqual(self.tab("cautious lab toy --beta1 "), [])

    def test_values(self):
        self.assertEqual(self.tab("cautious lab toy ci"), ["circle"])
        self.assertEqual(self.tab("cautious lab toy --schedule w"), ["wsd"])
        self.assertEqual(self.tab("cautious reproduce fig-o"), ["fig-overtrain"])
        self.assertEqual(self.tab("cautious reproduce --scale "), ["quick", "day", "full"])
        self.assertEqual(self.tab("cautious data get gc"), ["gcide"])
        self.assertEqual(self.tab("cautious data get gcide mo"), ["moby-dick"])
        self.assertEqual(self.tab("cautious compare --optimizer li"), ["lion", "lion-k"])
        self.assertEqual(self.tab("cautious replay --decay=la"), ["layerwise"])
        self.assertEqual(self.tab("cautious export --format "), ["hf", "gguf"])
        self.assertEqual(self.tab("cautious bench step --scenarios flat,no"), ["flat,norms"])
        self.assertEqual(self.tab("cautious tokenize --tokenizer cl"), ["cl100k_base"])

    @unittest.skipUnless(TRAINS, "no libtorch")
    def test_values_of_training(self):
        self.assertEqual(self.tab("cautious train --preset vit-s"), ["vit-s16"])
        self.assertEqual(self.tab("cautious compare --preset nano-3"), ["nano-300k", "nano-3m"])
        self.assertEqual(self.tab("cautious train --optimizer.na"), ["--optimizer.name="])
        self.assertEqual(self.tab("cautious train --optimizer.name=m"), ["muon"])
        self.assertEqual(self.tab("cautious launch -n 2 train --optimizer.name m"), ["muon"])
        self.assertEqual(self.tab("cautious train --optimizer.mask="), ["direction", "momentum"])
        self.assertEqual(self.tab("cautious compare --model.tied="), ["true", "false"])
        self.assertEqual(self.tab("cautious compare --optimizer.l"), [])  # --lr decides
        self.assertEqual(self.tab("cautious train --augment.cr"), ["--augment.crop="])
        self.assertEqual(self.tab("cautious train --data.tokenizer=gpt"), ["gpt2-bpe"])
        self.assertEqual(self.tab("cautious eval runs/a --tasks piqa,hel"), ["piqa,hellaswag"])
        self.assertEqual(self.tab("cautious finetune sto"), ["stories15m"])
        self.assertEqual(self.tab("cautious train --resume --change train.st"), ["train.steps="])
        self.assertEqual(self.tab("cautious train --resume --change=schedule.ki"), ["schedule.kind="])
        self.assertEqual(self.tab("cautious train --change train.steps=9,train.threads=2,optimizer.l"), ["2,optimizer.lr="])
        self.assertEqual(self.tab("cautious finetune --change model.la"), [])  # is not one of those that can change

    def test_files_where_a_path_is_expected(self):
        files = ["plan.toml", "plans/", "moby.txt"]
        self.assertEqual(sorted(self.tab("cautious study pl", files)), ["plan.toml", "plans"])
        self.assertEqual(self.tab("cautious study plan.toml --out pl", files), ["plans"])
        self.assertEqual(sorted(self.tab("cautious compare --data mo", files)), ["moby-dick", "moby.txt"])
        self.assertEqual(self.tab("cautious compare --steps pl", files), [])
        self.assertEqual(self.tab("cautious lab toy pl", files[:1]), ["plan.toml"])
        self.assertEqual(self.tab("cautious tokenize moby.txt --tokenizer mo", files), ["moby.txt"])


if __name__ == "__main__":
    unittest.main()
