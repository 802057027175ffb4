// Reports as a person has them, opened as files: page.mjs CHROMIUM {URL: CHARTS}. tests/reports/run makes them.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const { chromium } = createRequire(process.env.NODE_PATH + "/")("playwright-core");
const [executablePath, reports] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

/** What a chart's canvas has painted within its axes, for each chart: colours that are not the ground. */
const painted = (page) => page.evaluate(() => [...cosched.plots].map(({ u }) => {
  const { left, top, width, height } = u.bbox;
  const { data } = u.ctx.getImageData(left, top, width, height);
  const colours = new Set();
  for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200) colours.add(`${data[at]},${data[at + 1]},${data[at + 2]}`);
  return colours.size;
}));

/** All charts' data as the plots have it, with scales and axes. */
const charts = (page) => page.evaluate(() => [...cosched.plots].map(({ u, items, chart }) => ({
  items: items.length, points: chart.series.flatMap(({ points }) => points).filter(({ x, y }) => x !== null && y !== null && !(chart.x.log && x <= 0) && !(chart.y.log && y <= 0)).length, title: chart.title, x: [u.scales.x.min, u.scales.x.max].map((at) => (chart.x.log ? Math.log10(at) : at)), labels: u.axes.map((axis) => axis.label), units: [chart.x.unit, chart.y.unit],
  inside: items.every((item) => item.x.every((at) => at >= u.scales.x.min && at <= u.scales.x.max)),
})));

async function open(url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on("pageerror", (e) => wrong.push(e.message));
  page.on("console", (m) => (m.type() === "error" || m.type() === "warning") && wrong.push(m.text()));
  page.on("request", (r) => r.url() !== url && !r.url().startsWith("data:") && wrong.push(`asks for ${r.url()}`));
  await page.goto(url);
  return { context, page, wrong };
}

/** Data, axes and tables of a report. */
async function whole(page, url, count) {
  const found = await charts(page);
  assert.equal(found.length, count, `${url}: charts`);
  for (const [n, colours] of (await painted(page)).entries()) {
    const { title, items, points, labels, inside } = found[n];
    assert.equal(items, points, `${url}: ${title}: all points are drawn`);
    assert.ok(items > 0 && colours > 1, `${url}: ${title}: ${items} items, ${colours} colours`);
    assert.ok(inside && labels.every((label) => label.length > 0), `${url}: ${title}: ${labels}`);
  }
  // Some experiments have ratios alone.
  assert.ok(url.includes("/experiments/") || found.some(({ units }) => units.some((unit) => unit)), `${url}: units`);
  assert.equal(await page.locator("figure details").count(), count, "a table for each picture");
  await page.locator("figure summary").first().click();
  await page.locator("figure").first().locator("tbody tr").first().waitFor();
  assert.equal(await page.locator("script, img, iframe").count(), 2, "nothing but data and script: names are text");
  assert.notEqual(await page.title(), "owned");
}

/** Zoom by buttons, keys and mouse, and back; what is pointed at is said; a legend's entry hides its data. */
async function used(page) {
  const plot = page.locator(".plot").first();
  const figure = page.locator("figure").first();
  const span = async () => (await charts(page))[0].x;
  const all = await span();
  await figure.getByRole("button", { name: "Zoom in" }).click();
  const [from, to] = await span();
  assert.ok(Math.abs((to - from) * 1.5 - (all[1] - all[0])) < 1e-6 * (all[1] - all[0]), `zoomed in: ${from} to ${to} of ${all}`);
  await plot.focus();
  await plot.press("Shift+ArrowRight");
  assert.ok((await span())[0] > from, "moved by a key");
  await plot.press("0");
  assert.deepEqual(await span(), all);
  await plot.press("ArrowRight");
  const first = await figure.locator(".said").textContent();
  await plot.press("ArrowRight");
  const second = await figure.locator(".said").textContent();
  assert.ok(first.length > 0 && second !== first, `said: ${first}; ${second}`);
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.locator(".u-over").boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + box.height * 0.3);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + box.height * 0.8, { steps: 4 });
  await page.mouse.up();
  const [low, high] = await span();
  const part = (high - low) / (all[1] - all[0]);
  assert.ok(part > 0.25 && part < 0.35, `dragged: ${part} of all`);
  await page.mouse.dblclick(box.x + box.width / 2, box.y + box.height / 2);
  assert.deepEqual(await span(), all);
  const entry = figure.locator(".legend button").first();
  if (await entry.count()) {
    const before = (await painted(page))[0];
    const pixels = () => page.evaluate(() => [...cosched.plots][0].u.ctx.canvas.toDataURL());
    const drawn = await pixels();
    await entry.press("Enter");
    assert.equal(await entry.getAttribute("aria-pressed"), "false");
    assert.notEqual(await pixels(), drawn, "hidden");
    await entry.press("Enter");
    assert.equal((await painted(page))[0], before);
  }
}

/** Dark, light, narrow, wide, and on paper. */
async function shown(page) {
  const light = (text) => text.match(/[\d.]+/g).slice(0, 3).reduce((sum, value) => sum + Number(value), 0) / 3;
  const grounds = () => page.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color, [...cosched.plots][0].u.axes[0].stroke([...cosched.plots][0].u)]);
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    const [ground, text, axis] = (await grounds()).map(light);
    assert.ok(colorScheme === "dark" ? ground < 60 && text > 180 && axis > 180 : ground > 200 && text < 80 && axis < 80, `${colorScheme}: ${ground} ${text} ${axis}`);
  }
  for (const width of [400, 2500]) {
    await page.setViewportSize({ width, height: 900 });
    await page.waitForFunction(() => [...cosched.plots].every(({ u }) => u.width === u.root.parentElement.clientWidth));
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `no scrolling sideways at ${width} px`);
  }
  await page.emulateMedia({ colorScheme: "dark" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  const [ground, text, axis] = (await grounds()).map(light);
  assert.ok(ground > 200 && text < 80 && axis < 80, "paper is light");
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  assert.ok((await page.pdf({ format: "A4" })).length > 10_000, "it can be printed");
}

let passed = 0;
const check = async (name, work) => {
  await work();
  passed++;
  console.log(`   ${name}`);
};
try {
  for (const [url, count] of Object.entries(JSON.parse(reports))) {
    await check(`${url.split("/").slice(-2).join("/")}: ${count} charts, drawn, used, shown, alone`, async () => {
      const { context, page, wrong } = await open(url);
      await whole(page, url, count);
      await used(page);
      await shown(page);
      assert.deepEqual(wrong, []);
      await context.close();
    });
  }
  await check("nothing but the page's own script runs", async () => {
    const { context, page, wrong } = await open(Object.keys(JSON.parse(reports))[0]);
    await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "document.title = 'owned'";
      document.body.append(script);
    });
    assert.notEqual(await page.title(), "owned");
    assert.ok(wrong.some((text) => text.includes("Content Security Policy")), `${wrong}`);
    await context.close();
  });
} finally {
  await browser.close();
  console.log(`${passed} passed, ${Object.keys(JSON.parse(reports)).length + 1 - passed} failed`);
}
