#!/usr/bin/env node
// Fetches a feed now and prints its titles; exit 75: refused for now. Built-ins only (Node 18 or later).
// An answer that does not come within FEEDWARDEN_TIMEOUT seconds (60) is a failure.
//   FEEDWARDEN_URL=http://127.0.0.1:8080 FEEDWARDEN_TOKEN=… ./fetch.mjs news
const base = (process.env.FEEDWARDEN_URL ?? "http://127.0.0.1:8080").replace(/\/$/, "");
const timeout = Number(process.env.FEEDWARDEN_TIMEOUT ?? 60) * 1000;
const token = process.env.FEEDWARDEN_TOKEN;

async function call(method, path, body) {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const answer = await fetch(base + path, { method, headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(timeout) });
  if (!answer.ok) {
    const error = new Error(`${answer.status}: ${(await answer.text()).trim()}`);
    error.later = answer.status === 429 || answer.status === 503;
    throw error;
  }
  return answer.json();
}

const feed = process.argv[2];
if (!feed) {
  console.error("usage: fetch.mjs FEED");
  process.exit(1);
}
try {
  await main();
} catch (error) {
  console.error(error.cause ? `${base}: ${error.cause.message || error.cause.code}` : error.message);
  process.exit(error.later ? 75 : 1);
}

async function main() {
  let job = await call("POST", "/v1/jobs", { feed });
  while (!["done", "failed", "expired", "cancelled"].includes(job.state)) {
    if (job.state === "snoozed") console.error("waits for its quota until", job.next_at);
    await new Promise((wake) => setTimeout(wake, 500));
    job = await call("GET", `/v1/jobs/${job.id}`);
  }
  if (job.state !== "done") {
    console.error(`${job.state}: ${job.last_error}`);
    process.exit(1);
  }
  for (const item of (await call("GET", `/v1/feeds/${feed}`)).items) console.log(item.title);
}
