"""A page in headless Chromium: what its own scripts see and what its console says."""
import base64
import hashlib
import pathlib
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
         "--virtual-time-budget=8000", "--enable-logging=stderr", "--v=0"]
SCHEMES = {"dark": 0, "light": 1}


def with_probes(text, *names):
    """The page with scripts of the tests at its end. Its own policy forbids them and whatever is not in the page itself, with an error
    in the console, so their hashes are added to it."""
    scripts = [(HERE / name).read_text() for name in names]
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = "; script-src" + "".join(f" 'sha256-{one}'" for one in hashes)
    assert text.count("; script-src") == 1, "the page has no policy"
    text = text.replace("; script-src", allowed, 1)
    return text.replace("</body>", "".join(f"<script>{script}</script>" for script in scripts) + "</body>")


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not CHROMIUM:
            raise RuntimeError("there is no chromium; install what cmake/deps.sh lists")
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.probed = {}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def chromium(self, page, *flags, scheme="light", size="1000,1400"):
        profile = tempfile.mkdtemp(dir=self.folder)
        done = subprocess.run([CHROMIUM, *FLAGS, f"--user-data-dir={profile}", f"--window-size={size}",
                               f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}", *flags, page.as_uri()],
                              capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        words = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        self.assertEqual(words, [], "the console must stay silent")
        return done.stdout

    def check_pictures(self, name, size, folder=None):
        """The page as a picture in light and in dark, kept in the folder if there is one."""
        for scheme in SCHEMES:
            picture = (folder or self.folder) / f"{name}_{scheme}.png"
            picture.parent.mkdir(parents=True, exist_ok=True)
            self.chromium(self.page, f"--screenshot={picture}", scheme=scheme, size=size)
            self.assertGreater(picture.stat().st_size, 50_000)
