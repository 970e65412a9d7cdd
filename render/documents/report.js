/* The page about a run: search, the address that keeps the view, keys, copying, and the start.
 *
 * The data (page_data.c) are read by model.js. Names come from a trace, so they are only inserted as
 * text. The address of the page has the state of the view (see remember), so a link shows the same
 * view. Without scripts the page shows the allocated peak. */

const data = JSON.parse(document.getElementById('mt-data').textContent);

/* ---- search ------------------------------------------------------------- */

const MAX_QUERY = 200; // characters

/* A text that may be anywhere, in capital or small letters: `|` separates alternatives, `*` stands for
 * any characters. A link may have any text, and a regular expression can take years. */
class Pattern {
  constructor(text) {
    this.choices = text.toLowerCase().split('|').map((each) => each.split(/\.?\*/).filter(Boolean))
      .filter((parts) => parts.length);
  }

  test(name) {
    const lower = name.toLowerCase();
    return this.choices.some((parts) => {
      let at = 0;
      return parts.every((part) => {
        const found = lower.indexOf(part, at);
        at = found + part.length;
        return found >= 0;
      });
    });
  }
}

const search = {
  pattern: null,
  text: '',
  box: element('input', {
    type: 'search', placeholder: 'text, 386 MiB, 0x7f… ( / )', spellcheck: 'false',
    'aria-label': 'search frames, sites and roles, or a size, or an address', maxlength: MAX_QUERY,
    title: 'a text in frames, sites and roles: forward|train.py*attention; ' +
      'a size: 386 MiB or 404750336 B; or an address: 0x7f3a00000000',
  }),
  hits: element('span', {class: 'hits', 'aria-live': 'polite'}),
  list: element('ul', {class: 'found'}), // blocks that held an address
  panel: new Panel(),

  set(query) {
    const text = query.slice(0, MAX_QUERY);
    const address = /^\s*0x([0-9a-f]{1,16})\s*$/i.exec(text);
    const size = /^\s*([\d.,]+)\s*([KMGTPE]i)?B\s*$/i.exec(text);
    this.text = text;
    this.pattern = null;
    this.list.replaceChildren();
    this.hits.textContent = '';
    if (address) {
      const wanted = BigInt(`0x${address[1]}`);
      this.listBlocks((block) => block.holds(wanted), `held the address ${text.trim()}`,
        (a, b) => a.birth - b.birth || a.event - b.event);
    } else if (size) {
      /* "1.5 GiB" is also "1.50 GiB", as the page writes it */
      const plain = (words) => words.replace(/[\s,]/g, '').toLowerCase()
        .replace(/\.(\d*?)0*(?=\D)/, (_, digits) => (digits ? `.${digits}` : ''));
      const words = (bytes) => [formatBytes(bytes), `${bytes} B`].map(plain);
      const wanted = plain(text);
      this.listBlocks((block) => words(block.bytes).includes(wanted) ||
        words(block.requested).includes(wanted), `have the size ${text.trim()}`, (a, b) => a.event - b.event);
    } else if (text) {
      const pattern = new Pattern(text);
      if (pattern.choices.length) this.pattern = pattern;
    }
    if (this.box.value !== text) this.box.value = text;
    for (const explorer of explorers) explorer.show();
  },

  listBlocks(isWanted, words, order) {
    const all = blockMaps.flatMap((blocks) => [...blocks.values()]);
    const found = all.filter(isWanted).sort(order);
    this.hits.textContent = !all.length ? NO_BLOCKS : `${formatCount(found.length)} of ` +
      `${listed(all.length, data.devices)} ${words}` +
      (found.length > MAX_FOUND ? `; the first ${MAX_FOUND} are listed` : '');
    this.list.replaceChildren(...found.slice(0, MAX_FOUND).map((block) => element('li', {}, element('button', {
      type: 'button', text: `${block.title()}: ${block.allocated()}; freed ${block.freed()}`,
      onclick: () => { unpick(); pickBlock(block, null); remember(); },
    }))));
  },

  /* Groups whose stack, site, role or phase matches. Every group counts once. */
  groupsOf(model) {
    if (!this.pattern) return null;
    const nodes = model.parents.map((parent, node) => this.pattern.test(model.nodeName(node)));
    model.parents.forEach((parent, node) => {
      if (parent >= 0 && nodes[parent]) nodes[node] = true;
    });
    return model.groups.map((group) => (group.node >= 0 && nodes[group.node]) ||
      this.pattern.test(group.site) || this.pattern.test(data.roles[group.role]));
  },

  tell(explorer, sum) {
    if (!this.pattern || explorer !== (current || explorers[0])) return;
    const total = explorer.model.totals[explorer.at];
    const device = data.devices.length > 1 ? ` of device ${explorer.index}` : '';
    this.hits.textContent = `“${this.text}” in frames, sites and roles${device}: ` +
      `${formatBytes(sum.bytes)} (${formatCount(sum.bytes)} B) in ` +
      `${formatCount(sum.blocks)} blocks, ${formatShare(sum.bytes, total)}`;
    this.hits.dataset.bytes = sum.bytes;
  },
};

