// The playground as a person has it: page.mjs URL CHROMIUM.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const { chromium } = createRequire(process.env.NODE_PATH + "/")("playwright-core");
const [url, executablePath] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

/** How many colours a picture has, and the share of its pixels that are not the ground. */
const drawn = (page) => page.locator("canvas.picture").evaluate((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const colours = new Map();
  let painted = 0;
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] < 250) continue;
    painted++;
    const key = `${data[at]},${data[at + 1]},${data[at + 2]}`;
    colours.set(key, (colours.get(key) ?? 0) + 1);
  }
  return { colours: Object.fromEntries(colours), painted: painted / (data.length / 4) };
});

try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  const errors = [];
  const asked = [];
  page.on("pageerror", (e) => errors.push(e.message));
  page.on("console", (m) => m.type() === "error" && errors.push(m.text()));
  page.on("request", (r) => r.url() !== url && !r.url().startsWith("data:") && asked.push(r.url()));
  await page.goto(url);
  const row = (name) => page.getByRole("row").filter({ has: page.getByRole("button", { name, exact: true }) });
  const end = async (name) => parseFloat((await row(name).getByRole("cell").nth(1).textContent()) ?? "");
  const part = async (name, column) => parseFloat((await row(name).getByRole("cell").nth(2 + column).textContent()) ?? "");
  await row("GS").waitFor();
  const { colours, painted } = await drawn(page);
  assert.ok(painted > 0.1, `something is drawn: ${painted}`);
  assert.ok(colours["0,114,178"] > 500, "the first job's colour, in the palette for the colour-blind");
  assert.equal(asked.length, 0, `nothing is asked of anybody: ${asked}`);
  console.log("   opened as a file, it simulates and draws");

  const canvas = page.locator("canvas.picture");
  await canvas.focus();
  const words = () => canvas.getAttribute("aria-label");
  const first = await words();
  assert.match(first, /^At 0\.00 ms: CPU 0: job 1\.0 computes/);
  for (let n = 0; n < 12; n++) await canvas.press("ArrowRight");
  const moved = await words();
  assert.notEqual(moved, first);
  assert.match(moved, /job 1/);
  await canvas.press("Home");
  await page.waitForFunction(() => document.querySelector("canvas.picture").ariaLabel.startsWith("At 0.00 ms"));
  await canvas.press(" ");
  await page.getByRole("button", { name: "Pause" }).waitFor();
  await page.waitForFunction(() => !document.querySelector("canvas.picture").ariaLabel.startsWith("At 0.00 ms"));
  await canvas.press(" ");
  await page.getByRole("button", { name: "Play" }).waitFor();
  console.log("   keys move, play and pause, and words say what is drawn");

  await page.getByLabel("Strategy", { exact: true }).selectOption("Local");
  await row("Local").waitFor();
  assert.ok(await end("Local") > 1.5 * await end("GS"), "two jobs: the collapse, and gang scheduling without it");
  assert.ok(await part("Local", 2) > await part("GS", 2), "which is spinning");
  await page.getByRole("button", { name: "Compare all strategies" }).click();
  await row("EASY").waitFor();
  assert.equal(await page.locator("table").nth(1).locator("tbody tr").count(), 16);
  await row("SB").getByRole("button").click();
  assert.equal(await page.getByLabel("Strategy", { exact: true }).inputValue(), "SB");
  console.log("   the collapse is there, and all strategies are compared");

  await page.getByLabel("Processes of job 1").fill("9");
  await page.getByLabel("Processes of job 1").press("Tab");
  await page.getByRole("alert").getByText("job 1 has 9 processes").waitFor();
  await page.getByLabel("CPUs").fill("9");
  await page.getByLabel("CPUs").press("Tab");
  await page.getByRole("alert").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Add a job" }).click();
  await page.getByLabel("What job 3 does").waitFor();
  await page.getByRole("button", { name: "Remove job 3" }).click();
  console.log("   a mistake is explained, and goes with its cause");

  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    const [ground, text] = await page.evaluate(() => [document.body, document.querySelector("canvas")].map((of, n) => getComputedStyle(of)[n ? "color" : "backgroundColor"].match(/\d+/g).map(Number)));
    const light = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
    assert.ok(colorScheme === "dark" ? light(ground) < 60 && light(text) > 180 : light(ground) > 200 && light(text) < 80, `${colorScheme}: ${ground} ${text}`);
  }
  for (const width of [400, 2500]) {
    await page.setViewportSize({ width, height: 900 });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `no scrolling sideways at ${width} px`);
  }
  console.log("   dark and light, narrow and wide");
  assert.deepEqual(errors, []);
} finally {
  await browser.close();
}
