"use strict";
// Only what is open is in the document: a node's children are made when it opens and removed when it closes, PAGE at a time.
const PAGE = 100, RESULTS = 50;
let data = null;  // what is shown: `load` takes it, and takes another later
const [KIND, NAME, SPACE, NOTE, ROLE, BY, SUBJECTS, PROBLEMS, CHILDREN] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
const byId = (id) => document.getElementById(id);

function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "text") made.textContent = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const kindOf = (node) => data.texts[node[KIND]];
function titleOf(node) {
  const kind = kindOf(node);
  if (kind === "group" || kind === "Namespace") return node[NAME];
  return ["project", "paas", "tenant"].includes(kind) ? `${kind}/${node[NAME]}` : `${kind} ${node[NAME]}`;
}
const subjectsOf = (node) => (node[SUBJECTS] || []).map((each) => data.subjects[each]);
const childrenOf = (node) => node[CHILDREN] || [];
const problemsOf = (node) => (node[PROBLEMS] || []).map((each) => data.problems[each]);

// -- the whole tree, walked once: parents, and how many errors are below -------------------------------------

const parents = new Map(), below = new Map(), all = [];
const keyOf = (node) => `${kindOf(node)}\n${node[SPACE] || ""}\n${node[NAME]}`;
const pathOf = (node) => (parents.get(node) ? `${pathOf(parents.get(node))}\t` : "") + keyOf(node);
function walk(node, parent) {
  parents.set(node, parent);
  all.push(node);
  let errors = problemsOf(node).filter((each) => !each.warns).length;
  for (const child of childrenOf(node)) errors += walk(child, node);
  if (errors) below.set(node, errors);
  return errors;
}

// -- tree ----------------------------------------------------------------------------------------------------

const items = new Map();

function markOf(problem) {
  const [kind, sign] = problem.warns ? ["warning", "⚠"] : ["error", "✗"];
  return make("span", { class: `mark ${kind}`, text: `${sign} ${kind}: ${problem.reason}` });
}

function marks(node) {
  const found = problemsOf(node).map(markOf);
  const inside = (below.get(node) || 0) - problemsOf(node).filter((each) => !each.warns).length;
  if (inside) found.push(make("span", { class: "mark error", text: `✗ ${inside} inside` }));
  return found;
}

function whom(node) {
  const made = make("span", {}, ` ${data.texts[node[ROLE]]} to `);
  const subjects = subjectsOf(node);
  subjects.slice(0, 20).forEach((subject, index) => {
    if (index) made.append(", ");
    made.append(make("button", { tabindex: "-1", text: subject, onclick: (event) => { event.stopPropagation(); showReach(subject); } }));
  });
  if (!subjects.length) made.append("nobody");
  if (subjects.length > 20) made.append(` and ${subjects.length - 20} more`);
  if (node[BY]) made.append(make("span", { class: "soft", text: `, made for ${data.texts[node[BY]]}` }));
  return made;
}

function itemFor(node, level, position, size) {
  const opens = childrenOf(node).length > 0;
  const row = make("div", { class: "row" }, make("span", { class: "twisty", "aria-hidden": "true", text: opens ? "▸" : "" }),
    make("span", { class: "title", text: titleOf(node) }));
  if (node[ROLE]) row.append(whom(node));
  if (node[NOTE]) row.append(make("span", { class: "soft", text: node[NOTE] }));
  row.append(...marks(node));
  const item = make("li", { role: "treeitem", tabindex: "-1", "aria-level": level, "aria-posinset": position, "aria-setsize": size }, row);
  if (opens) item.setAttribute("aria-expanded", "false");
  else item.className = "leaf";
  for (const each of problemsOf(node)) {
    item.append(make("div", { class: "why" }, make("span", { text: each.told }), " ", make("span", { class: "fix", text: `Fix: ${each.fix}` })));
  }
  row.addEventListener("click", () => { focus(item); toggle(item); });
  item.node = node;
  items.set(node, item);
  return item;
}

function pageOf(nodes, level, from, count = PAGE) {
  const to = Math.min(nodes.length, from + count);
  return nodes.slice(from, to).map((node, index) => itemFor(node, level, from + index + 1, nodes.length));
}