/* ---- the address --------------------------------------------------------- */

let restoring = false;

/* #b=DEVICE.KEY a block; for device 0: r0=FIRST-LAST columns, p0=group that was clicked,
 * v0=FROM-TO positions of the timeline, x0=events if that is its axis, l0=layers, f0.WAY=names of the
 * filter, m0=VIEW.WAY of the panel, z0=node, g0=rows, s0=sort; q=search, t=theme; s.TABLE=sort of a
 * table that does not change. */
function remember() {
  if (restoring) return;
  const parts = new URLSearchParams();
  for (const explorer of explorers) rememberExplorer(explorer, parts);
  rememberTables(parts);
  if (search.text) parts.set('q', search.text);
  if (chosenTheme()) parts.set('t', chosenTheme());
  if (picked) parts.set('b', `${picked.model.source.device}.${picked.key}`);
  setAddress(parts);
}

function rememberExplorer(explorer, parts) {
  const n = explorer.index, {timeline, panel, model} = explorer;
  if (!explorer.isWhole()) parts.set(`r${n}`, `${explorer.first}-${explorer.last}`);
  if (explorer.pinned) parts.set(`p${n}`, explorer.pinned.index);
  if (explorer.icicle.focus >= 0) parts.set(`z${n}`, explorer.icicle.focus);
  if (explorer.by !== 'site') parts.set(`g${n}`, explorer.by);
  const {column, down} = explorer.sort;
  if (column !== 'bytes' || !down) parts.set(`s${n}`, orderText(column, down));
  for (const [way, names] of explorer.filter) parts.set(`f${n}.${way}`, JSON.stringify([...names]));
  if (panel && (panel.view !== 'change' || panel.way !== 'site'))
    parts.set(`m${n}`, `${panel.view}.${panel.way}`);
  if (!timeline) return;
  if (!timeline.isWhole())
    parts.set(`v${n}`, `${Math.round(timeline.from)}-${Math.round(timeline.to)}`);
  if (model.byEvent !== Boolean(model.source.by_event)) parts.set(`x${n}`, model.byEvent ? 'event' : 'time');
  if (timeline.way !== 'role') parts.set(`l${n}`, timeline.way);
}

