/* The page about two runs, A and B: both timelines on one axis with one selection, the differences
 * beside them, and one icicle of both call trees.
 *
 * The data (diff_html.c) have both histories, which model.js reads, and the rows of the comparison
 * at the instants that the command compared. Names come from traces, so they are only inserted as
 * text. The address of the page has the state of the view. */

const data = JSON.parse(document.getElementById('mt-data').textContent);
const LETTERS = ['A', 'B'];
const picked = null; // the timelines mark a picked block; this page has no single blocks
const MAX_CHANGED_ROWS = 200;

/* ---- the differences -------------------------------------------------------- */

const CHANGE_VIEWS = [['change', 'Change of the ranges'], ['held', 'Held at the fullest']];
const CHANGE_WAYS = [['role', 'by role'], ['site', 'by site'], ['module', 'by module'],
  ['phase', 'by phase of allocation']];

/* Beside the timelines: what differs, and the sum. */
class ChangePanel {
  constructor(comparison, aside) {
    this.comparison = comparison;
    this.view = 'change';
    this.way = 'role';
    this.title = element('p', {class: 'title'});
    this.tabs = element('div', {class: 'tabs', role: 'tablist'});
    for (const [view, text] of CHANGE_VIEWS) {
      this.tabs.append(element('button', {
        type: 'button', role: 'tab', text, 'data-view': view,
        onclick: () => { this.view = view; this.show(); remember(); },
      }));
    }
    this.choice = element('select', {
      'aria-label': 'rows', onchange: () => { this.way = this.choice.value; this.show(); remember(); },
    });
    this.close = element('button', {type: 'button', text: 'close', onclick: () => comparison.reset()});
    this.body = element('div', {class: 'rows'});
    this.note = element('p', {class: 'small'});
    aside.append(element('div', {class: 'selection', 'aria-live': 'polite'},
      element('div', {class: 'bar'}, this.title, this.close),
      element('div', {class: 'bar'}, this.tabs, this.choice), this.body, this.note));
  }

  show() {
    const {comparison} = this, {isSelected} = comparison, isRange = comparison.isRange();
    const view = isRange ? this.view : 'held';
    this.tabs.hidden = !isRange;
    for (const tab of this.tabs.children)
      tab.setAttribute('aria-selected', String(tab.dataset.view === view));
    this.close.hidden = !isSelected;
    this.showWays();
    const rows = this.isExact() ? this.exactRows() : this.modelRows(view);
    this.fill(rows, view);
    this.showTitle(view);
    this.note.textContent = [this.smallNote(), rows.length > MAX_CHANGED_ROWS
      ? `${formatCount(rows.length - MAX_CHANGED_ROWS)} rows that changed less are not shown.` : '']
      .filter(Boolean).join(' ');
  }

  /* Whether the rows are those of the command. */
  isExact() {
    return !this.comparison.isSelected && !this.comparison.filter.size;
  }

  hasModules() {
    return this.isExact() && data.is_peak && data.modules.every((rows) => rows.length);
  }

  wayShown() {
    return this.way === 'module' && !this.hasModules() ? 'site' : this.way;
  }

  showWays() {
    const ways = CHANGE_WAYS.filter(([way]) => way !== 'module' || this.hasModules());
    this.choice.replaceChildren(...ways.map(([value, text]) => element('option', {value, text})));
    this.choice.value = this.wayShown();
  }

  smallNote() {
    const {sides} = this.comparison;
    if (this.isExact() || this.wayShown() !== 'site') return '';
    return sides.some(({model}) => model.groups.some((group) => group.detail === 3))
      ? 'Small sites of long runs are one row, "small ones together".' : '';
  }

  /* ---- rows ---- */

  exactRows() {
    const way = this.wayShown();
    if (way === 'module') return this.moduleRows();
    return data[`by_${way}`].map(([name, a, b, aBlocks, bBlocks, role, phase]) => ({
      name: name === null ? 'all others together' : name || 'no phase', isRest: name === null,
      key: this.comparison.rowKey(way, name, phase, bBlocks),
      bytes: [a, b], blocks: [aBlocks, bBlocks], role, phase: way === 'site' ? phase : '',
    }));
  }

