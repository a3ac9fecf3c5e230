// Runs at the end of a report's page and leaves what it finds as JSON in an element named probe.
"use strict";
addEventListener("load", () => {
  const all = (what, where = document) => [...where.querySelectorAll(what)];
  const visible = (one) => one.checkVisibility() && one.getClientRects().length > 0;

  function colour(text) {
    const parts = text.match(/[\d.]+/g).map(Number);
    return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
  }
  function ground(one) {
    for (let at = one; at; at = at.parentElement) {
      const found = colour(getComputedStyle(at).backgroundColor);
      if (found.alpha === 1) return found.rgb;
    }
    return [255, 255, 255];
  }
  // WCAG 2: relative luminance and contrast.
  function luminance(rgb) {
    const [r, g, b] = rgb.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  function contrast(one) {
    const [low, high] = [luminance(colour(getComputedStyle(one).color).rgb), luminance(ground(one))].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }

  const still = all(".still").filter(visible).length;
  for (const folded of all("details")) folded.open = true;
  const texts = all("body *").filter((one) => visible(one) && [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
  const worst = texts.map((one) => [contrast(one), one.outerHTML.slice(0, 120)]).sort((a, b) => a[0] - b[0])[0];

  const found = {
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    data: all("figure script").length, canvases: all("canvas").length, stills: still,
    broken: all("img").filter((image) => image.naturalWidth === 0).length,
    texts: texts.length, contrast: worst,
    ground: getComputedStyle(document.body).backgroundColor,
    stroke: getComputedStyle(document.documentElement).getPropertyValue("--s0"),
    fetched: performance.getEntriesByType("resource").map((one) => one.name).filter((name) => !name.startsWith("data:")),
    page_width: document.documentElement.scrollWidth, window_width: document.documentElement.clientWidth,
  };

  // What stands beside each name of the legend: nothing beside that of x, a ring beside a series of single points.
  found.swatches = all("#figure-sweep_weight_decay .u-legend tr").filter(visible).map((row) => {
    const swatch = row.querySelector(".u-marker"), shape = getComputedStyle(swatch);
    const kind = !visible(swatch) ? "none" : shape.width === shape.height && shape.borderRadius === "50%" ? "ring" : "line";
    return [row.querySelector(".u-label").textContent, kind];
  });

  const soon = () => new Promise((done) => setTimeout(done, 200));
  async function play() {
    const chart = document.querySelector("#figure-training_loss"), over = chart.querySelector(".u-over");
    const box = over.getBoundingClientRect();
    const mouse = (kind, part, on = over) => on.dispatchEvent(new MouseEvent(kind, {
      bubbles: true, button: 0, movementX: 1, clientX: box.left + part * box.width, clientY: box.top + box.height / 2 }));
    async function left_step() {
      mouse("mousemove", 0.002);
      await soon();
      return chart.querySelector(".u-legend .u-value").textContent;
    }
    mouse("mouseenter", 0.002);
    found.left_step = [await left_step()];
    mouse("mousemove", 0.5);
    mouse("mousedown", 0.5);
    mouse("mousemove", 0.75);
    mouse("mousemove", 0.99);
    mouse("mouseup", 0.99, document);
    await soon();
    found.left_step.push(await left_step());
    mouse("dblclick", 0.5);
    await soon();
    found.left_step.push(await left_step());
    const row = all(".u-legend .u-series", chart)[1];
    found.hidden = [row.classList.contains("u-off")];
    row.querySelector("th").click();
    await soon();
    found.hidden.push(row.classList.contains("u-off"));
    const canvas = chart.querySelector("canvas"), pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    found.inked = pixels.filter((value, place) => place % 4 === 3 && value > 0).length;
  }
  (found.canvases > 0 ? play() : Promise.resolve()).then(() => {
    const out = document.createElement("pre");
    out.id = "probe";
    out.textContent = JSON.stringify(found);
    document.body.append(out);
  });
});
