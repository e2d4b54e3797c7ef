// A table of any length, of which only the rows that are seen are here.
//
// The kernel has the rows, sorts and filters. What this asks it for is complete each time: which
// view asks, the order, the filter, from which row on, how many. Each has a number, and the answer
// has it too: what answers an older question than the one on the screen is thrown away. All texts
// come from a cluster: they become text nodes, and nothing else.

const ROW = 24; // pixels
const AROUND = 15; // rows asked for above and below those that are seen
const TALLEST = 8e6; // pixels that browsers still count well
const BEAT = 30e3; // milliseconds after which the kernel is told that somebody is still here
const SOON = 60; // milliseconds between two questions while scrolling

const CSS = `
.dyninformer-live { --line: color-mix(in srgb, currentColor 22%, transparent);
  --shade: color-mix(in srgb, currentColor 8%, transparent);
  font-size: 13px; line-height: 1.5; max-width: 100%; padding: 2px; box-sizing: border-box }
.dyninformer-live * { box-sizing: border-box }
.dyninformer-live .head { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center;
  padding-bottom: 6px }
.dyninformer-live .head b { font-weight: 600 }
.dyninformer-live .good { color: #2da44e }
.dyninformer-live .bad { color: #d9730d }
.dyninformer-live input { margin-left: auto; min-width: 14em; font: inherit; color: inherit;
  background: transparent; border: 1px solid var(--line); border-radius: 4px; padding: 2px 8px }
.dyninformer-live .grid { border: 1px solid var(--line); border-radius: 4px; overflow-x: auto }
.dyninformer-live .inner { min-width: 100%; width: max-content }
.dyninformer-live .row { display: grid; height: ${ROW}px }
.dyninformer-live .heads { overflow: hidden; scrollbar-gutter: stable; background: var(--shade);
  border-bottom: 1px solid var(--line) }
.dyninformer-live .heads .row { height: 28px }
.dyninformer-live .scroll { overflow-x: hidden; overflow-y: auto; scrollbar-gutter: stable;
  position: relative; overflow-anchor: none }
.dyninformer-live .rows { position: absolute; left: 0; right: 0 }
.dyninformer-live .cell { padding: 2px 10px; overflow: hidden; text-overflow: ellipsis;
  white-space: pre }
.dyninformer-live .heads .cell { padding: 0 }
.dyninformer-live button { all: unset; box-sizing: border-box; width: 100%; height: 100%;
  padding: 3px 10px; font-weight: 600; cursor: pointer; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis }
.dyninformer-live :is(button, input, .scroll):focus-visible { outline: 2px solid #388bfd;
  outline-offset: -2px }
.dyninformer-live .row:hover, .dyninformer-live .active { background: var(--shade) }
.dyninformer-live .heads .row:hover { background: none }
.dyninformer-live .active { box-shadow: inset 3px 0 #388bfd }
.dyninformer-live .cell.changed { background: rgba(255, 179, 0, .35) }
.dyninformer-live .new { background: rgba(46, 160, 67, .25) }
.dyninformer-live .gone { text-decoration: line-through; opacity: .55 }
`;

function make(tag, name, parent, attributes = {}) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  parent?.append(node);
  return node;
}