function another(level, text, go) {
  const row = make("div", { class: "row" }, make("span", { class: "title", text }));
  const item = make("li", { role: "treeitem", tabindex: "-1", "aria-level": level, class: "leaf" }, row);
  item.more = go;
  row.addEventListener("click", go);
  return item;
}

function later(nodes, level, from) {
  const left = nodes.length - from;
  const item = another(level, `Show ${Math.min(PAGE, left)} more of ${left}`, () => {
    const made = pageOf(nodes, level, from);
    item.replaceWith(...made, ...(left > PAGE ? [later(nodes, level, from + PAGE)] : []));
    focus(made[0]);
  });
  return item;
}

function earlier(nodes, level, from) {
  const begin = Math.max(0, from - PAGE);
  const item = another(level, `Show ${from - begin} of ${from} before`, () => {
    const made = pageOf(nodes, level, begin, from - begin);
    item.replaceWith(...(begin ? [earlier(nodes, level, begin)] : []), ...made);
    focus(made[made.length - 1]);
  });
  return item;
}

// A page of a list, with an item before and after it that brings the next one; returns the items of the nodes.
function fill(list, nodes, level, from, count = PAGE) {
  const made = pageOf(nodes, level, from, count), to = from + made.length;
  list.replaceChildren(...(from ? [earlier(nodes, level, from)] : []), ...made, ...(to < nodes.length ? [later(nodes, level, to)] : []));
  return made;
}

function toggle(item, wanted) {
  if (!item.hasAttribute("aria-expanded")) return item.more && item.more();
  const open = item.getAttribute("aria-expanded") === "true";
  if (wanted === open) return undefined;
  item.setAttribute("aria-expanded", String(!open));
  item.querySelector(".twisty").textContent = open ? "▸" : "▾";
  if (open) return item.querySelector("[role=group]").remove();
  const group = make("ul", { role: "group" });
  fill(group, childrenOf(item.node), Number(item.getAttribute("aria-level")) + 1, 0);
  item.append(group);
  return undefined;
}

let current = null;
let chosen = () => {};  // what else happens with a node that somebody goes to
function enter(item) {
  if (current) current.tabIndex = -1;
  current = item;
  item.tabIndex = 0;
}
function focus(item) {
  enter(item);
  item.focus();
  if (item.node) chosen(item.node);
}

const shown = () => [...byId("tree").querySelectorAll("[role=treeitem]")];
byId("tree").addEventListener("keydown", (event) => {
  const item = event.target.closest("[role=treeitem]");
  if (!item || event.altKey || event.ctrlKey || event.metaKey || event.target.tagName === "BUTTON") return;
  const list = shown(), at = list.indexOf(item), open = item.getAttribute("aria-expanded");
  const parent = item.parentElement.closest("[role=treeitem]");
  const does = {
    ArrowDown: () => list[at + 1] && focus(list[at + 1]),
    ArrowUp: () => list[at - 1] && focus(list[at - 1]),
    Home: () => focus(list[0]),
    End: () => focus(list[list.length - 1]),
    ArrowRight: () => (open === "true" ? focus(list[at + 1]) : toggle(item, true)),
    ArrowLeft: () => (open === "true" ? toggle(item, false) : parent && focus(parent)),
    Enter: () => (item.node && item.node[SUBJECTS] ? showReach(subjectsOf(item.node)[0]) : toggle(item)),
    " ": () => toggle(item),
  }[event.key];
  if (does) { event.preventDefault(); does(); }
});

// Opens everything above a node, each list at the page that the way leads through.
function reveal(node) {
  const path = [];
  for (let each = node; each; each = parents.get(each)) path.unshift(each);
  let item = null;
  for (const each of path) {
    if (item) toggle(item, true);
    const list = item ? item.querySelector(":scope > [role=group]") : byId("tree");
    if (![...list.children].includes(items.get(each))) {
      const siblings = item ? childrenOf(item.node) : data.groups;
      fill(list, siblings, Number(item ? item.getAttribute("aria-level") : 0) + 1, PAGE * Math.floor(siblings.indexOf(each) / PAGE));
    }
    item = items.get(each);
  }
  focus(item);
  item.scrollIntoView({ block: "center" });
}

