// Keeps what is shown up to date: the server says what has changed, the page is
// fetched again, and what differs is put in place of the old, without moving the
// reader. The page is whole without it.
"use strict";
(() => {
  const rarely = 15000; // where no events come
  const atMost = 1500; // no more often than this
  const main = document.getElementById("main");
  const pause = document.getElementById("pause");
  const lost = document.getElementById("lost");
  if (!document.getElementById("live") || !pause || !main) return;
  const shown = (main.dataset.parts || "").split(" ");
  let paused = false, busy = false, missed = false, last = 0, timer = 0;

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on updating" : "Pause updates";
    if (!paused && missed) update();
  });

  // Not while somebody marks text or holds the page back.
  const held = () => paused || busy || document.hidden || String(window.getSelection()) !== "";

  function soon() {
    if (timer) return;
    timer = setTimeout(() => { timer = 0; update(); }, Math.max(0, last + atMost - Date.now()));
  }

  async function update() {
    if (held()) { missed = true; return; }
    busy = true;
    missed = false;
    last = Date.now();
    try {
      const reply = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (reply.status === 401) { location.reload(); return; }
      const next = new DOMParser().parseFromString(await reply.text(), "text/html");
      const fresh = next.getElementById("live");
      if (!fresh) throw new Error("no content: status " + reply.status);
      swap(document.getElementById("live"), fresh);
      document.title = next.title;
      const asof = next.querySelector(".asof");
      if (asof) document.querySelector(".asof").replaceWith(asof);
      if (lost.textContent) lost.textContent = "";
    } catch (e) {
      lost.textContent = "The server does not answer: what is shown may be old.";
    } finally {
      busy = false;
    }
  }

  // Piece by piece where both have the same pieces, else as a whole. A piece in
  // which somebody fills in a form stays as it is.
  function swap(old, fresh) {
    const before = pieces(old), after = pieces(fresh);
    if (before.map((p) => p.id).join() !== after.map((p) => p.id).join()) { put(old, fresh); return; }
    before.forEach((p, i) => { if (p.outerHTML !== after[i].outerHTML) put(p, after[i]); });
  }
  const pieces = (root) => [...root.querySelectorAll("[data-piece]")];

  // Keeps which details are open, and which element has the focus.
  function put(old, fresh) {
    const active = document.activeElement;
    const inside = active && old.contains(active);
    if (inside && active.matches("input:not([type=hidden]), select, textarea")) return;
    const open = [...old.querySelectorAll("details[open][id]")].map((d) => d.id);
    for (const d of fresh.querySelectorAll("details[id]")) if (open.includes(d.id)) d.open = true;
    const key = inside ? active.dataset.key : undefined;
    old.replaceWith(fresh);
    if (!key) return;
    const el = [...fresh.querySelectorAll("[data-key]")].find((e) => e.dataset.key === key);
    if (el) el.focus({ preventScroll: true });
  }

  let source, again = 0, poll = 0;
  const asking = (yes) => {
    clearInterval(poll);
    if (yes) poll = setInterval(update, rarely);
  };
  function listen() {
    source = new EventSource(main.dataset.events);
    source.addEventListener("open", () => { asking(false); if (missed) soon(); });
    source.addEventListener("change", (e) => { if (e.data.split(" ").some((p) => shown.includes(p))) soon(); });
    source.addEventListener("idle", soon);
    source.addEventListener("error", () => {
      asking(true);
      missed = true;
      // A browser gives up for good where the answer is no stream: too many listen, say.
      if (source.readyState === EventSource.CLOSED) again = setTimeout(listen, 2 * rarely);
    });
  }
  // A page that nobody sees listens to nothing: a browser has but a few connections
  // to a server, and tabs in the background would hold them all.
  function seen() {
    clearTimeout(again);
    if (source) source.close();
    if (document.hidden) { asking(false); missed = true; return; }
    if (main.dataset.events && window.EventSource) listen(); else asking(true);
    if (missed) update();
  }
  document.addEventListener("visibilitychange", seen);
  seen();
})();
