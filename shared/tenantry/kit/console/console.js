
// == what `tenantry console` adds: the page follows the cluster ===============================================
const FIRST_PROBLEMS = 3, CHOSEN_MS = 250, FRESH_MS = 1000, AGES_MS = 5000, WHOLE_TREE = 24, MOST_PEOPLE = 8;

async function asked(path, signal) {
  const answer = await fetch(path, { signal, cache: "no-store" });
  const found = await answer.json().catch(() => ({ error: `the console answered ${answer.status}` }));
  return answer.ok ? found : { error: found.error || `the console answered ${answer.status}` };
}

asker = "your kubeconfig";
showHead();

// -- problems first ------------------------------------------------------------------------------------------

const problems = byId("problems").parentElement;
problems.id = "problems-section";
document.querySelector("main").prepend(problems, byId("story"));
showProblems(FIRST_PROBLEMS);

// -- one object ----------------------------------------------------------------------------------------------

let about = null, drawnAbout = "", asking = null, soon = 0;

function lineOf(text) {
  const depth = Math.min(4, Math.ceil((text.length - text.trimStart().length) / 2));
  return make("li", depth ? { class: `in${depth}`, text: text.trim() } : { text: text.trim() });
}

function answerOf(answer) {
  return make("article", { class: `answer ${answer.ours ? "ours" : ""}` },
    make("p", {}, make("strong", { text: answer.answer }), `: ${answer.rest}`),
    make("ul", { class: "lines" }, ...answer.lines.filter((each) => each.trim()).map(lineOf)),
    make("details", {}, make("summary", { text: "As JSON" }), make("pre", { text: JSON.stringify(answer.explained, null, 2) })));
}

function drawAbout(node, found) {
  const same = JSON.stringify([pathOf(node), found]);
  if (same === drawnAbout) return;  // what somebody opened in it stays open
  drawnAbout = same;
  const parts = [make("p", {}, make("strong", { text: titleOf(node) }), node[SPACE] ? ` in ${node[SPACE]}` : "")];
  if (found.error) parts.push(make("p", { class: "notice", text: found.error }));
  if (kindOf(node) === "project") {
    parts.push(make("p", { text: "A project is what its namespaces say by their label; it is no object of its own." }));
  }
  parts.push(...(found.answers || []).map(answerOf));
  if ((found.decisions || []).length) {
    parts.push(make("h3", { text: "Decisions about it" }), ...found.decisions.map(decisionOf));
  }
  keeping(byId("about"), byId("about-title"), () => byId("about").replaceChildren(...parts));
}

async function explain(node) {
  if (asking) asking.abort();
  asking = new AbortController();
  const mine = asking;
  about = pathOf(node);
  const query = new URLSearchParams({ kind: kindOf(node), name: node[NAME], namespace: node[SPACE] || "" });
  if (kindOf(node) === "source") {
    const [kind, name] = node[NAME].split("/");
    query.set("kind", kind);
    query.set("name", name);
  }
  try {
    const found = await asked(`about?${query}`, mine.signal);
    if (mine === asking) drawAbout(node, found);
  } catch (error) {
    if (error.name !== "AbortError" && mine === asking) drawAbout(node, { error: "The console does not answer." });
  }
}

chosen = (node) => {
  clearTimeout(soon);
  if (kindOf(node) !== "group") soon = setTimeout(() => explain(node), CHOSEN_MS);
};
byId("tree").addEventListener("keydown", (event) => {
  if (event.key === "e" && !event.altKey && !event.ctrlKey && !event.metaKey) { event.preventDefault(); byId("about-title").focus(); }
});
byId("about").parentElement.addEventListener("keydown", (event) => { if (event.key === "Escape" && current) current.focus(); });

// -- decisions -----------------------------------------------------------------------------------------------