function render({ model, el }) {
  const view = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
  const seen = Math.max(1, model.get("rows") || 15); // rows that fit
  const asked = { id: 0, sort: null, descending: false, filter: "", start: 0 };
  let shown = { id: 0, version: 0, total: 0, start: 0, rows: [], headings: [], query: 0 };
  let query = 0; // the number of the question that last changed the order or the filter
  let active = -1; // the row that the keyboard is at
  let widths = [];
  let late = 0;
  let begun = false;

  const root = make("div", "dyninformer-live", el);
  make("style", "", root).textContent = CSS;
  const head = make("div", "head", root);
  const title = make("b", "", head);
  const count = make("span", "count", head);
  const standing = make("span", "standing", head, { role: "status" });
  const filter = make("input", "", head, {
    type: "search", placeholder: "filter", "aria-label": "Filter the rows by words",
    spellcheck: "false", autocomplete: "off",
  });
  const grid = make("div", "grid", root);
  const inner = make("div", "inner", grid, { role: "grid", "aria-readonly": "true" });
  const heads = make("div", "row", make("div", "heads", inner, { role: "rowgroup" }), {
    role: "row", "aria-rowindex": "1",
  });
  const scroll = make("div", "scroll", inner, { role: "rowgroup", tabindex: "0" });
  scroll.style.height = `${seen * ROW}px`;
  const space = make("div", "", scroll, { role: "presentation" });
  const rows = make("div", "rows", scroll, { role: "presentation" });

  // -- questions

  function ask(changes = {}) {
    Object.assign(asked, changes);
    asked.id += 1;
    model.send({ ...asked, view, count: seen + 2 * AROUND, seen: shown.version });
  }

  function askAnew(changes) {
    ask({ ...changes, start: 0 });
    query = asked.id;
    active = -1;
    scroll.scrollTop = 0;
  }

  function askSoon() {
    late ||= setTimeout(() => { late = 0; ask({ start: Math.max(0, first() - AROUND) }); }, SOON);
  }

  // -- where we are: what is taller than a browser can count is scrolled faster than it looks

  function tall() { return shown.total * ROW; }
  function ratio() {
    const room = Math.min(tall(), TALLEST) - scroll.clientHeight;
    return tall() <= TALLEST || room <= 0 ? 1 : (tall() - scroll.clientHeight) / room;
  }
  function first() { return Math.floor((scroll.scrollTop * ratio()) / ROW); }
  function place() {
    rows.style.top = `${shown.start * ROW - scroll.scrollTop * (ratio() - 1)}px`;
  }
  function covered() {
    const top = first();
    const bottom = Math.min(top + seen + 1, shown.total);
    return shown.start <= top && bottom <= shown.start + shown.rows.length;
  }

  // -- what is seen

  function drawState() {
    const found = asked.filter ? `${shown.total.toLocaleString("en")} of ` : "";
    const noun = shown.objects === 1 ? shown.noun : `${shown.noun}s`;
    count.textContent = `${found}${shown.objects.toLocaleString("en")} ${noun}`;
    standing.textContent = shown.standing;
    standing.className = `standing ${shown.good ? "good" : "bad"}`;
    inner.setAttribute("aria-rowcount", shown.total + 1);
  }

  function drawHead() {
    title.textContent = shown.title;
    drawState();
    inner.setAttribute("aria-label", shown.title);
    inner.setAttribute("aria-colcount", shown.headings.length);
    heads.replaceChildren();
    shown.headings.forEach((heading, at) => {
      const sorted = asked.sort === at;
      const cell = make("div", "cell", heads, {
        role: "columnheader", "aria-colindex": at + 1,
        "aria-sort": sorted ? (asked.descending ? "descending" : "ascending") : "none",
      });
      const mark = sorted ? (asked.descending ? " ▼" : " ▲") : "";
      const button = make("button", "", cell, { type: "button" });
      button.textContent = heading + mark;
      button.onclick = () => {
        askAnew({ sort: at, descending: sorted && !asked.descending });
        drawHead();
        heads.children[at].firstChild.focus();
      };
    });
  }

  function drawRows() {
    const lines = shown.rows.map(([cells, state, changed], at) => {
      const index = shown.start + at;
      const line = make("div", `row ${state}`, null, {
        role: "row", "aria-rowindex": index + 2, id: `${view}-${index}`,
      });
      line.dataset.index = index;
      cells.forEach((text, column) => {
        const cell = make("div", changed.includes(column) ? "cell changed" : "cell", line, {
          role: "gridcell", "aria-colindex": column + 1,
        });
        cell.textContent = text;
        if (text.length > 30) cell.title = text;
        widths[column] = Math.max(widths[column], Math.min(text.length, 40));
      });
      return line;
    });
    rows.replaceChildren(...lines);
    const columns = widths.map((each) => `minmax(calc(${each * 0.85}ch + 32px), ${each}fr)`).join(" ");
    for (const line of [heads, ...lines]) line.style.gridTemplateColumns = columns;
    space.style.height = `${Math.max(Math.min(tall(), TALLEST), 1)}px`;
    place();
    drawActive();
  }

  function drawActive() {
    for (const line of rows.children) {
      line.classList.toggle("active", Number(line.dataset.index) === active);
    }
    if (active < 0) scroll.removeAttribute("aria-activedescendant");
    else scroll.setAttribute("aria-activedescendant", `${view}-${active}`);
  }

  function take(message) {
    if (message?.view !== view || message.id < query || message.id < shown.id) return;
    if (message.version <= shown.version) return;
    const same = JSON.stringify(message.headings) === JSON.stringify(shown.headings);
    if (!begun) { // the order that the kernel begins with
      begun = true;
      Object.assign(asked, { sort: message.sort, descending: message.descending });
    }
    const focused = heads.contains(document.activeElement);
    shown = message;
    if (!same) widths = shown.headings.map((heading) => heading.length + 2);
    if (!same || !focused) drawHead(); // its button would lose the focus
    else drawState();
    drawRows();
    if (message.pushed) ask(); // it was seen
    else if (!covered()) askSoon();
  }

  // -- what somebody does

  function go(to) {
    active = Math.max(0, Math.min(to, shown.total - 1));
    const top = first();
    if (active < top || active >= top + seen) {
      const wanted = active < top ? active : active - seen + 1;
      scroll.scrollTop = (wanted * ROW) / ratio();
    }
    drawActive();
  }

  scroll.onscroll = () => { place(); if (!covered()) askSoon(); };
  scroll.onkeydown = (event) => {
    const from = active < 0 ? first() - 1 : active;
    const to = {
      ArrowDown: from + 1, ArrowUp: from - 1, PageDown: from + seen, PageUp: from - seen,
      Home: 0, End: shown.total - 1,
    }[event.key];
    if (to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    go(to);
  };
  rows.onclick = (event) => {
    const line = event.target.closest(".row");
    if (line) go(Number(line.dataset.index));
  };
  filter.oninput = () => askAnew({ filter: filter.value });
  filter.onkeydown = (event) => event.stopPropagation(); // a notebook's own keys

  model.on("msg:custom", take);
  const beat = setInterval(() => ask(), BEAT);
  ask();

  return () => {
    clearInterval(beat);
    clearTimeout(late);
    model.off("msg:custom", take);
    model.send({ view, leave: true });
  };
}

export default { render };