  moduleRows() {
    const rows = new Map();
    data.modules.forEach((list, side) => list.forEach(([name, bytes, blocks]) => {
      if (!rows.has(name)) rows.set(name, {name, isRest: true, bytes: [0, 0], blocks: [0, 0], role: -1});
      rows.get(name).bytes[side] += bytes;
      rows.get(name).blocks[side] += blocks;
    }));
    return [...rows.values()];
  }

  modelRows(view) {
    const way = this.wayShown(), rows = new Map();
    this.comparison.sides.forEach((side, index) => {
      const sums = view === 'change'
        ? side.model.sumOf(side.model.firstChange(side.first), side.last)
        : side.model.stateAt(side.at);
      for (const group of side.model.groups) {
        const bytes = sums.bytes[group.index];
        if (!bytes || (side.chosen && !side.chosen[group.index])) continue;
        const key = this.comparison.keyOf(side, group, way);
        const row = rows.get(key) || {key, name: '', bytes: [0, 0], blocks: [0, 0], most: 0, phase: ''};
        if (!row.name || index)
          row.name = way === 'site' && group.detail !== 3 ? group.site : key;
        row.bytes[index] += bytes;
        row.blocks[index] += sums.blocks[group.index];
        if (way === 'site' && group.detail !== 3) row.phase = group.phase;
        if (Math.abs(bytes) > row.most) Object.assign(row, {most: Math.abs(bytes), role: group.role});
        rows.set(key, row);
      }
    });
    return [...rows.values()].filter((row) => row.bytes[0] || row.bytes[1]);
  }

  /* ---- showing ---- */

  fill(rows, view) {
    const size = (row) => Math.abs(changeOf(row.bytes));
    rows.sort((x, y) => size(y) - size(x) || Math.max(...y.bytes) - Math.max(...x.bytes) ||
      (x.name < y.name ? -1 : 1));
    const sum = [0, 1].map((side) => rows.reduce((bytes, row) => bytes + row.bytes[side], 0));
    const head = ['', 'change', 'A', 'B', ''].map((text, at) =>
      element('th', {text, scope: 'col', class: at && at < 4 ? 'number' : ''}));
    const total = this.row({name: 'in total', isRest: true, bytes: sum, blocks: [0, 0], role: -1}, view);
    const others = rows.slice(MAX_CHANGED_ROWS);
    const rest = {name: 'all others together', isRest: true, blocks: [0, 0], role: -1,
      bytes: [0, 1].map((side) => others.reduce((bytes, row) => bytes + row.bytes[side], 0))};
    this.body.replaceChildren(element('table', {class: 'changes'},
      element('thead', {}, element('tr', {}, ...head)),
      element('tbody', {}, ...rows.slice(0, MAX_CHANGED_ROWS).map((row) => this.row(row, view)),
        ...(others.length ? [this.row(rest, view)] : [])),
      element('tfoot', {}, total, ...this.reservedRow(view))));
    this.sum = sum;
  }

  /* What the allocators hold for these blocks. */
  reservedRow(view) {
    const {sides, filter} = this.comparison;
    const bytes = this.isExact() ? data.reserved : sides.map(({model, at}) => model.reserved[at]);
    if (view !== 'held' || filter.size || !bytes.every(Boolean)) return [];
    return [this.row({name: 'reserved', isRest: true, bytes, blocks: [0, 0], role: -1}, view)];
  }

  row(row, view) {
    const format = view === 'change' ? formatChange : formatBytes;
    const change = changeOf(row.bytes);
    const [a, b] = row.blocks;
    const mark = row.isRest || view === 'change' || this.wayShown() !== 'site' ? ''
      : !row.bytes[0] ? 'new' : !row.bytes[1] ? 'gone' : '';
    const number = (text, value) => element('td', {
      class: 'number', text, 'data-v': value, title: `${formatCount(value)} B`,
    });
    const facts = [mark, row.phase && `allocated in ${row.phase}`,
      view === 'held' && (a || b) && (a === b ? `${formatCount(a)} ${a === 1 ? 'block' : 'blocks'}`
        : `${formatCount(a)} → ${formatCount(b)} blocks`)].filter(Boolean).join(', ');
    const line = element('tr', {},
      element('td', {}, element('i', {class: row.role >= 0 ? `role${row.role}` : ''})),
      number(changeText(change), change), number(format(row.bytes[0]), row.bytes[0]),
      number(format(row.bytes[1]), row.bytes[1]),
      element('td', {class: 'site'}, row.name,
        ...(facts ? [' ', element('span', {class: 'small', text: facts})] : [])));
    if (row.isRest) return line;
    line.tabIndex = 0;
    line.title = 'show only this';
    const way = this.wayShown();
    const act = () => this.comparison.toggleFilter(way, row.key);
    line.addEventListener('click', act);
    line.addEventListener('keydown', (event) => { if (event.key === 'Enter') act(); });
    return line;
  }

