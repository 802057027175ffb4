// What the page draws, from answers that are made up here: drawn.mjs CHROMIUM. No daemon is needed, and no server: the files are those of web/dist.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { illegible, learnSight, nearest } from "./colours.mjs";

const { chromium } = createRequire(process.env.NODE_PATH + "/")("playwright-core");
const DIST = fileURLToPath(new URL("../../web/dist/", import.meta.url));
const ORIGIN = "http://127.0.0.1:9";
const TYPES = { html: "text/html", js: "text/javascript", css: "text/css" };

/** A job of every kind that the page has a column for. */
const job = (id, more) => ({
  id, name: `job ${id}`, uid: 1000, user: "ann", class: "batch", policy: "gang", cpus: 1, state: "running", command: ["sh"], submitted_unix_ms: Date.now(),
  cpu_time_ms: 1000 * id, memory_bytes: 1 << 20, share: 0.5, share_due: 0.5, share_received: 0.4, row: 0, ...more,
});

/** Cells in rows, each of which has a slot of the cycle. */
const matrix = (cells) => ({
  columns: cells[0].map((_, at) => `cpu${at}`), rows: cells.map((row, index) => ({ index, cells: row, also: [], slots: 1 })),
  turns: cells.map((_, row) => row), cycle_slots: cells.length,
});

/** Answers what the page asks. `jobs()` is called for each answer; `asked` gets the requests that would change something. */
async function serve(page, cells, slotMs, jobs, { me = { uid: 0, user: "root", exempt: true }, status: more = {}, asked = [], samples = [], metrics = "" } = {}) {
  const of = matrix(cells);
  const quantiles = { count: 1, p50_us: 10, p99_us: 20, max_us: 30 };
  const status = {
    version: "0", node: "n", started_unix_ms: Date.now(), policy: "gang", sharing: "strict", slot_length_ms: slotMs, cpus: of.columns.map((_, at) => at), memory_bytes: 1 << 30,
    generation: 1, matrix: of, switches: { count: 1, late: 0, wake: quantiles, done: quantiles }, warnings: [], load: { cpus: of.columns.map((_, cpu) => ({ cpu, busy: 0.5 })) },
    ...more,
  };
  const plan = { generation: 1, epoch_unix_ns: (Date.now() - 60_000) * 1e6, slot_length_ns: slotMs * 1e6, policy: "gang", sharing: "strict", matrix: of };
  const events = `id: 1-1\nevent: plan\ndata: ${JSON.stringify({ unix_ms: Date.now(), kind: "plan", plan })}\n\n`;
  const answers = {
    "/v1/status": () => status, "/v1/jobs": () => ({ jobs: jobs() }), "/v1/limits": () => me,
    "/v1/samples": () => ({ period_ms: 10_000, samples }), "/ask/runs": () => ({ runs: [] }), "/v1/jobs/1/events": () => ({ events: [] }),
  };
  await page.route("**/*", (route) => {
    const { pathname } = new URL(route.request().url());
    if (route.request().method() !== "GET") {
      asked.push(`${route.request().method()} ${pathname} ${route.request().postData()}`);
      return route.fulfill({ json: {} });
    }
    if (pathname === "/v1/events") return route.fulfill({ contentType: "text/event-stream", body: events });
    if (pathname === "/v1/metrics") return route.fulfill({ contentType: "text/plain", body: metrics });
    if (answers[pathname]) return route.fulfill({ json: answers[pathname](), headers: { "Cosched-Unix-Us": String(Date.now() * 1000) } });
    const name = pathname === "/" ? "index.html" : pathname.slice(1);
    return route.fulfill({ contentType: TYPES[name.split(".").pop()] ?? "text/plain", body: readFileSync(DIST + name) });
  });
}

/** Before each text in the matrix: the contrast of its colour with each pixel below it, as the canvas has them over its background. The worst is kept. */
function watchTexts() {
  const { light } = sight;
  const parts = (css) => sight.parts(css).slice(0, 3);
  window.contrasts = {};
  const draw = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
    const id = /^\d+/.exec(text)?.[0];
    const card = getComputedStyle(document.querySelector("section")).backgroundColor;
    if (id) {
      const [ink, { a: scale }] = [light(parts(this.fillStyle)), this.getTransform()];
      const { data } = this.getImageData((x - 6) * scale, (y - 6) * scale, 12 * scale, 12 * scale);
      for (let at = 0; at < data.length; at += 4) {
        const alpha = data[at + 3] / 255;
        const ground = light(parts(card).map((part, n) => data[at + n] * alpha + part * (1 - alpha)));
        const contrast = sight.contrast(ink, ground);
        // Between dim and bright a row is bright for a part of the time.
        const kind = this.font.startsWith("600") ? "bright" : "dim";
        const worst = (window.contrasts[`${id} ${kind}`] ??= { contrast: 99, alpha: 0 });
        worst.contrast = Math.min(worst.contrast, contrast);
        worst.alpha = Math.max(worst.alpha, alpha);
      }
    }
    return draw.call(this, text, x, y, ...rest);
  };
}