// What owners are declared by has their name in the map: a Paas and a Tenant.
const keyFor = (kind, namespace, name) => `${["Paas", "Tenant"].includes(kind) ? kind.toLowerCase() : kind}\n${namespace}\n${name}`;
let index = null, indexed = null;  // the nodes of the map that is shown, by kind, namespace and name
function nodeNamed(kind, namespace, name) {
  if (indexed !== data) {
    index = new Map();
    for (const node of all) if (!index.has(keyOf(node))) index.set(keyOf(node), node);
    indexed = data;
  }
  return index.get(keyFor(kind, namespace, name));
}

function goTo(kind, namespace, name) {
  const node = nodeNamed(kind, namespace, name);
  if (node) reveal(node);
  else byId("news").textContent = `${kind} ${name} is not in the map.`;
}

function writeOf(write) {
  return make("li", {}, make("button", { text: write.text, onclick: () => goTo(write.kind, write.namespace, write.name) }));
}

function decisionOf(decision) {
  return make("details", { class: decision.well ? "" : "bad" }, make("summary", { text: `${decision.well ? "" : "⚠ "}${decision.text}` }),
    make("ul", { class: "lines" }, ...decision.causes.map(lineOf), ...decision.writes.map(writeOf), ...decision.refused.map(lineOf)));
}

// -- the story: what somebody did, what functions did because of it, and what stands now ----------------------

const GLOSSES = { registration: "registration namespace: here its people ask for charts and get rights",
  release: "release namespace: here is what the chart brought" };
const KINDS = { ProjectHelmChart: "what the project asks for", HelmChart: "what Helm installs", HelmRelease: "the lock on it" };
let story = [];
const opened = new Set();  // of earlier episodes and lists of decisions, by id

function objectsOf(phrase) {
  const parts = [];
  phrase.objects.forEach((each, index) => {
    const text = `${each.kind} ${each.name}`;
    parts.push(index ? ", " : " ");
    parts.push(nodeNamed(each.kind, each.namespace, each.name)
      ? make("button", { text, onclick: () => goTo(each.kind, each.namespace, each.name) }) : make("span", { text }));
  });
  const namespace = phrase.objects[0].namespace;
  return [phrase.says, ...parts, namespace ? ` in ${namespace}` : "", phrase.more];
}

function after(ms) {
  return ms < 0 ? "at once" : ms < 10000 ? `${ms} ms later` : `${Math.round(ms / 1000)} s later`;
}

// What is said of several namespaces with one word is one line.
function linesOf(phrases) {
  const lines = [];
  let before = "";
  for (const phrase of phrases) {
    const parts = objectsOf(phrase);
    if (phrase.says === before && !phrase.more) lines[lines.length - 1].append(";", ...parts.slice(1));
    else lines.push(make("li", {}, ...parts));
    before = phrase.more ? "" : phrase.says;
  }
  return lines;
}

function stepOf(step) {
  const about = `${step.about ? ` (${step.about})` : ""}, ${after(step.afterMs)}`;
  const head = [make("strong", { text: step.by }), make("span", { class: "soft", text: about })];
  if (!step.about && step.did.length === 1) return make("li", {}, ...head, ": ", ...objectsOf(step.did[0]));
  const noted = step.noted ? [make("p", { class: "soft", text: `${step.did.length ? "and wrote" : "wrote"} the status of ${step.noted}` })] : [];
  return make("li", {}, make("p", {}, ...head), make("ul", {}, ...linesOf(step.did)), ...noted);
}

// The owners that an episode is about: what is in the map above its objects, or above their namespaces.
function ownersOf(episode) {
  const found = new Set();
  for (const [kind, namespace, name] of episode.touched) {
    for (const node of [nodeNamed(kind, namespace, name), namespace && nodeNamed("Namespace", "", namespace)]) {
      let at = node;
      while (at && parents.get(at) && kindOf(parents.get(at)) !== "group") at = parents.get(at);
      const top = at && parents.get(at);
      if (top && top[NAME] !== "namespaces of the system") found.add(at);
    }
  }
  const owners = [...found].filter((node) => ["project", "paas", "tenant"].includes(kindOf(node)));
  return (owners.length ? owners : [...found]).slice(0, 2);
}

const within = (node) => [node, ...childrenOf(node).flatMap(within)];