  showTitle(view) {
    const {sides, filter} = this.comparison;
    const change = changeOf(this.sum);
    const isCompared = this.isExact();
    const where = view === 'change' ? 'in the selected ranges'
      : isCompared ? `at the ${data.is_peak ? 'peaks' : 'compared instants'}`
        : this.comparison.instantWords();
    const words = sides.map(({model, first, last, at}, side) => {
      const ends = view === 'change' ? [first, last] : [at];
      return `${LETTERS[side]} ${isCompared && !this.comparison.isExact(sides[side])
        ? `event ${formatCount(data.at[side])}` : ends.map((column) => formatInstant(model.t[column], model.event[column])).join(' to ')}`;
    });
    this.title.replaceChildren(`${changeText(change)} from A to B ${where}` +
      `${filter.size ? ', of this selection' : ''} `,
    element('span', {class: 'small', text: words.join(', ')}));
    this.title.dataset.a = this.sum[0];
    this.title.dataset.b = this.sum[1];
  }
}

/* ---- both ------------------------------------------------------------------- */

class Comparison extends LinkedRuns {
  constructor() {
    super(data.devices, LETTERS, data.names);
    this.moved = new Map(); // "phase\nsite" of A -> key
    for (const [phase, a, b] of data.moved)
      this.moved.set(`${phase}\n${a}`, b === null ? `${phase}\n${a}\nonly in A` : `${phase}\n${b}`);
    document.querySelector('.compared').classList.add('open');
    this.draw(LETTERS.map((letter) => document.getElementById(`timeline-${letter.toLowerCase()}`)));
    this.panel = new ChangePanel(this, document.getElementById('side'));
    this.icicle = new UnionIcicle(this, document.getElementById('union'));
  }

  /* The compared instant, as a column. */
  startOf({model, index}) {
    return data.is_peak ? super.startOf({model}) : model.columnOfEvent(data.at[index]);
  }

  /* Whether the instant of a side is the one that the command compared. */
  isExact({model, index, at}) {
    return model.event[at] === data.at[index];
  }

  /* The name under which both runs have a group. */
  keyOf(side, group, way) {
    return way === 'site' && group.detail !== 3
      ? this.siteKey(side.index, group.phase, group.site) : super.keyOf(side, group, way);
  }

  siteKey(side, phase, site) {
    const key = `${phase}\n${site}`;
    return side ? key : this.moved.get(key) || key;
  }

  /* The key of a row of the command. */
  rowKey(way, name, phase, bBlocks) {
    return way === 'site' ? this.siteKey(bBlocks ? 1 : 0, phase, name || '') : name || 'no phase';
  }

  /* The keys of all groups and rows. */
  keysOf(way) {
    return new Set([
      ...this.sides.flatMap((side) => side.model.groups.map((group) => this.keyOf(side, group, way))),
      ...data[`by_${way}`].map(([name, , , , bBlocks, , phase]) =>
        this.rowKey(way, name, phase, bBlocks)),
    ]);
  }

  /* ---- selection ---- */

  /* How the instants of both belong together. */
  matchWords() {
    const [a, b] = this.sides.map((side, i) => this.timelines[i].placeOf(side.at));
    if (a && b && a.step === b.step && a.phase === b.phase) return `both in ${a.phase} of ${a.step}`;
    const unit = data.end && this.axis !== 'event' ? 'the time' : 'the number of events';
    return `matched by ${unit} since ${this.axis === 'step' ? 'the step began' : 'the start'}`;
  }