const browser = await chromium.launch({ executablePath: process.argv[2], args: ["--no-sandbox"] });
try {
  // Eight colours, each plain and with either stripes; all are in both rows, so each is dim in one and bright in the other.
  const ids = Array.from({ length: 24 }, (_, at) => at + 8);
  for (const colorScheme of ["light", "dark"]) {
    const page = await browser.newPage({ viewport: { width: 1600, height: 900 }, colorScheme });
    await page.addInitScript(learnSight);
    await page.addInitScript(watchTexts);
    await serve(page, [ids, ids], 300, () => ids.map((id) => job(id)));
    await page.goto(ORIGIN);
    await page.waitForFunction((all) => all.every((id) => contrasts[`${id} dim`] && contrasts[`${id} bright`]?.alpha > 0.99), ids);
    const worst = Object.entries(await page.evaluate(() => contrasts)).sort((a, b) => a[1].contrast - b[1].contrast)[0];
    assert.ok(worst[1].contrast >= 4.5, `${colorScheme}: job ${worst[0]}: ${worst[1].contrast}`);
    console.log(`   ${colorScheme}: labels of 24 jobs, dim to bright, have a contrast of at least ${worst[1].contrast.toFixed(2)} to 1`);
    const chips = await page.locator("tr.job .chip").evaluateAll((all) => [...new Set(all.map((chip) => getComputedStyle(chip).backgroundColor))]);
    const [distance, ...pair] = nearest(chips);
    assert.ok(chips.length === 8 && distance >= 15, `${chips.length} colours; ${distance} between ${pair}`);
    for (const width of [400, 700, 1100, 1600, 2500]) {
      await page.setViewportSize({ width, height: 900 });
      assert.deepEqual(await page.evaluate(illegible), [], `${colorScheme}, ${width} px`);
    }
    console.log(`   ${colorScheme}: jobs' colours differ by at least ${distance.toFixed(0)} (${pair[0]}); texts and edges have contrast from 400 to 2500 px`);
    await page.close();
  }

  // Processor time of the page's main thread: script, style and layout. The clock's time would be that of a loaded machine, too.
  const full = await browser.newPage({ viewport: { width: 1600, height: 900 } });
  const cells = Array.from({ length: 10 }, (_, row) => Array.from({ length: 64 }, (_, cpu) => 20 * row + Math.floor((cpu * 20) / 64)));
  await serve(full, cells, 10, () => Array.from({ length: 200 }, (_, id) => job(id, { cpus: 3 })));
  await full.goto(ORIGIN);
  await full.locator("tr.job").nth(199).waitFor();
  const devtools = await full.context().newCDPSession(full);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  const look = async () => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    return [metrics.find(({ name }) => name === "TaskDuration").value, await full.evaluate(() => window.coschedFrames)];
  };
  const perFrame = [];
  let [busy, frames] = await look();
  for (let n = 0; n < 11; n++) {
    await full.waitForFunction((before) => window.coschedFrames >= before + 15, frames);
    const [busyNow, framesNow] = await look();
    perFrame.push((busyNow - busy) / (framesNow - frames));
    [busy, frames] = [busyNow, framesNow];
  }
  // Half of 1/30 s where nothing else runs. What runs beside this test makes CPU time longer, so the quarter counts that was disturbed least.
  const frame = perFrame.sort((a, b) => a - b)[2];
  assert.ok(frame > 0 && frame < 1 / 30, `a frame takes ${frame} s`);
  console.log(`   200 jobs on 64 CPUs: a frame is ${Math.round(100 * frame * 30)} % of what 30 a second allow`);
  await full.close();

  // Counts that grow by the clock, as the daemon's do: what is shown is their growth, whenever the page asks.
  const table = await browser.newPage();
  const begin = Date.now();
  const count = (perS) => 1e6 + Math.round((perS * (Date.now() - begin)) / 1000);
  const counted = () => [job(1, { outside_ms: 1500, waiting: { mode: "spin-block", waits: 9, spins: count(100), blocks: count(40) } }), job(2, { outside_ms: 2500 })];
  const asked = [];
  const node = (name, drains) => ({ name, cpus: 2, alive: true, drains, version: "0" });
  const queue = (name, waiting) => ({ name, exclusive: false, waiting, running: 1 });
  const cluster = { nodes: [node("a", false), node("b", true)], cluster: { name: "c", alone: false, store_answers: true, queues: [queue("day", 3), queue("night", 0)] } };
  await serve(table, [[1, 2]], 100, counted, { status: cluster, asked });
  await table.goto(ORIGIN);
  await table.locator("tr[data-job='1']", { hasText: /1\.5 s(8\d|9\d|1[01]\d) \/ (3\d|4\d) per s/ }).waitFor();
  await table.locator("tr[data-job='2']", { hasText: "2.5 s–" }).waitFor();
  await table.locator("dl.facts", { hasText: "4.0 s of the jobs' CPU time" }).waitFor();
  console.log("   CPU time outside slots, of each job and in all, and waits as a rate");

  assert.match(await table.locator("[aria-labelledby=queues] tbody").textContent(), /day31none.*night01none/);
  await table.getByRole("button", { name: "Drain", exact: true }).click();
  await table.getByRole("button", { name: "Undrain", exact: true }).click();
  const drained = ["a", "b"].map((name) => `PUT /v1/nodes/${name} {"drains":${name === "a"}}`);
  for (let left = 400; asked.length < 2 && left > 0; left--) await new Promise((go) => setTimeout(go, 25));
  assert.deepEqual(asked.sort(), drained);
  await table.close();

  const foreign = await browser.newPage();
  await serve(foreign, [[1, 2]], 100, () => [job(1), job(2, { uid: 1001, user: "bob" })], { me: { uid: 1001, user: "bob", exempt: false }, status: cluster });
  await foreign.goto(ORIGIN);
  const not = foreign.locator("tr[data-job='1']");
  for (const name of ["Suspend", "Kill…"]) {
    const button = not.getByRole("button", { name });
    assert.ok(await button.isDisabled());
    assert.equal(await button.getAttribute("title"), "Only ann or an administrator may change job 1; you are bob.");
    assert.ok(await foreign.locator("tr[data-job='2']").getByRole("button", { name }).isEnabled());
  }
  await not.getByRole("button", { name: "job 1" }).click();
  await foreign.locator("tr.details", { hasText: "Only ann or an administrator may change job 1" }).waitFor();
  assert.ok(await foreign.getByLabel("Class").isDisabled());
  const drain = foreign.getByRole("button", { name: "Drain", exact: true });
  assert.ok(await drain.isDisabled());
  assert.equal(await drain.getAttribute("title"), "Only administrators drain nodes.");
  await foreign.close();
  console.log("   queues and nodes, drain, and what a user may not do: disabled, with the reason");

  // An hour that is half busy, and wholly at one moment, which a mark of the axis names.
  const past = await browser.newPage({ viewport: { width: 1600, height: 900 } });
  const now = Date.now();
  const moment = Math.floor(now / 900_000) * 900_000 - 900_000;
  const samples = Array.from({ length: 361 }, (_, n) => n * 10_000 + now - 3_600_000).map((at) => ({ unix_ms: at, busy: 0.5, jobs: [] }));
  samples.push({ unix_ms: moment, busy: 1, jobs: [] });
  samples.sort((a, b) => a.unix_ms - b.unix_ms);
  const le = (...cumulative) => cumulative.map(([bound, seen]) => `cosched_switch_skew_seconds_bucket{le="${bound}"} ${seen}\n`).join("");
  const metrics = `# TYPE cosched_switch_skew_seconds histogram\n${le([1.6e-5, 0], [3.2e-5, 999], [6.4e-5, 1098], [0.000128, 1098], ["+Inf", 1107])}# EOF\n`;
  await serve(past, [[1, 2]], 100, () => [], { samples, metrics });
  await past.goto(ORIGIN);
  await past.locator("svg.hour").waitFor();
  const drawn = await past.evaluate(() => {
    const middle = (element) => { const { left, top, width, height } = element.getBoundingClientRect(); return [left + width / 2, top + height / 2]; };
    const svg = document.querySelector("svg.hour");
    const points = svg.querySelector(".busy").getAttribute("d").split(/[ML]/).slice(1).map((pair) => pair.split(" ").map(Number));
    const shown = points.map(([x, y]) => { const { x: left, y: top } = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM()); return [left, top]; });
    const labels = (selector) => Array.from(document.querySelectorAll(`[aria-labelledby=hour] ${selector}`), (label) => [label.textContent, ...middle(label)]);
    const bars = Array.from(document.querySelectorAll(".bars span"), (bar) => [bar.title, bar.getBoundingClientRect().height]);
    return { shown, x: labels(".x time"), y: labels(".y span"), bars, high: document.querySelector(".bars").clientHeight };
  });
  const [peak, rest] = [0, drawn.shown.length - 1].map((at) => drawn.shown.toSorted((a, b) => a[1] - b[1])[at]);
  const time = new Date(moment).toLocaleTimeString(undefined, { hourCycle: "h23" }).slice(0, 5);
  const near = (what, a, b) => assert.ok(Math.abs(a - b) < 2, `${what}: ${a} and ${b}`);
  const mark = (labels, text) => labels.find((label) => label[0] === text) ?? assert.fail(`no ${text} in ${labels}`);
  near("the moment of the peak", mark(drawn.x, time)[1], peak[0]);
  near("100 %", mark(drawn.y, "100 %")[2], peak[1]);
  near("50 %", mark(drawn.y, "50 %")[2], rest[1]);
  assert.ok(drawn.x.length >= 3 && drawn.x.length <= 6, String(drawn.x));
  assert.deepEqual(drawn.bars.map(([title]) => title), ["16 µs to 32 µs: 999", "32 µs to 64 µs: 99", "64 µs to 128 µs: 0", "later than 128 µs: 9"]);
  drawn.bars.forEach(([title, height], at) => near(title, height, (drawn.high * [3, 2, 0, 1][at]) / 3));
  await past.close();
  console.log("   the hour has the axes of its data, and switches are shown by how late they were");

  // All of it without a mouse.
  const keys = await browser.newPage({ viewport: { width: 1600, height: 900 } });
  const typed = [];
  await serve(keys, [[1, 2]], 100, () => [job(1), job(2)], { status: cluster, asked: typed });
  await keys.goto(ORIGIN);
  await keys.locator("tr.job").nth(1).waitFor();
  const focused = () => keys.evaluate(() => {
    const at = document.activeElement;
    const seen = at === document.body || (at.matches(":focus-visible") && getComputedStyle(at).outlineStyle !== "none");
    (window.visited ??= new Set()).add(at);
    return { name: at === document.body ? "" : (at.ariaLabel ?? at.labels?.[0]?.textContent ?? at.textContent).trim(), tag: at.localName, seen };
  });
  const to = async (name, key = "Tab") => {
    for (let left = 120; left > 0; left--) {
      await keys.keyboard.press(key);
      const at = await focused();
      assert.ok(at.seen, `the focus is not to be seen at ${at.name || at.tag}`);
      if (at.name.startsWith(name) && (name !== "" || at.tag === "body")) return;
    }
    assert.fail(`no way by ${key} to ${name || "the end"}`);
  };
  for (const name of ["Playground", "Theme", "Filter jobs", "job 1", "Suspend", "Kill…", "job 2", "Drain", "Undrain", ""]) await to(name);
  const missed = await keys.evaluate(() => Array.from(document.querySelectorAll("button, select, input, textarea, summary, a[href]"))
    .filter((one) => !one.disabled && one.checkVisibility() && one.type !== "radio" && !visited.has(one)).map((one) => one.outerHTML));
  assert.deepEqual(missed, []);
  await to("job 1");
  await keys.keyboard.press("Enter");
  await to("Class");
  await keys.keyboard.press("s");
  await to("CPUs");
  await keys.keyboard.type("3");
  await keys.keyboard.press("Enter");
  await to("Kill…", "Shift+Tab");
  await keys.keyboard.press("Enter");
  await keys.getByRole("dialog").waitFor();
  await to("Keep it running");
  await keys.keyboard.press("Escape");
  await keys.locator("dialog").waitFor({ state: "detached" });
  assert.equal((await focused()).name, "Kill…", "the focus is where it was");
  await keys.keyboard.press("Space");
  await keys.getByRole("dialog").waitFor();
  await to("SIGKILL at once");
  await keys.keyboard.press("Enter");
  await keys.locator("dialog").waitFor({ state: "detached" });
  const wanted = ['POST /v1/jobs/1/class {"class":"standby"}', 'POST /v1/jobs/1/resources {"cpus":3}', 'POST /v1/jobs/1/kill {"signal":9}'];
  for (let left = 400; typed.length < 3 && left > 0; left--) await new Promise((go) => setTimeout(go, 25));
  assert.deepEqual(typed, wanted);
  await keys.close();
  console.log("   every control is reached by the keyboard, is seen to have the focus, and does its work by it");
} finally {
  await browser.close();
}
