// Keeps what is shown up to date: fetches the page again and puts its content
// in place of the old, without moving the reader. The page is whole without it.
"use strict";
(() => {
  const every = 5000;
  const live = () => document.getElementById("live");
  const pause = document.getElementById("pause");
  const lost = document.getElementById("lost");
  if (!live() || !pause) return;
  let paused = false, busy = false;

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on updating" : "Pause updates";
    if (!paused) update();
  });

  // Not while somebody marks text or holds the page back.
  const held = () => paused || busy || document.hidden || String(window.getSelection()) !== "";

  async function update() {
    if (held()) return;
    busy = true;
    try {
      const reply = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (reply.status === 401) { location.reload(); return; }
      const next = new DOMParser().parseFromString(await reply.text(), "text/html");
      const fresh = next.getElementById("live");
      if (!fresh) throw new Error("no content: status " + reply.status);
      swap(fresh);
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

  // Keeps which details are open, and which link has the focus.
  function swap(fresh) {
    const open = [...live().querySelectorAll("details[open][id]")].map((d) => d.id);
    const focus = document.activeElement && live().contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    for (const d of fresh.querySelectorAll("details[id]")) d.open = open.includes(d.id);
    live().replaceWith(fresh);
    if (focus) {
      const el = [...live().querySelectorAll("[data-key]")].find((e) => e.dataset.key === focus);
      if (el) el.focus({ preventScroll: true });
    }
  }

  setInterval(update, every);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) update(); });
})();
