// Runs at the end of a report's page in a narrow frame and sends what it finds to the page around it.
"use strict";
addEventListener("load", async () => {
  const all = (what) => [...document.querySelectorAll(what)];
  for (const folded of all("details")) folded.open = true;
  const found = { width: innerWidth, page_width: document.documentElement.scrollWidth };
  // The smallest type in what the browser chose for each interval chart, in pixels of the screen.
  const images = all("picture > img");
  await Promise.all(images.map((image) => image.decode()));
  const sizes = images.map((image) => {
    const svg = atob(image.currentSrc.split(",")[1]), scale = image.clientWidth / Number(svg.match(/viewBox="0 0 (\S+)/)[1]);
    const used = (name) => name !== "small" && new RegExp(`class="[^"]*\\b${name}\\b`).test(svg);
    return Math.min(...[...svg.matchAll(/^\.(\w+)\{font-size:([\d.]+)px/gm)].filter((one) => used(one[1])).map((one) => one[2] * scale));
  });
  found.intervals = images.length;
  found.least_type = Math.min(...sizes);
  const boxes = all(".scroll");
  found.wide_tables = boxes.filter((box) => box.scrollWidth > box.clientWidth).length;
  found.cut_captions = all("caption > span").filter((text) => {
    const box = text.closest(".scroll").getBoundingClientRect(), own = text.getBoundingClientRect();
    return own.left < box.left - 1 || own.right > box.right + 1 || own.right > innerWidth;
  }).map((text) => text.textContent);
  parent.postMessage(JSON.stringify(found), "*");
});
