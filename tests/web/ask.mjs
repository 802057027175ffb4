// What if, in the page: ask.mjs URL CHROMIUM. A prediction and its check, a trace, and their reports in tabs of their own.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const { chromium } = createRequire(process.env.NODE_PATH + "/")("playwright-core");
const [url, executablePath] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "dark" });
  const page = await context.newPage();
  const errors = [];
  context.on("weberror", (e) => errors.push(e.error().message));
  context.on("console", (m) => m.type() === "error" && !/Failed to load resource/.test(m.text()) && errors.push(m.text()));
  await page.goto(url);
  const runs = page.locator(".runs tbody tr");
  const ended = (kind, state) => page.locator(`[data-run=${kind}]`, { hasText: state }).first();

  for (const name of ["gang-strict", "local+spin-block", "auto", "linux"]) await page.getByLabel(name, { exact: true }).uncheck();
  await page.getByLabel("Predict").fill("2");
  await page.getByLabel("Observe").fill("1");
  await page.getByLabel("Observe").press("Enter");
  const predicted = page.locator("table.prediction");
  await predicted.waitFor();
  assert.deepEqual((await predicted.locator("th").allTextContents()).slice(-3), ["Slowdown, now", "gang-soft", "local"]);
  assert.match(await predicted.locator("tbody").textContent(), /<script>document/);
  await page.locator("table.check tbody tr").first().waitFor();
  await ended("whatif", "done").waitFor();
  console.log("   the running jobs are predicted, and then it says how right that was");

  /** Opens the report of a run, which must not be able to use what the page can. */
  const report = async (row) => {
    const [tab] = await Promise.all([context.waitForEvent("page"), row.getByRole("link", { name: "Open" }).click()]);
    await tab.locator("h1").waitFor();
    const reach = await tab.evaluate(async () => {
      const tried = { origin: self.origin, opener: String(window.opener) };
      for (const [name, get] of [["storage", () => localStorage.length], ["cookie", () => document.cookie]]) {
        try { tried[name] = String(get()); } catch (e) { tried[name] = e.name; }
      }
      tried.request = await fetch("/v1/status").then((answer) => String(answer.status), (e) => e.name);
      return tried;
    });
    assert.deepEqual(reach, { origin: "null", opener: "null", storage: "SecurityError", cookie: "SecurityError", request: "TypeError" });
    const text = await tab.locator("body").textContent();
    await tab.close();
    return text;
  };
  await report(ended("whatif", "done"));

  await page.locator("form select").selectOption("");
  const compare = async (name, text) => {
    await page.locator("[name=trace]").setInputFiles({ name, mimeType: "text/csv", buffer: Buffer.from(text) });
    await page.locator("[name=strategies]").fill("GS, SB");
    await page.locator("[name=seeds]").fill("1");
    await page.getByRole("button", { name: "Compare" }).click();
  };
  await compare("mine.csv", "arrival_s,tasks,exec_s,type\n0,8,1,J4\n0.1,16,1,J1\n");
  await ended("compare", "done").waitFor();
  await page.locator(".result pre", { hasText: "GS" }).waitFor();
  assert.match(await report(ended("compare", "done")), /Strategies on mine\.csv/);
  console.log("   strategies are compared on a trace; a report has neither cookie nor token, nor any request");

  await compare("<img src=x>\u001b[31m", "arrival_s,tasks\nthis is \u001b[31m<b>no</b> list\n");
  await ended("compare", "failed").waitFor();
  assert.equal(await ended("compare", "failed").getByRole("link").count(), 0, "it has no report");
  await page.locator(".result", { hasText: "imgsrcx" }).waitFor();
  assert.equal(await page.locator(".result b, .result img").count(), 0);
  assert.ok(!(await page.content()).includes("\u001b"));
  console.log("   a bad trace is refused:", (await page.locator(".result pre").last().textContent()).split("\n")[0].slice(0, 90));

  assert.equal(await runs.count(), 3);
  for (const width of [400, 2500]) {
    await page.setViewportSize({ width, height: 900 });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, `it fits ${width} pixels`);
  }
  await page.getByRole("link", { name: "Playground" }).click();
  const row = (name) => page.getByRole("row").filter({ has: page.getByRole("button", { name, exact: true }) });
  const end = async (name) => parseFloat(await row(name).getByRole("cell").nth(1).textContent());
  await row("GS").waitFor();
  await page.getByLabel("Strategy", { exact: true }).selectOption("Local");
  await row("Local").waitFor();
  assert.ok(await end("Local") > 1.5 * await end("GS"), "two jobs: the collapse, and gang scheduling without it");
  await page.getByLabel("Processes of job 1").fill("9");
  await page.getByLabel("Processes of job 1").press("Tab");
  await page.getByRole("alert").getByText("job 1 has 9 processes").waitFor();
  console.log("   the playground is simulated by the server");

  // The policy of a report refuses the request that was tried.
  assert.deepEqual(errors.filter((text) => !/Content Security Policy|Connecting to/.test(text)), []);
} finally {
  await browser.close();
}