function standing(node, touched, whole) {
  const verb = touched.get(keyOf(node)), below = childrenOf(node).map((each) => standing(each, touched, whole)).filter(Boolean);
  if (!whole && verb === undefined && !below.length) return null;
  const row = [make("button", { text: titleOf(node), onclick: () => reveal(node) })];
  if (node[ROLE]) row.push(make("span", { text: ` ${data.texts[node[ROLE]]} to ${subjectsOf(node).slice(0, 3).join(", ") || "nobody"}` }));
  const note = [KINDS[kindOf(node)], GLOSSES[node[NOTE]] || node[NOTE]].filter(Boolean).join(": ");
  if (note) row.push(make("span", { class: "soft", text: ` ${note}` }));
  if (verb === "create" || verb === "") row.push(" ", make("span", { class: "mark new", text: verb ? "made" : "by somebody" }));
  row.push(...problemsOf(node).map((each) => markOf(each)));
  return make("li", {}, ...row, ...(below.length ? [make("ul", {}, ...below)] : []));
}

function reachIn(node) {
  const found = new Map();
  for (const each of within(node)) {
    for (const subject of subjectsOf(each)) {
      if (!found.has(subject)) found.set(subject, []);
      found.get(subject).push(`${data.texts[each[ROLE]]} in ${each[SPACE]}`);
    }
  }
  const people = [...found].sort(([one], [other]) => one.startsWith("ServiceAccount") - other.startsWith("ServiceAccount"));
  if (!people.length) return [make("p", { text: "Nobody: no binding in it names anybody." })];
  return [make("ul", {}, ...people.slice(0, MOST_PEOPLE).map(([subject, roles]) => make("li", {},
    make("button", { text: subject, onclick: () => showReach(subject) }), `: ${roles.slice(0, 4).join("; ")}${roles.length > 4 ? ` and ${roles.length - 4} more` : ""}`))),
  ...(people.length > MOST_PEOPLE ? [make("p", { class: "soft", text: `and ${people.length - MOST_PEOPLE} more` })] : [])];
}

function nowOf(episode) {
  const touched = new Map(episode.touched.map(([kind, namespace, name, verb]) => [keyFor(kind, namespace, name), verb]));
  const parts = [];
  for (const owner of ownersOf(episode)) {
    const whole = within(owner).length <= WHOLE_TREE, drawn = standing(owner, touched, whole);
    parts.push(make("h3", { text: `${titleOf(owner)} now` }), make("ul", {}, ...(drawn ? [drawn] : [])));
    if (!whole) parts.push(make("p", { class: "soft", text: "Only what this changed; the map has all of it." }));
    parts.push(make("h4", { text: "Who reaches what in it" }), ...reachIn(owner));
  }
  const went = episode.touched.filter(([kind, namespace, name, verb]) => verb === "delete" && !nodeNamed(kind, namespace, name));
  if (went.length) {
    parts.push(make("h4", { text: "Gone" }), make("ul", {}, ...went.map(([kind, namespace, name]) => make("li", {},
      make("span", { class: "mark went", text: "gone" }), ` ${kind} ${name}${namespace ? ` in ${namespace}` : ""}`))));
  }
  if (!parts.length) parts.push(make("p", { class: "soft", text: "Nothing of it is in the map." }));
  return make("div", { class: "now" }, ...parts);
}

function keptOpen(id, details) {
  details.open = opened.has(id);
  details.addEventListener("toggle", () => { if (details.open) opened.add(id); else opened.delete(id); });
  return details;
}

function episodeOf(episode) {
  const count = episode.decisions.length;
  return make("article", { class: `episode ${episode.well ? "" : "bad"}` },
    make("div", {}, make("p", { class: "deed" }, make("span", { class: "soft", text: episode.at }), " ", make("strong", { text: episode.text })),
      make("p", { class: "soft", text: episode.also ? `and because of more: ${episode.also}` : "" }), make("ol", { class: "steps", role: "list", "aria-label": "Because of it" }, ...episode.steps.map(stepOf)),
      ...episode.refused.map((text) => make("p", { class: "mark warning", text })),
      keptOpen(`decisions ${episode.id}`, make("details", {},
        make("summary", { class: "soft", text: `${count === 1 ? "1 decision" : `${count} decisions`}, as tenantry history has them` }),
        ...episode.decisions.map(decisionOf)))),
    nowOf(episode));
}

