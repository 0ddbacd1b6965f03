#!/usr/bin/env node
// Runs a command that makes one request of your own, under a quota that the feeds
// share. Built-ins only (Node 18 or later); take charge() and refund() into your own.
//   FEEDWARDEN_URL=http://127.0.0.1:8080 FEEDWARDEN_TOKEN=… ./share.mjs youtube 1 curl -fsS https://…
// It waits for its turn in the line, at most FEEDWARDEN_PATIENCE seconds (600); then it
// leaves the line and exits 75. A command that fails gets its units back: its request is
// taken not to have counted. Its exit code is handed on. An answer that does not come
// within FEEDWARDEN_TIMEOUT seconds (60) is a failure.
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";

const base = (process.env.FEEDWARDEN_URL ?? "http://127.0.0.1:8080").replace(/\/$/, "");
const timeout = Number(process.env.FEEDWARDEN_TIMEOUT ?? 60) * 1000;
const token = process.env.FEEDWARDEN_TOKEN;

class Refused extends Error {}

function ask(quota, action, body) {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const url = `${base}/v1/quotas/${encodeURIComponent(quota)}/${action}`;
  return fetch(url, { method: "POST", headers, body: JSON.stringify(body), signal: AbortSignal.timeout(timeout) });
}

async function good(answer) {
  if (!answer.ok) throw new Error(`${answer.status}: ${(await answer.text()).trim()}`);
  return answer.json();
}

// Resolves when the units are ours. The same id again is never counted twice. Whoever
// gives up before that leaves the line by refund().
async function charge(quota, cost, id, patience) {
  for (;;) {
    const answer = await ask(quota, "charge", { id, cost });
    const seconds = Number(answer.headers.get("Retry-After"));
    if (![429, 503].includes(answer.status) || !seconds) return good(answer);
    await answer.text();
    if (seconds > patience) throw new Refused(`${quota}: refused for another ${seconds} s`);
    console.error(`${quota}: ${seconds} s until it is our turn`);
    patience -= seconds;
    await new Promise((wake) => setTimeout(wake, seconds * 1000));
  }
}

async function refund(quota, id) {
  return (await good(await ask(quota, "refund", { id }))).restored;
}

async function main([quota, cost, command, ...args]) {
  if (!command) {
    console.error("usage: share.mjs QUOTA COST COMMAND…");
    return 2;
  }
  const id = `script-${randomUUID()}`;
  for (const signal of ["SIGINT", "SIGTERM"])
    process.once(signal, () => refund(quota, id).finally(() => process.exit(130)));
  let code = 1;
  try {
    await charge(quota, Number(cost), id, Number(process.env.FEEDWARDEN_PATIENCE ?? 600));
    const { status, error } = spawnSync(command, args, { stdio: "inherit" });
    if (error) console.error(error.message);
    code = status ?? 1;
  } finally {
    // Out of the line, too; what was wrong first is what to say.
    if (code !== 0) await refund(quota, id).catch(() => console.error(`could not give ${cost} units back under ${id}`));
  }
  return code;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error.cause ? `${base}: ${error.cause.message || error.cause.code}` : error.message);
  process.exitCode = error instanceof Refused ? 75 : 1;
}
