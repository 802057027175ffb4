// The page of `cosched web` as a person has it: page.mjs URL CHROMIUM. tests/web/run starts it, and the daemon again when it says so.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";

const { chromium } = createRequire(process.env.NODE_PATH + "/")("playwright-core");
const [url, executablePath] = process.argv.slice(2);
const cosched = (...words) => execFileSync(process.env.COSCHED, words, { encoding: "utf8" }).trim();
const show = (id) => JSON.parse(cosched("--json", "show", String(id)));
const state = (id) => show(id).state;

const read = (path) => { try { return readFileSync(path, "utf8"); } catch { return ""; } };

/** The processor time of a job's processes, in clock ticks, as the kernel tells it. */
function ticks(id) {
  const end = `/job-${id}`;
  const own = (line) => line.endsWith(end) || line.includes(`${end}/`);
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && read(`/proc/${name}/cgroup`).split("\n").some(own));
  const stats = pids.map((pid) => read(`/proc/${pid}/stat`)).filter((stat) => stat !== "");
  assert.ok(stats.length > 0, `job ${id} has processes`);
  const fields = stats.map((stat) => stat.slice(stat.lastIndexOf(")") + 2).split(" "));
  return fields.reduce((sum, field) => sum + Number(field[11]) + Number(field[12]), 0);
}

async function until(what, ready) {
  for (let left = 400; !ready(); left--) {
    assert.ok(left > 0, what);
    await new Promise((go) => setTimeout(go, 50));
  }
}

/** By how much one job's processor time grows while another's grows by `most` ticks. */
async function grows(id, beside, most) {
  const [before, end] = [ticks(id), ticks(beside) + most];
  await until(`job ${beside} runs`, () => ticks(beside) >= end);
  return ticks(id) - before;
}

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

  // The daemon's clock and the page's are one. What a request takes on a machine with other load comes on top of the second.
  await page.evaluate(() => {
    window.shown = {};
    new MutationObserver(() => document.querySelectorAll("tr.job").forEach((line) => { shown[line.dataset.job] ??= Date.now(); }))
      .observe(document.body, { subtree: true, childList: true, attributes: true });
  });
  const delays = [];
  for (let n = 0; n < 3; n++) {
    const one = cosched("run", "-d", "--name", `soon${n}`, "--", "sleep", "300");
    await page.locator(`tr[data-job="${one}"]`).waitFor();
    delays.push(await page.evaluate((job) => shown[job], one) - show(one).submitted_unix_ms);
    cosched("kill", "--signal", "9", one);
  }
  const request = await page.evaluate(async () => {
    const asked = performance.now();
    await fetch("/v1/jobs", { headers: { Authorization: `Bearer ${localStorage.getItem("cosched-token")}` } }).then((answer) => answer.json());
    return performance.now() - asked;
  });
  const delay = delays.sort((a, b) => a - b)[1];
  assert.ok(delay < 1000 + 3 * request, `a job is shown after ${delays} ms; a request takes ${request} ms`);
  console.log("   a job is shown within a second of its start");

  const beside = (await page.locator("tr.job").first().getAttribute("data-job"));
  const id = cosched("run", "-d", "--name", "clicked", "--", "sh", "-c", "while :; do :; done");
  const line = page.locator(`tr[data-job="${id}"]`);
  await line.waitFor();
  assert.match(await page.locator("canvas.matrix").getAttribute("aria-label"), /rows in turn/);
  await page.locator("figure.switches").waitFor();
  const counts = await page.locator("figure.switches .bars span").evaluateAll((bars) => bars.map((bar) => Number(bar.title.split(": ")[1].replaceAll(",", ""))));
  const shown = counts.reduce((sum, count) => sum + count, 0);
  const all = JSON.parse(cosched("--json", "status")).switches.count;
  assert.ok(shown > 0 && shown <= all, `${shown} of ${all} switches`);
  console.log("   a job that the command starts is there, and so are the times of its switches");

  await until("it runs", () => state(id) === "running" && ticks(id) > 2);
  await line.getByRole("button", { name: "Suspend" }).click();
  await line.locator(".state.suspended").waitFor();
  assert.equal(state(id), "suspended");
  assert.equal(await grows(id, beside, 20), 0, "its processes stand still");
  await line.getByRole("button", { name: "Resume" }).press("Enter");
  await line.locator(".state.running").waitFor();
  assert.equal(state(id), "running");
  const stood = ticks(id);
  await until("its processes run again", () => ticks(id) > stood);
  console.log("   a click suspends it, so that its processes get no processor time, and a key resumes it");

  await line.getByRole("button", { name: "clicked" }).click();
  const details = page.locator("tr.details");
  await details.getByLabel("Class").selectOption("standby");
  await line.getByText("standby").waitFor();
  for (const [label, value, done] of [
    ["Share at most", "50", (job) => job.share_max === 0.5], ["CPUs", "1", (job) => job.cpus === 1], ["Memory needed", "8", (job) => job.mem_bytes === 8 << 20],
  ]) {
    await details.getByLabel(label).fill(value);
    await details.getByLabel(label).press("Enter");
    await until(`${label} ${value}`, () => done(show(id)));
  }
  await details.getByLabel("Policy").selectOption("local");
  await until("the policy", () => show(id).own_policy === "local");
  assert.equal(await page.getByRole("alert").count(), 0);
  console.log("   share, resources and policy are changed");
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
