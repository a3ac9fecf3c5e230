"""Chat templates rendered by Jinja itself, set up as transformers sets it up.

chat_template_test.py WRITE: WRITE (chat_template_write) and Jinja render templates in the forms that models come with, and
many small ones, on the same conversations; texts must be equal, and what Jinja refuses must be refused.
"""
import itertools
import json
import pathlib
import subprocess
import sys
import unittest

import jinja2
import jinja2.ext
import jinja2.sandbox

from chat_templates import MODELS, SMALL

WRITE = pathlib.Path(sys.argv.pop(1)).resolve()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                        extensions=[jinja2.ext.loopcontrols])
    made.filters["tojson"] = lambda value, ensure_ascii=False, indent=None: json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent)
    made.globals["raise_exception"] = raise_exception
    return made


def conversation(*roles, content="Hé said: {}\n"):
    return [{"role": role, "content": content.format(number)} for number, role in enumerate(roles)]


CONVERSATIONS = [
    conversation("user"),
    conversation("user", "assistant", "user"),
    conversation("system", "user", "assistant", "user", "assistant"),
    conversation("system", "user", content="  \t two  {}  lines \n\n"),
    conversation("user", "user"),
    conversation("assistant"),
    conversation("tool"),
    conversation(),
]


class AgainstJinja(unittest.TestCase):
    def compare(self, templates):
        asked = [{"template": template, "messages": messages, "reply": reply, "bos": "<s>", "eos": "</s>"}
                 for template, messages, reply in itertools.product(templates, CONVERSATIONS, [False, True])]
        lines = "".join(json.dumps(one) + "\n" for one in asked)
        answers = subprocess.run([WRITE], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(len(answers), len(asked))
        refused = 0
        for one, answer in zip(asked, map(json.loads, answers)):
            with self.subTest(template=one["template"], messages=one["messages"]):
                try:
                    expected = environment().from_string(one["template"]).render(
                        messages=one["messages"], add_generation_prompt=one["reply"], bos_token="<s>", eos_token="</s>", tools=None,
                        documents=None)
                except (jinja2.exceptions.TemplateError, TypeError, ValueError, ZeroDivisionError, SyntaxError) as error:
                    refused += 1
                    self.assertIn("error", answer, f"Jinja: {error!r}")
                    self.assertRegex(answer["error"], r"^test: line [0-9]+: ")
                else:
                    self.assertEqual(answer, {"text": expected})
        return refused, len(asked)

    def test_models(self):
        refused, asked = self.compare(MODELS.values())
        self.assertLess(refused, asked / 2)

    def test_small_templates(self):
        self.compare(SMALL)


if __name__ == "__main__":
    unittest.main()
