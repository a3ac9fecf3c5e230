"""A report as a reader sees it, in headless Chromium: it draws, zooms, is legible in both schemes and asks nobody for anything.

usage: browser_test.py PROGRAM STUDY_SAMPLE_WRITE [FOLDER for screenshots]
"""
import html
import json
import pathlib
import re
import subprocess
import sys
import unittest

from browser import SCHEMES, PageTest, with_probes

PROGRAM, WRITE_SAMPLE = sys.argv[1:3]
PICTURES = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None


class Browser(PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.study = cls.folder / "study"
        subprocess.run([WRITE_SAMPLE, cls.study], check=True)
        done = subprocess.run([PROGRAM, "report", cls.study], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        cls.page = pathlib.Path(done.stdout.rstrip("\n"))
        assert cls.page == cls.study / "report.html", done.stdout
        cls.text = cls.page.read_text()
        assert "var uPlot=" in cls.text, "uPlot is not in the page: npm could not fetch it when this was built; build again with network"

    def probe(self, scheme, size="1000,1400", script=True):
        """What the page's own scripts see, once per setting."""
        key = scheme, size, script
        if key not in self.probed:
            text = self.text
            if not script:
                text = re.sub(r"<script>.*?</script>", "", text, flags=re.S)
            page = self.folder / "probed.html"
            page.write_text(with_probes(text, "probe.js"))
            dom = self.chromium(page, "--dump-dom", scheme=scheme, size=size)
            found = re.search(r'<pre id="probe">(.*?)</pre>', dom, re.S)
            self.assertTrue(found, "the probe did not end")
            self.probed[key] = json.loads(html.unescape(found.group(1)))
        return self.probed[key]

    def test_every_line_chart_zooms(self):
        seen = self.probe("light")
        self.assertEqual(seen["data"], 12)
        self.assertEqual(seen["canvases"], seen["data"])
        self.assertEqual(seen["stills"], 2, "the interval charts that are not folded")
        self.assertGreater(seen["inked"], 500, "pixels of the first chart that are not transparent")

    def test_dragging_zooms_and_a_double_click_shows_all(self):
        before, zoomed, after = (float(x) for x in self.probe("light")["left_step"])
        self.assertLess(before, 100)
        self.assertGreater(zoomed, 400)
        self.assertEqual(after, before)

    def test_a_click_on_a_name_hides_its_line(self):
        self.assertEqual(self.probe("light")["hidden"], [False, True])

    def test_the_legend_shows_what_is_drawn(self):
        self.assertEqual(self.probe("light")["swatches"],
                         [["weight_decay", "none"], ["plain", "line"], ["cwd", "line"], ["judged", "ring"]])

    def test_legible_in_both_schemes(self):
        for scheme in SCHEMES:
            with self.subTest(scheme):
                seen = self.probe(scheme)
                self.assertEqual(seen["dark"], scheme == "dark")
                self.assertGreater(seen["texts"], 100)
                self.assertGreaterEqual(seen["contrast"][0], 4.5, seen["contrast"][1])
        self.assertNotEqual(self.probe("light")["ground"], self.probe("dark")["ground"])
        self.assertNotEqual(self.probe("light")["stroke"], self.probe("dark")["stroke"])

    def test_nothing_is_fetched(self):
        for scheme in SCHEMES:
            self.assertEqual(self.probe(scheme)["fetched"], [])

    def test_fits_narrow_and_wide_windows(self):
        for size in ("500,900", "1000,1400", "2400,1400"):
            with self.subTest(size):
                seen = self.probe("light", size)
                self.assertLessEqual(seen["page_width"], seen["window_width"])

    def test_readable_without_scripts(self):
        seen = self.probe("light", script=False)
        self.assertEqual((seen["canvases"], seen["stills"], seen["broken"]), (0, 14, 0))

    def test_pictures(self):
        self.check_pictures("report", "1000,4000", PICTURES)

    def test_run_report_draws(self):
        run = next((self.study / "runs").iterdir())
        done = subprocess.run([PROGRAM, "report", run], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        dom = self.chromium(pathlib.Path(done.stdout.rstrip("\n")), "--dump-dom")
        self.assertEqual(dom.count("<canvas"), 10)

    def test_readable_on_a_telephone(self):
        """400 pixels wide, which headless Chromium gives to a frame, not to a window."""
        inner, outer = self.folder / "inner.html", self.folder / "outer.html"
        inner.write_text(with_probes(self.text, "narrow_probe.js"))
        outer.write_text(f'<iframe src="{inner.as_uri()}" width="400" height="900" style="border:0"></iframe>'
                         '<pre id="seen"></pre><script>addEventListener("message", (one) => '
                         '{ document.getElementById("seen").textContent = one.data; });</script>')
        for scheme in SCHEMES:
            with self.subTest(scheme):
                dom = self.chromium(outer, "--dump-dom", scheme=scheme)
                seen = json.loads(html.unescape(re.search(r'<pre id="seen">(.*?)</pre>', dom, re.S).group(1)))
                self.assertEqual(seen["width"], 400)
                self.assertLessEqual(seen["page_width"], 400, "nothing to scroll sideways")
                self.assertEqual(seen["intervals"], 3)
                self.assertGreaterEqual(seen["least_type"], 11, "pixels of the smallest type in an interval chart")
                self.assertGreater(seen["wide_tables"], 0, "tables that scroll")
                self.assertEqual(seen["cut_captions"], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
