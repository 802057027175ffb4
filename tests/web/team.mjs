// The page of a team in a browser that has logged in at nginx: team.mjs ORIGIN USER PASSWORD CHROMIUM.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const { chromium } = createRequire(process.env.NODE_PATH + "/")("playwright-core");
const [origin, username, password, executablePath] = process.argv.slice(2);

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", `--host-resolver-rules=MAP ${new URL(origin).hostname} 127.0.0.1`] });
try {
  const context = await browser.newContext({ httpCredentials: { username, password }, ignoreHTTPSErrors: true });
  const page = await context.newPage();
  await page.goto(origin);
  const line = page.locator("tr.job").first();
  await line.getByRole("button", { name: "Suspend" }).click();
  await line.locator(".state.suspended").waitFor();
  await line.getByRole("button", { name: "Resume" }).click();
  await line.locator(".state.running").waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
  console.log("   and in a browser, without a token");
} finally {
  await browser.close();
}