  instantWords() {
    if (!this.isSelected && !this.sides.every((side) => this.isExact(side)))
      return 'at the instants of this page that are closest to the compared ones';
    if (!this.isSelected) return data.is_peak ? 'at the peaks' : 'at the compared instants';
    return this.isRange() ? 'at the fullest instants of the ranges'
      : `at the selected instants, ${this.matchWords()}`;
  }

  reset() {
    this.icicle.focus = -1;
    super.reset();
  }

  show() {
    super.show();
    this.panel.show();
    this.icicle.show();
  }
}

/* ---- the address ---------------------------------------------------------- */

let restoring = false;

/* x=axis, v=FROM-TO positions of the timelines, r=FIRST-LAST.FIRST-LAST columns of A and of B,
 * m=VIEW.WAY of the panel, z=node of the icicle, f.WAY=keys of the filter, t=theme, s.TABLE=sort. */
function remember() {
  if (restoring) return;
  const parts = new URLSearchParams();
  if (comparison) rememberComparison(parts);
  rememberTables(parts);
  if (chosenTheme()) parts.set('t', chosenTheme());
  setAddress(parts);
}

function rememberComparison(parts) {
  const {panel, icicle, filter} = comparison;
  comparison.remember(parts);
  if (panel.view !== 'change' || panel.way !== 'role') parts.set('m', `${panel.view}.${panel.way}`);
  if (icicle.focus >= 0) parts.set('z', icicle.focus);
  for (const [way, keys] of filter) parts.set(`f.${way}`, JSON.stringify([...keys]));
}

function restoreComparison(parts) {
  const {panel, icicle, filter} = comparison;
  const [shown, way] = (parts.get('m') || 'change.role').split('.');
  const node = Number(parts.get('z') || -1);
  panel.view = CHANGE_VIEWS.some(([each]) => each === shown) ? shown : 'change';
  panel.way = CHANGE_WAYS.some(([each]) => each === way) ? way : 'role';
  icicle.focus = node in icicle.tree.parents ? node : -1;
  filter.clear();
  for (const each of ['role', 'site', 'phase']) {
    const keys = namesOf(parts.get(`f.${each}`) || '[]', comparison.keysOf(each));
    if (keys.length) filter.set(each, new Set(keys));
  }
  comparison.restore(parts);
  comparison.show();
}

function restore() {
  const text = location.hash.slice(1);
  const parts = new URLSearchParams(text.includes('=') ? text : '');
  restoring = true;
  setTheme(['dark', 'light'].includes(parts.get('t')) ? parts.get('t') : '');
  restoreTables(parts);
  if (comparison) restoreComparison(parts);
  restoring = false;
}

/* ---- the page ------------------------------------------------------------- */

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !comparison) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const {icicle} = comparison;
  const box = comparison.timelines[comparison.current].stage.getBoundingClientRect();
  const isNear = box.top < innerHeight && box.bottom > 0;
  const actions = {
    ...comparison.actions(),
    ArrowUp: () => icicle.focus >= 0 && icicle.zoom(icicle.tree.parents[icicle.focus]),
  };
  if (!actions[event.key]) return;
  if (event.key === 'ArrowUp' && !icicle.cells.contains(document.activeElement)) return;
  if (/Left|Right/.test(event.key) && !isNear) return;
  event.preventDefault();
  actions[event.key]();
  remember();
}

const comparison = data ? new Comparison() : null;

for (const table of document.querySelectorAll('table.sortable')) makeSortable(table, remember);
document.getElementById('tools').append(element('button', {
  type: 'button', text: 'light / dark', onclick: () => {
    setTheme(isDark() ? 'light' : 'dark');
    drawBoth();
    remember();
  },
}));
keepAddress();
function drawBoth() {
  if (comparison) for (const timeline of comparison.timelines) timeline.draw();
}
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawBoth);
addEventListener('keydown', onKey);
addEventListener('hashchange', restore);
let resized;
addEventListener('resize', () => {
  clearTimeout(resized);
  resized = setTimeout(() => {
    drawBoth();
    if (comparison) comparison.icicle.draw();
  }, 100);
});
restore();
document.documentElement.dataset.ready = 'yes';
