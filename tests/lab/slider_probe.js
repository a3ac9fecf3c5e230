// Runs at the end of a page with sliders, moves them, and leaves what it finds as JSON in an element named sliders.
"use strict";
addEventListener("load", async () => {
  const all = (what, where = document) => [...where.querySelectorAll(what)];
  const visible = (one) => one.checkVisibility() && one.getClientRects().length > 0;
  const pairs = (text) => text.trim().split(/[\s,]+/).map(Number);
  const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
  // Frames by the same clock as the waiting: a browser without a screen draws them when it likes.
  let now = 0;
  window.requestAnimationFrame = (draw) => setTimeout(() => draw(now += 16), 16);
  window.cancelAnimationFrame = clearTimeout;
  const found = { players: all(".player").length, shown: all(".player").filter(visible).length, figures: {} };
  found.stills = all(".still").filter(visible).map((one) => one.closest("figure").id);

  for (const figure of all("figure").filter((one) => one.querySelector(".player"))) {
    const slider = figure.querySelector("input"), output = figure.querySelector("output"), button = figure.querySelector("button");
    const image = figure.querySelector(".still"), faint = figure.querySelector(".faint"), over = figure.querySelector(".stage svg");
    const [a, b] = [image.getBoundingClientRect(), over.getBoundingClientRect()];
    const state = () => ({
      images: [image, faint].map(visible), value: Number(slider.value), words: output.textContent, spoken: slider.getAttribute("aria-valuetext"),
      lengths: all(".trail", figure).map((line) => pairs(line.getAttribute("points")).length / 2),
      long: all(".trail", figure).map((line) => line.getTotalLength()),
      ends: all(".trail", figure).map((line) => pairs(line.getAttribute("points")).slice(-2)),
      heads: all(".head", figure).map((head) => pairs(head.getAttribute("transform").replace(/[a-z()]/g, " "))),
    });
    const seen = { first: state(), max: Number(slider.max), stops: {}, role: slider.type, name: slider.getAttribute("aria-label") };
    seen.data = JSON.parse(figure.querySelector("script.paths").textContent);
    seen.loaded = [image.naturalWidth, faint.naturalWidth];
    seen.apart = Math.max(Math.abs(a.left - b.left), Math.abs(a.top - b.top), Math.abs(a.width - b.width), Math.abs(a.height - b.height));
    seen.strokes = all(".trail", figure).map((line) => getComputedStyle(line).stroke);
    for (const stop of [0, 1, 100, 200, slider.max]) {
      slider.value = stop;
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      seen.stops[stop] = state();
    }
    const press = async (pause) => {
      button.click();
      await wait(pause);
      return [button.getAttribute("aria-label"), Number(slider.value)];
    };
    slider.value = 0;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    if (visible(button)) seen.played = [await press(600), await press(50), [button.getAttribute("aria-label"), Number(slider.value)]];
    found.figures[figure.id] = seen;
  }
  const out = document.createElement("pre");
  out.id = "sliders";
  out.textContent = JSON.stringify(found);
  document.body.append(out);
});
