// Line charts that can be zoomed, in the place of the still ones: the data stands in the page beside each image. Without this
// script, or when it is printed, the page shows the images.
"use strict";
(() => {
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const pixels = window.devicePixelRatio || 1;

  function element(tag, name, text) {
    const made = document.createElement(tag);
    made.className = name;
    made.textContent = text;
    return made;
  }

  // Short, and the same for every number of an axis.
  function short(value) {
    if (value === null || value === undefined) return "";
    const size = Math.abs(value);
    if (size >= 1e5 || (size > 0 && size < 1e-3)) return value.toExponential(3).replace(/\.?0+e/, "e").replace("e+", "e");
    return String(Number(value.toPrecision(5)));
  }

  // Of a logarithmic axis over more than four decades the lines between the powers of ten would be a grey wall.
  function decades(_, marks) {
    const power = (mark) => Math.abs(Math.log10(mark) - Math.round(Math.log10(mark))) < 1e-9;
    return marks.length > 40 ? marks.map((mark) => (power(mark) ? mark : null)) : marks;
  }

  function axis(log) {
    const made = {
      stroke: style("--soft"),
      font: "12px Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif",
      grid: { stroke: style("--grid"), width: 1 },
      ticks: { stroke: style("--tick"), width: 1, size: 5 },
    };
    if (log) made.grid.filter = made.ticks.filter = decades;
    made.values = log ? (_, marks) => marks.map((mark) => (mark === null ? "" : short(mark))) : (_, marks) => marks.map(short);
    return made;
  }

  function has_points(series) {
    return series.y.some((y) => y !== null);
  }

  // Every series of the chart is three of uPlot's where it has a band: the line and the two edges between which is the band.
  function lines(chart) {
    const drawn = [{ label: chart.x_label, class: "axis", value: (_, x) => short(x) }], bands = [], tables = [], owner = [-1];
    for (const one of chart.series.filter(has_points)) {
      const colour = style("--s" + one.colour), dash = style("--d" + one.colour);
      const columns = [one.x, one.y], place = drawn.length;
      // Series of one name and style have one place in the legend, which hides and shows them all.
      const first = drawn.findIndex((other) => other.label === one.name && other.stroke === colour);
      const single = one.x.length === 1;
      drawn.push({
        label: one.name, class: first >= 0 ? "edge" : single ? "point" : undefined, stroke: colour, width: 1.9,
        value: (_, y) => short(y), dash: dash === "" ? undefined : dash.split(/\s+/).map(Number),
        points: { show: one.markers || single, size: single ? 10 : 7, fill: single ? style("--ground") : colour },
      });
      owner.push(first < 0 ? place : first);
      if (one.low && one.high) {
        for (const edge of ["high", "low"]) {
          drawn.push({ label: one.name + " " + edge, class: "edge", width: 0, stroke: "transparent", points: { show: false } });
          owner.push(first < 0 ? place : first);
          columns.push(one[edge]);
        }
        bands.push({ series: [place + 1, place + 2], fill: colour + "2a" });
      }
      tables.push(columns);
    }
    return { drawn, bands, owner, data: uPlot.join(tables) };
  }

  function draw(figure, chart) {
    const parts = lines(chart), box = element("div", "live", "");
    const width = () => Math.max(240, box.clientWidth - 36);
    box.append(element("div", "live-title", chart.title), element("div", "live-name", chart.y_label));
    figure.querySelector(".still").after(box);
    const edges = (plot, place, shown) => {
      for (let i = 1; i < parts.owner.length; ++i) {
        if (i !== place && parts.owner[i] === place && plot.series[i].show !== shown) plot.setSeries(i, { show: shown });
      }
    };
    const plot = new uPlot({
      width: width(), height: 330, pxAlign: pixels === 1, series: parts.drawn, bands: parts.bands,
      scales: { x: { time: false, distr: chart.x_log ? 3 : 1 }, y: { distr: chart.y_log ? 3 : 1 } },
      axes: [{ ...axis(chart.x_log), size: 34 }, { ...axis(chart.y_log), size: 64 }],
      cursor: { drag: { x: true, y: false }, points: { size: 7 } },
      hooks: { setSeries: [(self, place, change) => {
        if (place !== null && change.show !== undefined && parts.owner[place] === place) edges(self, place, change.show);
      }] },
    }, parts.data, box);
    figure.classList.add("drawn");
    box.append(element("p", "live-hint", "Drag to zoom, double click to see all, click a name to hide it."));
    const watch = new ResizeObserver(() => {
      if (box.clientWidth > 0 && plot.width !== width()) plot.setSize({ width: width(), height: 330 });
    });
    watch.observe(box);
    return () => {
      watch.disconnect();
      plot.destroy();
      box.remove();
      figure.classList.remove("drawn");
    };
  }

  let undo = [];
  function draw_all() {
    for (const clear of undo) clear();
    undo = [];
    for (const figure of document.querySelectorAll("figure")) {
      const data = figure.querySelector("script.chart");
      if (!data) continue;
      const chart = JSON.parse(data.textContent);
      if (chart.series.some(has_points)) undo.push(draw(figure, chart));
    }
  }

  draw_all();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw_all);
})();
