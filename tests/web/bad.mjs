// What bad input gets in the page: bad.mjs CHROMIUM. The page's own clock is moved, and its connections lead through a relay that can fall silent.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createRequire } from "node:module";
import net from "node:net";
import { createInterface } from "node:readline";

const { chromium } = createRequire(process.env.NODE_PATH + "/")("playwright-core");
const cosched = (...words) => execFileSync(process.env.COSCHED, words, { encoding: "utf8" }).trim();

/** `cosched web`, and the address that it prints. */
async function serve(port = 0) {
  const child = spawn(process.env.COSCHED, ["web", "--json", "--listen", `127.0.0.1:${port}`], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await new Promise((go) => createInterface(child.stdout).once("line", (text) => go([text])));
  return { child, url: new URL(JSON.parse(line).url) };
}

async function end({ child }) {
  child.kill();
  await new Promise((go) => child.once("exit", go));
}

let server = await serve();
const port = server.url.port;
// As through ssh: the browser's connections are the relay's. A dead one takes what is sent and answers nothing, for ever.
let dead = false;
const pairs = [];
const relay = net.createServer((browser) => {
  browser.on("error", () => {});
  const up = net.connect(port, "127.0.0.1").on("error", () => browser.destroy()).on("close", () => pairs.includes(browser) || browser.destroy());
  if (dead) return void (pairs.push(browser), up.destroy());
  browser.on("close", () => up.destroy());
  browser.pipe(up, { end: true });
  up.pipe(browser, { end: false });
  browser.up = up;
  alive.add(browser);
});
const alive = new Set();
function cut() {
  dead = true;
  for (const browser of alive) {
    pairs.push(browser);
    browser.up.unpipe(browser);
    browser.up.destroy();
  }
  alive.clear();
}
await new Promise((go) => relay.listen(0, "127.0.0.1", go));

const rule = `MAP 127.0.0.1:${port} 127.0.0.1:${relay.address().port}`;
const browser = await chromium.launch({ executablePath: process.argv[2], args: ["--no-sandbox", `--host-resolver-rules=${rule}`] });
try {
  const page = await browser.newPage();
  const errors = [];
  page.on("pageerror", (e) => errors.push(e.message));
  page.on("dialog", () => errors.push("a job's name opened a dialog"));
  let asked = 0;
  page.on("request", (request) => { asked += request.url().endsWith("/v1/status"); });
  await page.clock.install();
  await page.goto(server.url.href);
  await page.waitForSelector("tr.job");
  const alert = page.getByRole("alert");
  const begin = async (name) => {
    const id = cosched("run", "-d", "--name", name, "--", "sleep", "60");
    await page.locator("ol.past li", { hasText: `job ${id} ` }).first().waitFor();
    return id;
  };

  await page.locator("ol.past", { hasText: "<script>" }).waitFor();
  assert.equal(await page.locator("section script, section img").count(), 0);
  await page.locator("tr.job", { hasText: "\\u{1b}[31m" }).waitFor();
  assert.ok(!(await page.content()).includes("\x1b"));
  console.log("   names with markup and escapes of terminals are text");

  const up = /up ([1-9][\d.]*) (s|min)/;
  for (const hours of [2, -2]) {
    await page.clock.setSystemTime(await page.evaluate((h) => Date.now() + h * 3600e3, hours));
    for (let looks = 0; looks < 2; looks++) {
      const answer = page.waitForResponse("**/v1/status");
      await page.clock.runFor(2100);
      await answer;
    }
    await page.locator("header", { hasText: up }).waitFor();
    await begin(`clock${hours}`);
    assert.match(await page.locator("header").textContent(), up, "the page takes the daemon's time");
    await page.clock.setSystemTime(await page.evaluate((h) => Date.now() - h * 3600e3, hours));
  }
  console.log("   a clock that is set, back and forth, is noticed");

  cut();
  await page.clock.runFor(20_000);
  await alert.waitFor();
  assert.match(await alert.textContent(), /does not answer/);
  dead = false;
  await page.clock.fastForward(3_600_000);
  await alert.waitFor({ state: "detached" });
  await begin("woken");
  console.log("   an hour behind a dead connection: the page says so, and has the events again");

  // Longer than the daemon's ring: what a page is told at worst. Again at each attempt: a page whose clock jumps may connect twice.
  const job = { what: "began", detail: "", name: "burst", user: "ann", state: "running" };
  const event = (id) => `id: 1-${id}\nevent: job\ndata: ${JSON.stringify({ unix_ms: 1, kind: "job", job: { ...job, id } })}\n\n`;
  const body = Array.from({ length: 10_000 }, (_, id) => event(id)).join("");
  await page.route("**/v1/events?*", (route) => route.fulfill({ contentType: "text/event-stream", body }));
  cut();
  dead = false;
  const before = asked;
  await page.clock.fastForward(60_000);
  await page.locator("ol.past li", { hasText: "job 9999 burst" }).waitFor();
  await page.unroute("**/v1/events?*");
  assert.ok(asked - before < 40, `${asked - before} requests for 10,000 events`);
  assert.equal(await page.locator("ol.past li", { hasText: "burst" }).count(), 30);
  await begin("quiet");
  console.log("   10,000 events at once are 30 lines and few requests");

  await end(server);
  await alert.waitFor();
  server = await serve(port);
  await page.locator("[role=alert]", { hasText: "the token is missing or old" }).waitFor();
  await page.goto(server.url.href);
  await page.waitForSelector("tr.job");
  assert.equal(await alert.count(), 0);
  console.log("   a stale token is told, with what to do");
  assert.deepEqual(errors, []);
} finally {
  await browser.close();
  relay.close();
  pairs.forEach((browser) => browser.destroy());
  await end(server);
}
