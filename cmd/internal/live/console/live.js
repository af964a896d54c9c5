// SPDX-License-Identifier: Apache-2.0

// Shows what changes in the cluster while a page is open. It waits while the user is in the page's
// content or has typed into it. Without scripts, the page is reloaded by hand.
"use strict";

const main = document.querySelector("main[data-live]");
const read = document.querySelector("footer time");
let latest = "";

function show() {
  const inside = main.contains(document.activeElement) && document.activeElement !== main;
  const typed = [...main.querySelectorAll("input")].some((field) => field.value !== field.defaultValue);
  if (latest && !inside && !typed) {
    main.innerHTML = latest;
    latest = "";
  }
}

if (main) {
  const events = new EventSource(location.href);
  events.addEventListener("content", (event) => { latest = event.data; show(); });
  events.addEventListener("read", (event) => { read.textContent = event.data; });
  events.addEventListener("error", () => {
    if (events.readyState === EventSource.CLOSED) {
      read.after(" (the page does not follow the cluster: reload it, or close others)");
    }
  });
  main.addEventListener("focusout", () => setTimeout(show));
}
