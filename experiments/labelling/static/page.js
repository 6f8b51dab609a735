"use strict";

// Keyboard: number keys pick a common answer, Backspace takes it back, Enter sends, s skips, u undoes. Every
// other character of a number begins to type it in the field; after a number key, it continues with that digit.
// Without this script the forms still work.
const form = document.querySelector("#answer");
const modifiers = ["ctrlKey", "metaKey", "altKey"];
const filled = [];
let lastField = null;
let picked = ""; // the number key that was pressed last, if nothing happened since

function fields() {
  return [...document.querySelectorAll("input[form=answer], #answer input[type=number]")].filter((field) => field.offsetParent);
}

// The field that a choice fills: the one that was used last, or else the first that is empty.
function current() {
  const shown = fields();
  if (shown.includes(lastField)) return lastField;
  return shown.length === 1 ? shown[0] : shown.find((one) => !one.value);
}

function choose(value) {
  const field = current();
  if (!field) return;
  field.value = value;
  filled.push(field);
  lastField = null;
  picked = "";
  mark();
}

// Puts the cursor into a field, so that the key that is being pressed is typed there.
function type() {
  const field = picked ? filled.pop() : current();
  if (!field) return;
  field.value = picked;
  field.focus();
}

function mark() {
  const shown = fields();
  for (const one of shown) one.classList.toggle("current", shown.length > 1 && one === current());
  for (const button of form.querySelectorAll("[data-choice]")) {
    button.setAttribute("aria-pressed", String(shown.length === 1 && shown[0].value === button.dataset.choice));
  }
}

function send(target) {
  if (target && !target.dataset.sent) target.requestSubmit();
}

document.addEventListener("keydown", (event) => {
  if (modifiers.some((key) => event[key]) || event.repeat || event.isComposing) return;
  const into = event.target;
  const types = into.matches("input:not([type=radio]), textarea, select");
  if (types && (into.type !== "number" || into.form !== form || /^[^su]$/.test(event.key))) return;
  const choices = form ? form.querySelectorAll("[data-choice]") : [];
  if (form && /^[-.0-9]$/.test(event.key) && !choices[Number(event.key) - 1]) {
    if (event.key === "-") picked = "";
    type();
    return;
  }
  if (event.key === "Enter") {
    if (into.closest("a, button, summary, input")) return; // the browser does what they are for
    send(form || document.querySelector("[data-enter]")?.form);
  } else if (form && event.key === "s") {
    send(document.querySelector("#skip"));
  } else if (event.key === "u" && document.querySelector("button[form=undo]:enabled")) {
    send(document.querySelector("#undo"));
  } else if (form && /^[1-9]$/.test(event.key)) {
    choose(choices[Number(event.key) - 1].dataset.choice);
    picked = event.key;
  } else if (event.key === "Backspace" && filled.length && !types) {
    filled.pop().value = "";
    picked = "";
    mark();
  } else {
    return;
  }
  event.preventDefault();
});

for (const one of document.forms) {
  one.addEventListener("submit", (event) => {
    if (one.dataset.sent) event.preventDefault();
    one.dataset.sent = "yes";
  });
}

document.querySelector("h1")?.focus({ preventScroll: true });

if (form) {
  form.addEventListener("click", (event) => {
    const button = event.target.closest("[data-choice]");
    if (button) choose(button.dataset.choice);
  });
  document.addEventListener("focusin", (event) => {
    if (!event.target.closest("[data-choice]")) lastField = event.target;
    picked = "";
    mark();
  });
  document.addEventListener("input", mark);
  mark();
  document.addEventListener("wheel", () => { // scrolling must not change a number
    if (document.activeElement.type === "number") document.activeElement.blur();
  }, { passive: true });

  // A tab keeps its question while it is open and gives it back when it is closed.
  const take = async () => {
    const response = await fetch(form.dataset.take, { method: "POST", redirect: "manual" }).catch(() => null);
    if (response && response.status >= 400) document.querySelector("#lost").hidden = false;
  };
  if (!("leased" in form.dataset)) take();
  setInterval(take, 1000 * form.dataset.renew);
  addEventListener("pagehide", () => {
    navigator.sendBeacon(form.dataset.release, new URLSearchParams({ view: form.dataset.view }));
  });
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
}