function restoreExplorer(explorer, parts) {
  const n = explorer.index, {timeline, panel, model} = explorer;
  const pair = (name) => /^(\d+)-(\d+)$/.exec(parts.get(name + n) || '');
  const range = pair('r'), view = pair('v');
  const index = (name) => Number(parts.get(name + n) || -1);
  const node = index('z');
  const by = parts.get(`g${n}`);
  const sort = /^(\w+)([-+ ])$/.exec(parts.get(`s${n}`) || '');
  explorer.icicle.focus = node in model.parents ? node : -1;
  explorer.by = model.tellsApart(by) ? by : 'site';
  explorer.sort = sort && COLUMNS.includes(sort[1])
    ? {column: sort[1], down: sort[2] === '-'} : {column: 'bytes', down: true};
  explorer.first = 0;
  explorer.last = model.columnCount - 1;
  if (range) {
    explorer.first = Math.min(Number(range[1]), explorer.last);
    explorer.last = Math.min(Math.max(explorer.first, Number(range[2])), explorer.last);
  }
  explorer.pinned = model.groups[index('p')] || null;
  explorer.filter.clear();
  for (const way of Object.keys(WAYS)) {
    const names = namesOf(parts.get(`f${n}.${way}`) || '[]',
      new Set(model.groups.map((group) => model.nameOf(group, way))));
    if (names.length) explorer.filter.set(way, new Set(names));
  }
  const [shown, way] = (parts.get(`m${n}`) || 'change.site').split('.');
  if (panel) {
    panel.view = VIEWS.some(([each]) => each === shown) ? shown : 'change';
    panel.way = way === 'block' || model.tellsApart(way) ? way : 'site';
  }
  if (!timeline) return;
  const axis = parts.get(`x${n}`);
  model.setAxis(axis && data.end ? axis === 'event' : Boolean(model.source.by_event));
  timeline.setWay(parts.get(`l${n}`) || 'role');
  timeline.look(view ? Number(view[1]) : 0, view ? Number(view[2]) : model.length);
}

/* Shows the block below the first chart that has it. */
function restoreBlock(text) {
  const [device, ...key] = text.split('.');
  const at = data.devices.findIndex((source) => String(source.device) === device);
  const block = at >= 0 ? blockMaps[at].get(key.join('.')) : null;
  unpick();
  if (block)
    pickBlock(block, pictures.find((picture) => picture.blocks === blockMaps[at] &&
      picture.shapesOf(block).length) || null);
}

function restore() {
  const text = location.hash.slice(1);
  if (text && !text.includes('=')) return; // a section of the page
  const parts = new URLSearchParams(text);
  restoring = true;
  setTheme(['dark', 'light'].includes(parts.get('t')) ? parts.get('t') : '');
  for (const explorer of explorers) restoreExplorer(explorer, parts);
  restoreTables(parts);
  search.set(parts.get('q') || '');
  restoreBlock(parts.get('b') || '');
  restoring = false;
}

const drawAll = () => explorers.forEach((each) => each.timeline && each.timeline.draw());

/* ---- keys ----------------------------------------------------------------- */

function resetAll() {
  search.set('');
  unpick();
  for (const picture of pictures) picture.fit();
  for (const explorer of explorers) {
    explorer.icicle.focus = -1;
    explorer.filter.clear();
    explorer.select(0, explorer.model.columnCount - 1);
    if (explorer.timeline) explorer.timeline.fit();
  }
  document.activeElement.blur();
  remember();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'Escape') return resetAll();
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const explorer = current || explorers[0];
  const actions = {
    '/': () => search.box.focus(),
    ArrowLeft: () => explorer && explorer.step(-1, event.shiftKey),
    ArrowRight: () => explorer && explorer.step(1, event.shiftKey),
    ArrowUp: () => explorer && explorer.icicle.zoomOut(),
    ArrowDown: () => explorer && explorer.icicle.zoomIn(),
    '+': () => explorer && explorer.timeline && explorer.timeline.zoom(0.5),
    '=': () => explorer && explorer.timeline && explorer.timeline.zoom(0.5),
    '-': () => explorer && explorer.timeline && explorer.timeline.zoom(2),
    0: () => explorer && explorer.timeline && explorer.timeline.fit(),
    p: () => explorer && explorer.showPeak(),
  };
  const isScroll = event.key.startsWith('Arrow') && !(explorer && isNear(explorer));
  if (!actions[event.key] || isScroll) return;
  event.preventDefault();
  actions[event.key]();
  remember();
}