function earlierOf(episode) {
  const details = make("details", { class: episode.well ? "" : "bad" }, make("summary", {}, make("span", { class: "soft", text: episode.at }), ` ${episode.text}`));
  const fill = () => { if (details.open && details.children.length === 1) details.append(episodeOf(episode)); };
  details.addEventListener("toggle", fill);
  keptOpen(episode.id, details);
  fill();
  return details;
}

function drawStory() {
  const [newest, ...rest] = story;
  keeping(byId("story"), byId("story-title"), () => {
    if (newest) byId("newest").replaceChildren(episodeOf(newest));
    byId("earlier").replaceChildren(...(rest.length ? [make("h3", { text: "Before that" })] : []), ...rest.map(earlierOf));
  });
}

function takeStory(next) {
  const before = story.length ? story[0].id : "";
  story = next;
  drawStory();
  if (!story.length) return;
  byId("no-decisions").textContent = "";
  if (before && before !== story[0].id) byId("news").textContent = story[0].text;
}

// -- who can do what -----------------------------------------------------------------------------------------

const LISTED = (lines) => make("ul", { class: "lines" }, ...lines.filter((each) => each.trim()).map(lineOf));
byId("can").addEventListener("submit", async (event) => {
  event.preventDefault();
  const box = byId("can-answer"), query = new URLSearchParams(new FormData(event.target));
  box.replaceChildren(make("p", { class: "soft", text: "Reading bindings…" }));
  let found = null;
  try {
    found = await asked(`can?${query}`);
  } catch {
    found = { error: "The console does not answer." };
  }
  if (found.error) { box.replaceChildren(make("p", { class: "notice older", text: found.error })); return; }
  box.replaceChildren(make("article", { class: `answer ${found.good ? "ours" : ""}` },
    make("p", {}, make("strong", { text: found.answer }), `: ${found.rest}`), LISTED(found.lines),
    ...(found.missing.some((each) => each.trim()) ? [make("h4", { text: "What is missing" }), LISTED(found.missing)] : [])));
});

// -- what runs -----------------------------------------------------------------------------------------------

let running = null;

function ageOf(seconds) {
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) if (seconds >= 2 * size) return `${Math.floor(seconds / size)} ${unit}`;
  return `${Math.max(0, Math.round(seconds))} s`;
}

function rowOf(service) {
  const last = service.lastSweep ? `${ageOf((Date.now() - Date.parse(service.lastSweep)) / 1000)} ago${service.late ? ", late" : ""}` : "unknown";
  const state = make("td", {}, service.well ? service.state : make("span", { class: "mark error", text: `✗ ${service.state}` }));
  return make("tr", {}, make("th", { scope: "row", text: service.name }), state, make("td", { text: last }),
    make("td", { text: service.everySeconds ? ageOf(service.everySeconds) : "unknown" }));
}