// -- who reaches what ----------------------------------------------------------------------------------------

let reach = null, reached = null;
function reachOf(subject) {
  if (!reach) {
    reach = new Map(data.subjects.map((each) => [each, new Map()]));
    for (const node of all) {
      for (const each of subjectsOf(node)) reach.get(each).set(`${node[SPACE] || ""}\n${data.texts[node[ROLE]]}`, node);
    }
  }
  return [...(reach.get(subject) || new Map()).values()];
}

function showReach(subject, from = 0) {
  drawReach(subject, from);
  if (!from) byId("reach-title").focus();
}

function drawReach(subject, from) {
  reached = [subject, from];
  const found = reachOf(subject), box = byId("reach");
  const rows = found.slice(0, from + PAGE).map((node) => make("tr", {},
    make("td", {}, node[SPACE] ? make("button", { text: node[SPACE], onclick: () => reveal(node) }) : "every namespace"),
    make("td", { text: data.texts[node[ROLE]] }), make("td", { text: node[BY] ? data.texts[node[BY]] : "a person" })));
  const head = make("tr", {}, ...["Namespace", "Role", "Bound by"].map((text) => make("th", { scope: "col", text })));
  box.replaceChildren(make("p", {}, make("strong", { text: subject }), ` has ${found.length} ${found.length === 1 ? "role" : "roles"}.`),
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
  if (found.length > rows.length) {
    box.append(make("button", { text: `Show more of ${found.length - rows.length}`, onclick: () => showReach(subject, from + PAGE) }));
  }
}

// -- find ----------------------------------------------------------------------------------------------------

function search() {
  const query = byId("query").value.trim().toLowerCase(), list = byId("results");
  if (!query) { list.replaceChildren(); byId("found").textContent = ""; return; }
  const people = data.subjects.filter((each) => each.toLowerCase().includes(query));
  const seen = new Set(), nodes = [];
  for (const node of all) {
    const title = titleOf(node), key = `${title}\n${node[SPACE] || ""}`;
    if (kindOf(node) !== "group" && title.toLowerCase().includes(query) && !seen.has(key)) { seen.add(key); nodes.push(node); }
  }
  const total = people.length + nodes.length;
  const rows = [...people.slice(0, RESULTS).map((each) => [each, () => showReach(each)]),
    ...nodes.slice(0, RESULTS).map((node) => [`${titleOf(node)}${node[SPACE] ? ` in ${node[SPACE]}` : ""}`, () => reveal(node)])].slice(0, RESULTS);
  list.replaceChildren(...rows.map(([text, go]) => make("li", {}, make("button", { text, onclick: go }))));
  byId("found").textContent = total > rows.length ? `${total} found, the first ${rows.length} are listed` : `${total} found`;
}
let waiting = 0;
byId("query").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 150); });

// -- what is always there ------------------------------------------------------------------------------------

let asker = "who asked";
function showHead() {
  byId("summary").textContent = data.summary;
  byId("at").textContent = `As it was at ${data.at}, with the rights of ${asker}.`;
  byId("notices").replaceChildren();
  if (data.unread.length) {
    byId("notices").append(make("div", { class: "notice" }, make("strong", { text: "Not all of the cluster: what follows lacks what could not be read." }),
      make("ul", {}, ...data.unread.map(([what, why]) => make("li", { text: `${what}: ${why}` })))));
  }
  if (data.missing.length) {
    byId("notices").append(make("div", { class: "notice older" }, make("strong", { text: "Older installation." }),
      ` The cluster does not serve ${data.missing.join(", ")}: apply knative/ of this version again.`));
  }
}

const LONG = 140;  // letters of a text that is shown in part, with the rest on demand
const unfolded = new Set();
function folded(text, properties = {}) {
  if (text.length <= LONG) return make("p", { ...properties, text });
  const details = make("details", properties, make("summary", { text: `${text.slice(0, LONG - 40).replace(/\s+\S*$/, "")} …` }), make("p", { text }));
  details.open = unfolded.has(text);
  details.addEventListener("toggle", () => { if (details.open) unfolded.add(text); else unfolded.delete(text); });
  return details;
}