/* Arrow keys scroll the page, unless an explorer is visible or has the focus. */
function isNear(explorer) {
  const isVisible = (part) => {
    const box = part.getBoundingClientRect();
    return box.top < innerHeight && box.bottom > 0;
  };
  return explorer.section.contains(document.activeElement) || isVisible(explorer.explore) ||
    (explorer.timeline && isVisible(explorer.timeline.stage));
}

/* ---- copying --------------------------------------------------------------- */

function copyText(text) {
  if (navigator.clipboard && window.isSecureContext)
    return navigator.clipboard.writeText(text).catch(() => copyByCommand(text));
  return copyByCommand(text);
}

/* For pages in a file, or in a frame of a CI server, which may not write to the clipboard. */
function copyByCommand(text) {
  const box = element('textarea', {style: {position: 'fixed', opacity: 0}});
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand('copy');
  box.remove();
  return done ? Promise.resolve() : Promise.reject(new Error('not copied'));
}

/* A button that copies the text that `source` has at the time of the click. */
function copyButton(source) {
  const button = element('button', {
    type: 'button', class: 'copy', text: 'copy', 'aria-label': 'copy to the clipboard',
    onclick: () => {
      const tell = (text) => {
        button.textContent = text;
        setTimeout(() => { button.textContent = 'copy'; }, 1500);
      };
      copyText(source.textContent).then(() => tell('copied'), () => tell('not copied'));
    },
  });
  return button;
}

function addCopyButtons() {
  for (const code of document.querySelectorAll('.do code, .proof code, #rules code'))
    code.after(copyButton(code));
  for (const words of document.querySelectorAll('pre')) {
    const frame = element('div', {class: 'copies'});
    words.before(frame);
    frame.append(words, copyButton(words));
  }
}

/* ---- the page ------------------------------------------------------------- */

let current = null; // the device that receives keys
const explorers = [], pictures = [];
const blockMaps = []; // for each device of the data: key -> Block

for (const source of data.devices) {
  const section = document.getElementById(`device-${source.device}`);
  const explorer = section && section.querySelector('table.live') && new Explorer(section, source);
  if (explorer) explorers.push(explorer);
  const model = explorer ? explorer.model : new Model(source);
  blockMaps.push(readBlocks(model));
}
for (const figure of document.querySelectorAll('figure[data-enlarged]')) {
  const at = data.devices.findIndex((source) =>
    figure.closest('section').id === `device-${source.device}`);
  pictures.push(new Picture(figure, at < 0 ? new Map() : blockMaps[at]));
}
for (const table of document.querySelectorAll('table.sortable')) makeSortable(table, remember);
addCopyButtons();

const tools = document.getElementById('tools');
if (explorers.length) {
  tools.append(search.hits, search.box);
  (document.querySelector('.first > aside') || document.querySelector('main'))
    .prepend(search.list, search.panel.box);
}
tools.append(element('button', {
  type: 'button', text: 'light / dark', onclick: () => {
    setTheme(isDark() ? 'light' : 'dark');
    drawAll();
    remember();
  },
}));
search.box.addEventListener('input', () => {
  search.set(search.box.value);
  remember();
});
keepAddress();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
addEventListener('keydown', onKey);
addEventListener('hashchange', restore);
addEventListener('beforeprint', () => {
  for (const explorer of explorers) explorer.table.parentElement.style.maxHeight = '';
  for (const details of document.querySelectorAll('details')) details.open = true;
});
let resized;
addEventListener('resize', () => {
  clearTimeout(resized);
  resized = setTimeout(() => explorers.forEach((explorer) => {
    explorer.icicle.draw();
    showWholeRows(explorer.table);
    if (explorer.timeline) explorer.timeline.draw();
  }), 100);
});
restore();
if (location.hash && !location.hash.includes('='))
  explorers.forEach((explorer) => explorer.show());
document.documentElement.dataset.ready = 'yes';