function drawRunning() {
  if (!running) return;
  const box = byId("running");
  if (running.error) { box.replaceChildren(make("p", { class: "notice older", text: running.error })); return; }
  const head = make("tr", {}, ...["Function", "State", "Last sweep", "Every"].map((text) => make("th", { scope: "col", text })));
  const waiting = running.backlog.waiting === null ? `unknown: ${running.backlog.note || ""}` : `${running.backlog.waiting} waiting`;
  const notes = new Map();
  for (const each of running.services) if (each.note) notes.set(each.note, [...(notes.get(each.note) || []), each.name]);
  const letters = running.deadLetters, well = running.services.filter((each) => each.well).length;
  box.replaceChildren(
    ...Object.entries(running.unread).map(([what, why]) => make("p", { class: "notice", text: `Not seen: ${what}: ${why}` })),
    make("p", { text: `Backlog: ${waiting}` }),
    make("p", letters.length ? { class: "mark error" } : {}, `Dead letters: ${letters.length || "none"}`),
    make("ul", { class: "lines" }, ...letters.slice(0, 3).map((each) => lineOf(`${each.function}: ${each.key}: ${each.status} ${each.reason} (${each.count} times, last ${each.last})`))),
    ...running.notReady.map((text) => make("p", { class: "mark error", text: `✗ ${text}` })),
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...running.services.map(rowOf))),
    make("ul", { class: "lines soft" }, ...[...notes].map(([note, names]) => lineOf(`${names.length > 3 ? `${names.length} of them` : names.join(", ")}: ${note}`))));
  const bad = well < running.services.length || letters.length > 0 || running.notReady.length > 0;
  byId("runs").hidden = false;
  byId("runs").className = `toggle ${bad ? "bad" : ""}`;
  const given = letters.length ? `, dead letters ${letters.length}` : "";
  byId("runs").textContent = `${bad ? "⚠ " : ""}${well} of ${running.services.length} functions well, backlog ${running.backlog.waiting ?? "unknown"}${given}`;
}
byId("runs").addEventListener("click", () => byId("running-title").focus());
setInterval(() => { if (!document.hidden && !paused) drawRunning(); }, AGES_MS);

// -- the stream ----------------------------------------------------------------------------------------------

let stream = null, paused = false, number = 0, newest = data.version, fetching = false, connected = false, old = "";

function say() {
  const text = paused ? "Paused: what is shown may be old." : old ? "What is shown may be old." : connected ? "Live." : "Connecting…";
  byId("live").textContent = text;
  const trouble = old ? `What is shown may be old: ${old}` : "";
  if (byId("trouble").textContent === trouble) return;  // it is read aloud at each change
  byId("trouble").replaceChildren(...(trouble ? [make("p", { class: "notice older", text: trouble })] : []));
}

async function update() {
  if (fetching || newest === data.version) return;
  fetching = true;
  try {
    const before = data.summary, next = await asked("map");
    if (next.error) return;
    load(next);
    drawStory();
    newest = Math.max(newest, next.version);
    if (data.summary !== before) byId("news").textContent = data.summary;
    const node = about && all.find((each) => about.endsWith(keyOf(each)) && pathOf(each) === about);
    if (node) { clearTimeout(soon); soon = setTimeout(() => explain(node), FRESH_MS); }
  } catch {
    return;  // the stream tells that the console is gone
  } finally {
    fetching = false;
  }
  update();
}

function listen() {
  if (stream || paused || document.hidden) return;
  stream = new EventSource(`events?had=${data.version}.${number}`);
  stream.onopen = () => { connected = true; old = ""; say(); };
  stream.onerror = () => {
    connected = false;
    old = stream.readyState === EventSource.CLOSED ? "the console has ended. Start `tenantry console` again, and open its new address."
      : "the console does not answer; it is asked again.";
    say();
  };
  const on = (name, take) => stream.addEventListener(name, (event) => {
    const seen = event.lastEventId.split(".");
    if (seen[1]) number = Number(seen[1]);
    take(JSON.parse(event.data));
  });
  on("state", (state) => {
    old = state.old;
    if (state.noDecisions) byId("no-decisions").textContent = `None are shown: ${state.noDecisions}`;
    else if (!story.length) byId("no-decisions").textContent = "Waiting for the first.";
    say();
  });
  on("map", (map) => { newest = map.version; update(); });
  on("story", takeStory);
  on("running", (found) => { running = found; drawRunning(); });
}

function silence() {
  if (stream) stream.close();
  stream = null;
  connected = false;
}

byId("pause").addEventListener("click", () => {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", String(paused));
  if (paused) silence(); else listen();
  say();
});
// A page that nobody sees asks for nothing; browsers have few connections for one origin.
document.addEventListener("visibilitychange", () => { if (document.hidden) silence(); else listen(); });
listen();