let problemsShown = 10;
function showProblems(most) {
  problemsShown = most;
  const box = byId("problems");
  if (!data.problems.length) {
    box.replaceChildren(make("p", { class: "well", text: data.unread.length ? "None in what could be read." : "✓ None." }));
    return;
  }
  const cards = data.problems.slice(0, most).map((each) => {
    const node = all.find((found) => (found[PROBLEMS] || []).some((index) => data.problems[index] === each));
    const where = node ? make("button", { text: each.about, onclick: () => reveal(node) }) : each.about;
    return make("article", { class: `card ${each.warns ? "warning" : "error"}` },
      make("p", {}, markOf(each), " ", where),
      make("p", { class: "soft", text: each.concerns }), folded(each.told), folded(`Fix: ${each.fix}`, { class: "fix" }));
  });
  box.replaceChildren(...cards);
  if (data.problems.length > most) {
    box.append(make("button", { text: `Show more of ${data.problems.length - most}`, onclick: () => showProblems(most + 20) }));
  }
}

// -- the first map, and each later one: what was open stays open, and the focus stays where it was ------------

// Draws a box anew; where the focus was in it, it goes to what has the same words, else to the heading.
function keeping(box, heading, draw) {
  const had = box.contains(document.activeElement) ? document.activeElement.textContent : null;
  draw();
  if (had !== null) ([...box.querySelectorAll("button, summary")].find((each) => each.textContent === had) || heading).focus();
}

// Which lists are open, by the path of what they are below, and which part of each is shown.
function openLists() {
  const found = new Map();
  for (const list of [byId("tree"), ...byId("tree").querySelectorAll("[role=group]")]) {
    const drawn = [...list.children].filter((each) => each.node), owner = list.closest("[role=treeitem]");
    if (drawn.length) found.set(owner ? pathOf(owner.node) : "", [Number(drawn[0].getAttribute("aria-posinset")) - 1, drawn.length]);
  }
  return found;
}

function restore(list, nodes, level, path, open) {
  const [from, count] = open.get(path) || [0, PAGE];
  const begin = Math.min(from, Math.max(0, nodes.length - 1));
  for (const item of fill(list, nodes, level, begin, Math.max(count, PAGE))) {
    const below = pathOf(item.node);
    if (open.has(below) && item.hasAttribute("aria-expanded")) {
      toggle(item, true);
      restore(item.querySelector(":scope > [role=group]"), childrenOf(item.node), level + 1, below, open);
    }
  }
}

let begun = false;  // the first group was opened: not that of the system, where nobody looks first
function load(next) {
  const tree = byId("tree"), again = data !== null, had = tree.contains(document.activeElement);
  const open = again ? openLists() : new Map(), at = current && current.node ? pathOf(current.node) : "";
  const height = window.scrollY;
  data = next;
  for (const each of [parents, below, items]) each.clear();
  all.length = 0;
  reach = null;
  current = null;
  for (const group of data.groups) walk(group, null);
  showHead();
  keeping(byId("problems"), byId("problems-title"), () => showProblems(problemsShown));
  restore(tree, data.groups, 1, "", open);
  const drawn = shown();
  if (!begun && drawn.length && drawn[0].node[NAME] !== "namespaces of the system") { begun = true; toggle(drawn[0], true); }
  const near = drawn.find((item) => item.node && pathOf(item.node) === at)
    || drawn.findLast((item) => item.node && at.startsWith(`${pathOf(item.node)}\t`)) || drawn[0];
  if (near) enter(near);
  if (had) (near || byId("map-title")).focus();
  if (!again) return;
  if (byId("query").value) keeping(byId("results"), byId("query"), search);
  if (reached) keeping(byId("reach"), byId("reach-title"), () => drawReach(...reached));
  window.scrollTo(0, height);
}

load(JSON.parse(byId("data").textContent));
document.documentElement.dataset.ready = Math.round(performance.now());
