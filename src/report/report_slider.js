// A slider below every figure with paths: it shows each path up to a step. The paths stand in the page beside the image, in its
// coordinates. At the last step, without this script or when it is printed, the page shows the image as it is.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg", STOPS = 400, SECONDS = 6;
  const SIGNS = { Play: "M3 1l10 6l-10 6z", Pause: "M2 1h4v12h-4zM8 1h4v12h-4z" };

  function made(parent, tag, attributes, space) {
    const one = space ? document.createElementNS(space, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
    parent.append(one);
    return one;
  }

  // The image with its paths and ends faint, for under the moving ones. Its text is base64, which keeps the bytes as they are.
  function faint(source) {
    const [head, data] = source.split(",");
    const rule = ".path:not(.key){opacity:.28}.casing{opacity:0}.mark:not(.key){opacity:.35}";
    return head + "," + btoa(atob(data).replace("</style>", rule + "</style>"));
  }

  // The points before a place between the first, 0, and the last, with the place itself.
  function up_to(points, place) {
    const last = Math.floor(place), part = place - last, kept = points.slice(0, 2 * last + 2);
    if (part > 0) {
      for (const i of [2 * last, 2 * last + 1]) kept.push(points[i] + part * (points[i + 2] - points[i]));
    }
    return kept;
  }

  function overlay(parent, data) {
    const svg = made(parent, "svg", { viewBox: `0 0 ${data.width} ${data.height}`, "aria-hidden": "true" }, SVG);
    const line = (path, kind, colour) => made(svg, "polyline", { class: kind, style: colour ? `stroke:var(--s${path.series})` : "" }, SVG);
    const drawn = data.paths.map((path) => ({ path, lines: [line(path, "casing", false), line(path, "trail", true)] }));
    for (const { points: [x, y] } of data.paths) made(svg, "circle", { class: "origin", cx: x, cy: y, r: 4.5 }, SVG);
    for (const one of drawn) {
      one.head = made(svg, "path", { class: "head", d: one.path.marker, style: `fill:var(--s${one.path.series})` }, SVG);
    }
    return (step) => {
      for (const { path, lines, head } of drawn) {
        const part = path.steps === 0 ? 0 : Math.min(1, step / path.steps);
        const points = up_to(path.points, part * (path.points.length / 2 - 1));
        for (const one of lines) one.setAttribute("points", points.join(" "));
        head.setAttribute("transform", `translate(${points.slice(-2).join(" ")})`);
      }
    };
  }

  function add_player(figure, data) {
    const steps = Math.max(...data.paths.map((path) => path.steps));
    const still = figure.querySelector(".still");
    const player = document.createElement("div"), stage = document.createElement("div");
    stage.className = "stage";
    player.className = "player";
    still.after(stage, player);
    const sheet = made(stage, "div", {});
    sheet.append(still);
    made(sheet, "img", { class: "faint", alt: still.alt, src: faint(still.src) });
    const show = overlay(sheet, data);
    const button = made(player, "button", { type: "button" });
    const sign = made(made(button, "svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, SVG), "path", {}, SVG);
    const label = made(player, "label", {});
    const slider = made(label, "input", { type: "range", min: 0, max: STOPS, step: 1, "aria-label": "Step" });
    const output = made(label, "output", {});

    function set(stop) {
      // By the square, because most of the way is made in the first steps.
      const step = steps * (stop / STOPS) ** 2, words = `step ${Math.round(step)} of ${steps}`;
      show(step);
      sheet.classList.toggle("whole", stop === STOPS);
      output.textContent = words;
      slider.setAttribute("aria-valuetext", words);
    }
    let frame = 0;
    function pause() {
      cancelAnimationFrame(frame);
      frame = 0;
      button.setAttribute("aria-label", "Play");
      sign.setAttribute("d", SIGNS.Play);
    }
    function play() {
      const from = Number(slider.value) < STOPS ? Number(slider.value) : 0;
      let begun = null;
      button.setAttribute("aria-label", "Pause");
      sign.setAttribute("d", SIGNS.Pause);
      const advance = (now) => {
        begun ??= now;
        slider.value = Math.min(STOPS, Math.round(from + (now - begun) / 1000 / SECONDS * STOPS));
        set(Number(slider.value));
        if (Number(slider.value) < STOPS) frame = requestAnimationFrame(advance);
        else pause();
      };
      frame = requestAnimationFrame(advance);
    }
    slider.addEventListener("input", () => {
      pause();
      set(Number(slider.value));
    });
    button.addEventListener("click", () => (frame ? pause() : play()));
    slider.value = STOPS;
    set(STOPS);
    pause();
  }

  for (const figure of document.querySelectorAll("figure")) {
    const found = figure.querySelector("script.paths");
    if (!found) continue;
    const data = JSON.parse(found.textContent);
    if (data.paths.some((path) => path.steps > 0)) add_player(figure, data);
  }
})();
