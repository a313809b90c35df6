
// == what `tenantry console` adds: the page follows the cluster ===============================================
const FIRST_PROBLEMS = 3, MOST_DECISIONS = 200, CHOSEN_MS = 250, FRESH_MS = 1000;

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
document.querySelector("main").prepend(problems);
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

function nodeNamed(kind, namespace, name) {
  const wanted = `${kind}\n${namespace}\n${name}`;
  return all.find((node) => keyOf(node) === wanted);
}

function writeOf(write) {
  const go = () => {
    const node = nodeNamed(write.kind, write.namespace, write.name);
    if (node) reveal(node);
    else byId("news").textContent = `${write.kind} ${write.name} is not in the map.`;
  };
  return make("li", {}, make("button", { text: write.text, onclick: go }));
}

function decisionOf(decision) {
  return make("details", { class: decision.well ? "" : "bad" }, make("summary", { text: `${decision.well ? "" : "⚠ "}${decision.text}` }),
    make("ul", { class: "lines" }, ...decision.causes.map(lineOf), ...decision.writes.map(writeOf), ...decision.refused.map(lineOf)));
}

function addDecision(decision) {
  const list = byId("decisions");
  list.prepend(decisionOf(decision));
  while (list.children.length > MOST_DECISIONS) list.lastElementChild.remove();
  byId("no-decisions").textContent = "The newest first, as they come.";
}

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
    else if (!byId("decisions").children.length) byId("no-decisions").textContent = "Waiting for the first.";
    say();
  });
  on("map", (map) => { newest = map.version; update(); });
  on("decision", addDecision);
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
