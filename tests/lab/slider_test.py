"""Paths that move in headless Chromium: the slider cuts them at its step, the words beside it say which, play moves it.

usage: slider_test.py SLIDER_WRITE [FOLDER for screenshots]
"""
import html
import json
import pathlib
import re
import subprocess
import sys
import unittest

from browser import SCHEMES, PageTest, with_probes

WRITE = sys.argv[1]
PICTURES = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
STEPS, SHORT = 4000, 1000  # of the paths; the third ends early


def without_uplot(text):
    """As it is built where uPlot could not be fetched."""
    return re.sub(r"<!-- uPlot.*?</script>\n<script>.*?</script>\n", "", text, flags=re.S)


class Sliders(PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.page = cls.folder / "page.html"
        subprocess.run([WRITE, cls.page], check=True)
        cls.text = cls.page.read_text()

    def probe(self, scheme="light", size="1000,1400", change=None):
        """What both probes see, once per setting."""
        key = scheme, size, change
        if key not in self.probed:
            page = self.folder / "probed.html"
            page.write_text(with_probes((change or str)(self.text), "probe.js", "lab/slider_probe.js"))
            dom = self.chromium(page, "--dump-dom", scheme=scheme, size=size)
            found = [re.search(rf'<pre id="{name}">(.*?)</pre>', dom, re.S) for name in ("probe", "sliders")]
            self.assertTrue(all(found), "a probe did not end")
            self.probed[key] = [json.loads(html.unescape(one.group(1))) for one in found]
        return self.probed[key]

    def test_every_figure_with_moving_paths_has_a_slider(self):
        seen = self.probe()[1]
        self.assertEqual((seen["players"], seen["shown"]), (2, 2))
        self.assertEqual(set(seen["figures"]), {"figure-surface", "figure-plane"}, "paths of one point do not move")
        for name, paths in (("figure-surface", 3), ("figure-plane", 6)):
            figure = seen["figures"][name]
            self.assertEqual(len(figure["data"]["paths"]), paths)
            self.assertEqual(figure["loaded"], [figure["data"]["width"]] * 2, "the image as it is and with faint paths")
            self.assertLess(figure["apart"], 0.5, "image and paths lie on each other")
            self.assertEqual((figure["role"], figure["name"]), ("range", "Step"))

    def test_whole_paths_at_first(self):
        for figure in self.probe()[1]["figures"].values():
            first, paths = figure["first"], figure["data"]["paths"]
            self.assertEqual((first["value"], first["words"]), (figure["max"], f"step {STEPS} of {STEPS}"))
            self.assertEqual(first["lengths"], [len(path["points"]) / 2 for path in paths])
            self.assertLessEqual(max(first["lengths"]), 400)
            self.assertEqual(first["ends"], [path["points"][-2:] for path in paths])
            self.assertEqual(first["heads"], first["ends"])

    def test_slider_cuts_the_paths_at_its_step(self):
        for name, figure in self.probe()[1]["figures"].items():
            for stop, seen in figure["stops"].items():
                with self.subTest(figure=name, stop=stop):
                    step = STEPS * (int(stop) / figure["max"]) ** 2
                    self.assertEqual(seen["words"], f"step {round(step)} of {STEPS}")
                    self.assertEqual(seen["spoken"], seen["words"])
                    self.assertEqual(seen["heads"], seen["ends"])
                    self.assertEqual(seen["images"], [True, False] if step == STEPS else [False, True])
                    for path, count, end in zip(figure["data"]["paths"], seen["lengths"], seen["ends"]):
                        points = list(zip(path["points"][::2], path["points"][1::2]))
                        place = min(1, step / path["steps"]) * (len(points) - 1)
                        self.assertAlmostEqual(count, int(place + 1e-9) + 1, delta=1)
                        low, high = points[int(place)], points[min(int(place) + 1, len(points) - 1)]
                        for k in (0, 1):
                            self.assertAlmostEqual(end[k], low[k] + (place - int(place)) * (high[k] - low[k]), places=6)
            lengths = [figure["stops"][stop]["long"] for stop in ("0", "1", "100", "200", str(figure["max"]))]
            for earlier, later in zip(lengths, lengths[1:]):
                self.assertTrue(all(a <= b for a, b in zip(earlier, later)))
            self.assertEqual(lengths[0], [0] * len(lengths[0]))

    def test_a_path_with_fewer_steps_ends_early(self):
        figure = self.probe()[1]["figures"]["figure-surface"]
        self.assertEqual([path["steps"] for path in figure["data"]["paths"]], [STEPS, STEPS, SHORT])
        at_a_quarter = figure["stops"]["200"]["ends"]
        self.assertEqual(at_a_quarter[2], figure["first"]["ends"][2])
        self.assertNotEqual(at_a_quarter[1], figure["first"]["ends"][1])

    def test_play_moves_it_and_pauses(self):
        for name, figure in self.probe()[1]["figures"].items():
            with self.subTest(name):
                (playing, begun), (paused, moved), (_, after) = figure["played"]
                self.assertEqual((playing, paused), ("Pause", "Play"))
                self.assertGreater(begun, 5, "of 400 stops in six seconds, after half a second")
                self.assertLess(moved, figure["max"])
                self.assertEqual(after, moved)

    def test_needs_no_uplot(self):
        self.assertNotIn("uPlot", without_uplot(self.text))
        self.assertEqual(self.probe(change=without_uplot)[1]["shown"], 2)

    def test_legible_in_both_schemes(self):
        for scheme in SCHEMES:
            with self.subTest(scheme):
                seen = self.probe(scheme)[0]
                self.assertEqual((seen["dark"], seen["broken"], seen["fetched"]), (scheme == "dark", 0, []))
                self.assertGreaterEqual(seen["contrast"][0], 4.5, seen["contrast"][1])
        strokes = [self.probe(scheme)[1]["figures"]["figure-surface"]["strokes"] for scheme in SCHEMES]
        self.assertTrue(all(a != b for a, b in zip(*strokes)), "the colours follow the scheme")

    def test_fits_narrow_windows(self):
        seen = self.probe(size="500,900")[0]
        self.assertLessEqual(seen["page_width"], seen["window_width"])

    def test_prints_as_still_images(self):
        seen = self.probe(change=as_printed)[1]
        self.assertEqual((seen["players"], seen["shown"]), (2, 0))
        self.assertEqual(seen["stills"], ["figure-surface", "figure-plane", "figure-resting"])

    def test_still_images_without_scripts(self):
        seen = self.probe(change=without_scripts)
        self.assertEqual((seen[0]["stills"], seen[0]["broken"], seen[1]["players"]), (3, 0, 0))

    def test_names_cannot_leave_their_script(self):
        self.assertIn(r"\u003c/script>", self.text)
        self.assertEqual(self.probe()[1]["figures"]["figure-surface"]["data"]["paths"][2]["name"], "Adam + </script>")

    def test_claims_say_their_outcome_in_words(self):
        badges = re.findall(r'<div class="claim (\w+)">\s*<span class="badge"><span aria-hidden="true">.</span> ([^<]*)</span>', self.text)
        self.assertEqual(badges, [("holds", "holds"), ("fails", "does not hold"), ("noted", "noted")])

    def test_pictures(self):
        self.check_pictures("slider", "1000,2400", PICTURES)


def as_printed(text):
    return text.replace("@media print", "@media screen")


def without_scripts(text):
    return re.sub(r"<script>.*?</script>", "", text, flags=re.S)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
