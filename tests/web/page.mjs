// The page of `cosched web` as a person has it: page.mjs URL CHROMIUM. tests/web/run starts it, and the daemon again when it says so.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";

const { chromium } = createRequire(process.env.NODE_PATH + "/")("playwright-core");
const [url, executablePath] = process.argv.slice(2);
const cosched = (...words) => execFileSync(process.env.COSCHED, words, { encoding: "utf8" }).trim();
const state = (id) => JSON.parse(cosched("--json", "show", String(id))).state;

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const errors = [];
  page.on("pageerror", (e) => errors.push(e.message));
  page.on("dialog", () => errors.push("a job's name opened a dialog"));
  page.on("console", (m) => m.type() === "error" && !/Failed to load resource|ERR_/.test(m.text()) && errors.push(m.text()));
  await page.goto(url);
  await page.waitForSelector("tr.job");
  assert.equal(page.url(), new URL(url).origin + "/", "the token leaves the address");
  assert.equal(await page.title(), "cosched");
  assert.match(await page.textContent("tr.job"), /<script>document/);
  console.log("   a name with markup is text");

  const id = cosched("run", "-d", "--name", "clicked", "--", "sh", "-c", "while :; do :; done");
  const line = page.locator(`tr[data-job="${id}"]`);
  await line.waitFor();
  assert.match(await page.locator("canvas.matrix").getAttribute("aria-label"), /rows in turn/);
  console.log("   a job that the command starts is there");

  await line.getByRole("button", { name: "Suspend" }).click();
  await line.locator(".state.suspended").waitFor();
  assert.equal(state(id), "suspended");
  await line.getByRole("button", { name: "Resume" }).press("Enter");
  await line.locator(".state.running").waitFor();
  assert.equal(state(id), "running");
  console.log("   a click suspends it, and a key resumes it");

  await line.getByRole("button", { name: "clicked" }).click();
  const details = page.locator("tr.details");
  await details.getByLabel("Class").selectOption("standby");
  await line.getByText("standby").waitFor();
  await details.getByLabel("Share at most").fill("500");
  await details.getByLabel("Share at most").press("Enter");
  await page.getByRole("alert").waitFor();
  console.log("   the class is changed, and a refusal is told:", (await page.getByRole("alert").textContent()).slice(0, 70));
  await page.getByRole("button", { name: "Close" }).click();

  await line.getByRole("button", { name: "Kill…" }).click();
  await page.getByRole("button", { name: "Keep it running" }).click();
  assert.equal(state(id), "running", "kill asks first");
  await line.getByRole("button", { name: "Kill…" }).click();
  await page.getByRole("button", { name: "SIGKILL at once" }).click();
  await line.waitFor({ state: "detached" });
  console.log("   kill asks first, and then ends it");

  for (const width of [400, 2500]) {
    await page.setViewportSize({ width, height: 900 });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, `it fits ${width} pixels`);
  }
  console.log("restart the daemon");
  await page.getByRole("alert").waitFor();
  console.log("start it again");
  await page.getByRole("alert").waitFor({ state: "detached" });
  const again = cosched("run", "-d", "--name", "after", "--", "sleep", "60");
  await page.locator(`tr[data-job="${again}"]`).waitFor();
  console.log("   the page says that the daemon is away, and comes back with it");
  assert.deepEqual(errors, []);
} finally {
  await browser.close();
}
