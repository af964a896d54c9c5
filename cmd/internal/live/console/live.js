// SPDX-License-Identifier: Apache-2.0

// Makes pages quicker to use: an open page follows the cluster, "/" leads to the search, commands can be copied,
// a choice in the head of the page is followed at once. Without this script everything is there, after one more
// click or a reload.
"use strict";

document.documentElement.classList.add("js");

const main = document.querySelector("main");
document.querySelector(".reading")?.remove();
document.title = main.querySelector("h1").textContent + " - Sallyport"; // the frame may have come before the content
const read = document.querySelector("footer time");
let latest = "";

// morph makes an element like another one, and leaves alone what is equal: nothing flickers, and the focus, what is
// selected, where it is scrolled to and what is open stay.
function morph(from, to) {
  if (from.isEqualNode(to)) {
    return;
  }
  const unlike = (a, b) => a.nodeType !== b.nodeType || a.nodeName !== b.nodeName;
  for (const attribute of [...from.attributes]) {
    if (!to.hasAttribute(attribute.name) && attribute.name !== "open") {
      from.removeAttribute(attribute.name);
    }
  }
  for (const attribute of to.attributes) {
    if (from.getAttribute(attribute.name) !== attribute.value) {
      from.setAttribute(attribute.name, attribute.value);
    }
  }
  const wanted = [...to.childNodes];
  wanted.forEach((child, i) => {
    const old = from.childNodes[i];
    if (!old) {
      from.append(child);
    } else if (unlike(old, child)) {
      old.replaceWith(child);
    } else if (child.nodeType === Node.ELEMENT_NODE) {
      morph(old, child);
    } else if (old.data !== child.data) {
      old.data = child.data;
    }
  });
  while (from.childNodes.length > wanted.length) {
    from.lastChild.remove();
  }
}

// show waits while the user is in a field or has typed into one.
function show() {
  const inside = main.contains(document.activeElement) && document.activeElement.matches("input, textarea, select");
  const typed = [...main.querySelectorAll("input")].some((field) => field.value !== field.defaultValue);
  if (latest && !inside && !typed) {
    const next = main.cloneNode(false);
    next.innerHTML = latest;
    latest = "";
    morph(main, next);
  }
}

if (main.hasAttribute("data-live")) {
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

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.matches("input, textarea, select")) {
    event.preventDefault();
    const field = document.querySelector(".search input");
    document.addEventListener("keyup", () => field.focus(), {once: true}); // not before: the key is not part of the text
  }
});

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit]")) {
    event.target.form.requestSubmit();
  }
});

document.addEventListener("click", (event) => {
  if (event.target.matches("[data-copy]")) {
    const text = event.target.parentElement.querySelector(".copy");
    const done = (word) => {
      event.target.textContent = word;
      setTimeout(() => { event.target.textContent = "Copy"; }, 2000);
    };
    const select = () => { getSelection().selectAllChildren(text); done("Selected"); };
    if (navigator.clipboard) {
      navigator.clipboard.writeText(text.textContent).then(() => done("Copied"), select);
    } else { // without TLS, a browser has no clipboard
      select();
    }
  }
});
