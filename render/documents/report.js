/* The interactive part of report.html: the user selects a time range on the timeline of a device.
 * The icicle and the table show the blocks that are alive at the fullest instant of the range.
 *
 * The data (page_data.c) has for every column of time the difference from the previous column, by
 * group. `groups` have a place in a tree of call stacks, a site, a phase of birth, a role and a
 * size. All numbers are sums over groups, so they are exact. Names come from a trace, so they are
 * only inserted as text.
 *
 * The address of the page has the state of the view (see remember), so a link shows the same view.
 * Without scripts the page shows the allocated peak. */
(() => {
'use strict';

const data = JSON.parse(document.getElementById('mt-data').textContent);
const COLUMNS = ['bytes', 'share', 'blocks', 'role', 'phase', 'site'];
const MIN_SHARE = 0.0005, MIN_PIXELS = 1.5; // of the width: narrower cells are counted, not drawn
const ROW_HEIGHT = 24;
const MAX_FOUND = 100; // blocks of one address that are listed

/* ---- words -------------------------------------------------------------- */

const formatTick = (number) => formatCount(Math.floor(number)) + (number % 1 ? '.5' : '');

/* The same format as in mt_chart_frame_when. */
function formatTime(ns) {
  const [unit, step] = data.end >= 1e9 ? ['s', 1e6] : data.end >= 1e6 ? ['ms', 1e3] : ['µs', 1];
  const steps = Math.floor(ns / step + 0.5);
  return `${formatCount(Math.floor(steps / 1000))}.${String(steps % 1000).padStart(3, '0')} ${unit}`;
}

/* Traces without times have only events. */
const formatInstant = (ns, event) =>
  data.end ? formatTime(ns) : `event ${formatCount(event)}`;

function formatWhen(ns, event) {
  const instant = formatInstant(ns, event);
  return data.end ? `${instant}, event ${formatCount(event)}` : instant;
}

/* ---- a device's data ---------------------------------------------------- */

const GROUP = 6; // numbers per group

class Model {
  constructor(source) {
    this.source = source;
    this.strings = source.strings;
    this.columnCount = source.t.length;
    this.groups = [];
    for (let at = 0; at < source.groups.length; at += GROUP) {
      const [node, site, phase, role, size, detail] = source.groups.slice(at, at + GROUP);
      this.groups.push({
        node, role, detail,
        size: size * source.unit,
        site: this.strings[site],
        phase: phase < 0 ? 'several phases' : this.strings[phase],
      });
    }
    this.parents = source.nodes.filter((_, at) => at % 2 === 0);
    this.frames = source.nodes.filter((_, at) => at % 2 === 1);
    this.addUp();
  }

  /* Totals of every column. */
  addUp() {
    let total = 0;
    const roles = data.roles.map(() => 0);
    this.totals = [];
    this.roleTotals = [];
    for (const changes of this.source.changes) {
      for (let at = 0; at < changes.length; at += 3) {
        const bytes = changes[at + 1] * this.source.unit;
        total += bytes;
        roles[this.groups[changes[at]].role] += bytes;
      }
      this.totals.push(total);
      this.roleTotals.push(roles.slice());
    }
  }

  /* Bytes and blocks of every group at the instant of a column. */
  stateAt(column) {
    const bytes = new Float64Array(this.groups.length);
    const blocks = new Float64Array(this.groups.length);
    for (let i = 0; i <= column; i++) {
      const changes = this.source.changes[i];
      for (let at = 0; at < changes.length; at += 3) {
        bytes[changes[at]] += changes[at + 1] * this.source.unit;
        blocks[changes[at]] += changes[at + 2];
      }
    }
    return {bytes, blocks};
  }

  fullest(first, last) {
    let best = first;
    for (let i = first + 1; i <= last; i++) if (this.totals[i] > this.totals[best]) best = i;
    return best;
  }

  nodeName(node) {
    const [name, place] = this.source.frames[this.frames[node]];
    const words = this.strings[name];
    return place < 0 ? words : `${words} ${this.strings[place]}`;
  }

  nodeOrigin(node) {
    return this.source.frames[this.frames[node]][2];
  }

  pathOf(node) {
    const path = [];
    for (let at = node; at >= 0; at = this.parents[at]) path.unshift(at);
    return path;
  }
}

/* Name of the blocks of a group below their stack. */
function leafName(group, blocks) {
  const count = formatCount(blocks);
  if (group.detail === 0) return `${count} × ${formatBytes(group.size)}`;
  const what = blocks === 1 ? 'block' : 'blocks';
  return group.detail === 1 ? `${count} ${what}` : `${count} small ${what}`;
}

/* ---- the tree at an instant --------------------------------------------- */

/* Bytes below every node of the tree of stacks; blocks of one role and size
 * become one leaf. `chosen`: the groups that a search found, or null. */
function growTree(model, state, chosen) {
  const sums = new Float64Array(model.parents.length);
  const found = new Float64Array(model.parents.length);
  const children = new Map();
  const add = (parent, child) => {
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(child);
  };
  const leaves = new Map();
  model.groups.forEach((group, index) => {
    const bytes = state.bytes[index];
    if (!bytes) return;
    const key = `${group.node} ${group.role} ${group.detail} ${group.size}`;
    const leaf = leaves.get(key) || {node: -1, group, bytes: 0, blocks: 0, found: 0};
    const isFound = chosen ? chosen[index] : true;
    leaf.bytes += bytes;
    leaf.blocks += state.blocks[index];
    leaf.found += isFound ? bytes : 0;
    leaves.set(key, leaf);
    for (let at = group.node; at >= 0; at = model.parents[at]) {
      sums[at] += bytes;
      found[at] += isFound ? bytes : 0;
    }
  });
  for (const leaf of leaves.values()) add(leaf.group.node, leaf);
  for (let node = 0; node < model.parents.length; node++) {
    if (sums[node])
      add(model.parents[node], {node, bytes: sums[node], found: found[node]});
  }
  const nameOf = (child) =>
    child.node >= 0 ? model.nodeName(child.node) : leafName(child.group, child.blocks);
  for (const list of children.values()) {
    for (const child of list) child.name = nameOf(child);
    list.sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1));
  }
  return {sums, children};
}

/* ---- one device --------------------------------------------------------- */

class Explorer {
  constructor(section, source) {
    this.section = section;
    this.index = source.device;
    this.model = new Model(source);
    this.first = 0;
    this.last = this.model.columnCount - 1;
    this.focus = -1;
    this.by = 'site';
    this.sort = {column: 'bytes', down: true};
    this.chart = section.querySelector('[data-chart="timeline"] svg');
    this.table = section.querySelector('table.live');
    this.heading = section.querySelector('.alive');
    this.build();
  }

  build() {
    this.when = element('p', {class: 'when', 'aria-live': 'polite'});
    this.hover = element('p', {class: 'hover'});
    this.crumbs = element('nav', {class: 'crumbs', 'aria-label': 'zoom of the icicle'});
    this.ruler = element('div', {class: 'ruler', 'aria-hidden': 'true'});
    this.cells = element('div', {
      class: 'icicle', tabindex: '0', role: 'group', 'aria-label': 'what holds memory, by call stack',
    });
    this.dropped = element('p', {class: 'small'});
    const peak = element('button', {
      type: 'button', text: 'Back to the peak', class: 'peak', onclick: () => this.reset(),
    });
    this.explore = element('div', {class: 'explore'},
      element('div', {class: 'bar'}, this.when, peak), this.hover, this.crumbs, this.ruler,
      this.cells, this.dropped);
    const still = this.section.querySelector('[data-chart="icicle"]');
    if (still) {
      still.hidden = true;
      still.before(this.explore);
      this.explore.id = still.id; // target of links to the icicle
      still.removeAttribute('id');
    } else {
      this.section.querySelector('[data-chart="timeline"]').after(this.explore);
    }
    this.cells.addEventListener('click', (event) => {
      const cell = event.target.closest('[data-node]');
      if (cell) this.zoom(Number(cell.dataset.node));
    });
    this.section.addEventListener('pointerdown', () => { current = this; });
    this.section.addEventListener('focusin', () => { current = this; });
    this.buildBrush();
    this.buildTable();
  }

  /* ---- brush ---- */

  buildBrush() {
    if (!this.chart) return;
    const [x, y, width, height] = this.model.source.plot;
    this.plot = {x, y, width, height};
    this.range = drawn('rect', {class: 'mt-range', y, height, x, width: 0});
    this.mark = drawn('line', {class: 'mt-mark', y1: y, y2: y + height, x1: x, x2: x});
    this.cursor = drawn('line', {class: 'mt-cursor', y1: y, y2: y + height, x1: -9, x2: -9});
    /* Drawn below labels, whose halo keeps them legible. */
    const label = this.chart.querySelector(':scope > text.o') || null;
    for (const each of [this.range, this.mark, this.cursor]) this.chart.insertBefore(each, label);
    this.chart.classList.add('mt-brushed');
    let from = null;
    this.chart.addEventListener('pointerdown', (event) => {
      const column = event.button === 0 ? this.columnOf(event) : null;
      if (column === null) return;
      from = column;
      this.chart.setPointerCapture(event.pointerId);
      this.select(column, column);
      event.preventDefault();
    });
    this.chart.addEventListener('pointermove', (event) => {
      const column = this.columnOf(event, from !== null);
      this.pointAt(column);
      if (from !== null && column !== null)
        this.select(Math.min(from, column), Math.max(from, column));
    });
    const end = () => { if (from !== null) remember(); from = null; };
    this.chart.addEventListener('pointerup', end);
    this.chart.addEventListener('pointercancel', end);
    this.chart.addEventListener('pointerleave', () => this.pointAt(null));
  }

  /* The column below the pointer; null outside of the plot, unless `clamped`. */
  columnOf(event, clamped) {
    const point = new DOMPoint(event.clientX, event.clientY)
      .matrixTransform(this.chart.getScreenCTM().inverse());
    const {x, y, width, height} = this.plot;
    const inside = point.x >= x && point.x <= x + width && point.y >= y && point.y <= y + height;
    if (!inside && !clamped) return null;
    const xs = this.model.source.xs;
    let low = 0, high = this.model.columnCount - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (xs[middle] <= point.x) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  pointAt(column) {
    if (column === null) {
      this.cursor.setAttribute('x1', -9);
      this.cursor.setAttribute('x2', -9);
      this.hover.textContent = this.hint();
      return;
    }
    const {xs, t, event, reserved} = this.model.source;
    const x = (xs[column] + xs[column + 1]) / 2;
    this.cursor.setAttribute('x1', x);
    this.cursor.setAttribute('x2', x);
    const roles = this.model.roleTotals[column]
      .map((bytes, role) => ({bytes, role})).filter((entry) => entry.bytes > 0)
      .sort((a, b) => b.bytes - a.bytes).slice(0, 4)
      .map((entry) => `${data.roles[entry.role]} ${formatBytes(entry.bytes)}`);
    const kept = reserved[column] ? ` of ${formatBytes(reserved[column])} reserved` : '';
    this.hover.textContent =
      `at the pointer: ${formatInstant(t[column], event[column])}, ` +
      `${formatBytes(this.model.totals[column])} ` +
      `allocated${kept}${roles.length ? ': ' : ''}${roles.join(', ')}`;
  }

  hint() {
    return 'Drag over the timeline to select a time range and see its fullest instant. ' +
      'Keys: ← → instant, with shift the range, ↑ ↓ zoom, / search, Esc back to the peak.';
  }

  select(first, last) {
    const most = this.model.columnCount - 1;
    this.first = Math.max(0, Math.min(first, most));
    this.last = Math.max(this.first, Math.min(last, most));
    this.show();
  }

  isWhole() {
    return this.first === 0 && this.last === this.model.columnCount - 1;
  }

  reset() {
    this.focus = -1;
    this.select(0, this.model.columnCount - 1);
    remember();
  }

  step(by, extend) {
    const at = this.model.fullest(this.first, this.last);
    if (extend) this.select(this.first, Math.max(this.first, this.last + by));
    else this.select(Math.max(0, at + by), Math.max(0, at + by));
    remember();
  }

  /* ---- showing ---- */

  show() {
    this.at = this.model.fullest(this.first, this.last);
    this.state = this.model.stateAt(this.at);
    this.chosen = search.groupsOf(this.model);
    this.tree = growTree(this.model, this.state, this.chosen);
    this.showInstant();
    this.showIcicle();
    this.showTable();
  }

  showInstant() {
    const {source, totals} = this.model;
    const where = source.strings[source.where[this.at]];
    const bytes = totals[this.at];
    const part = this.isWhole() ? 'The allocated peak' :
      this.first === this.last ? 'The fullest instant there' : 'The fullest instant of the range';
    const command = commandCode(this.command());
    this.when.replaceChildren(
      element('strong', {text: `${part}: ${formatBytes(bytes)}`}),
      ` (${formatCount(bytes)} B) allocated${where ? `, ${where}` : ''}, ` +
      `at ${formatWhen(source.t[this.at], source.event[this.at])} · `,
      command, copyButton(command));
    this.heading.textContent = `Alive at ${part[0].toLowerCase()}${part.slice(1)}`;
    this.when.dataset.event = source.event[this.at];
    this.when.dataset.bytes = bytes;
    this.hover.textContent = this.hint();
    if (!this.chart) return;
    const {xs} = source;
    const middle = (xs[this.at] + xs[this.at + 1]) / 2;
    this.range.setAttribute('x', xs[this.first]);
    this.range.setAttribute('width', this.isWhole() ? 0 : xs[this.last + 1] - xs[this.first]);
    this.mark.setAttribute('x1', middle);
    this.mark.setAttribute('x2', middle);
  }

  command() {
    const device = data.devices.length > 1 ? ` --device ${this.index}` : '';
    return `${data.live} --at ${this.model.source.event[this.at]}${device}`;
  }

  /* ---- icicle ---- */

  zoom(node) {
    this.focus = node;
    this.showIcicle();
    remember();
  }

  zoomIn() {
    const inner = (this.tree.children.get(this.focus) || []).find((child) => child.node >= 0);
    if (inner) this.zoom(inner.node);
  }

  zoomOut() {
    if (this.focus >= 0) this.zoom(this.model.parents[this.focus]);
  }

  showIcicle() {
    const total = this.model.totals[this.at];
    const path = this.model.pathOf(this.focus);
    const shown = this.focus < 0 ? total : this.tree.sums[this.focus];
    this.width = this.cells.clientWidth || 1000;
    this.narrow = {cells: 0, bytes: 0};
    this.depth = 0;
    this.showCrumbs(path, total);
    this.showRuler(shown);
    this.cells.replaceChildren();
    this.addCell({node: -1, bytes: total, found: total, name: 'all'}, 0, 1, 0, this.focus >= 0);
    path.forEach((node, row) => this.addCell(
      {node, bytes: this.tree.sums[node], found: this.tree.sums[node],
        name: this.model.nodeName(node)}, 0, 1, row + 1, node !== this.focus));
    if (shown) this.addChildren(this.focus, 0, shown, path.length + 1);
    this.cells.style.height = `${(Math.max(this.depth, path.length) + 1) * ROW_HEIGHT}px`;
    this.dropped.textContent = !shown && this.focus >= 0
      ? 'None of this is alive at that time.' : this.narrow.cells
        ? `${formatCount(this.narrow.cells)} ${this.narrow.cells === 1 ? 'cell' : 'cells'} too narrow to draw ` +
          `(${formatBytes(this.narrow.bytes)}, ${formatShare(this.narrow.bytes, shown)})` : '';
  }

  /* Adds the cells below a node. Left edge and width are in bytes of the shown sum. Not recursive,
   * because a file determines the depth of stacks. */
  addChildren(root, offset, shown, row) {
    const waiting = [{node: root, offset, row}];
    const least = Math.max(MIN_SHARE, MIN_PIXELS / this.width);
    while (waiting.length) {
      const parent = waiting.pop();
      let left = parent.offset;
      for (const child of this.tree.children.get(parent.node) || []) {
        if (child.bytes / shown < least) {
          this.narrow.cells++;
          this.narrow.bytes += child.bytes;
        } else {
          this.addCell(child, left / shown, child.bytes / shown, parent.row, false);
          if (child.node >= 0)
            waiting.push({node: child.node, offset: left, row: parent.row + 1});
        }
        left += child.bytes;
      }
    }
  }

  addCell(child, left, width, row, isAbove) {
    const isLeaf = child.node < 0 && child.group;
    const kind = isLeaf ? `role${child.group.role}`
      : child.node < 0 ? 'root0' : `origin${this.model.nodeOrigin(child.node)}`;
    const total = this.model.totals[this.at];
    const role = isLeaf ? `, ${data.roles[child.group.role]}` : '';
    const small = isLeaf && child.group.site && child.group.detail > 1 ? ` of ${child.group.site}` : '';
    const pixels = width * this.width;
    const cell = element('div', {
      class: `cell ${kind}${isAbove ? ' above' : ''}${search.pattern && !child.found ? ' dim' : ''}` +
        (search.pattern && search.pattern.test(child.name) ? ' hit' : ''),
      title: `${child.name}${small}${role}\n${formatBytes(child.bytes)} ` +
        `(${formatCount(child.bytes)} B), ${formatShare(child.bytes, total)}`,
      'data-bytes': child.bytes,
      style: {left: `${100 * left}%`, width: `${100 * width}%`, top: `${row * ROW_HEIGHT}px`},
    });
    if (!isLeaf) cell.dataset.node = child.node;
    const name = isLeaf ? this.leafText(child, pixels) : pixels > 26 ? child.name : '';
    if (name) cell.append(element('span', {class: 'name', text: name}));
    if (pixels > 130 && !isLeaf)
      cell.append(element('span', {class: 'size', text: formatBytes(child.bytes)}));
    this.depth = Math.max(this.depth, row);
    this.cells.append(cell);
  }

  /* The whole name, or the bytes, or nothing: a truncated number would be a different number. */
  leafText(leaf, pixels) {
    const room = pixels - 9;
    return [leaf.name, formatBytes(leaf.bytes)].find((text) => this.textWidth(text) <= room) || '';
  }

  textWidth(text) {
    this.pen = this.pen || document.createElement('canvas').getContext('2d');
    this.pen.font = `12.5px ${getComputedStyle(this.cells).fontFamily}`;
    return this.pen.measureText(text).width;
  }

  showCrumbs(path, total) {
    const buttons = [-1, ...path].map((node) => element('button', {
      type: 'button',
      text: node < 0 ? `all ${formatBytes(total)}` : this.model.nodeName(node),
      onclick: () => this.zoom(node),
    }));
    this.crumbs.replaceChildren(...buttons);
    this.crumbs.hidden = path.length === 0;
  }

  /* Ticks at 0.5, 1, 2, 5, 10, ... of the largest unit that fits twice, as on the axes of charts. */
  showRuler(shown) {
    this.ruler.replaceChildren();
    const most = Math.max(3, Math.floor(this.width / 110));
    let unit = 0;
    while (unit + 1 < UNITS.length && shown >= 2 * 1024 ** (unit + 1)) unit++;
    const count = shown / 1024 ** unit;
    let factor = unit ? 0.5 : 1;
    while (count / factor > most)
      factor = /2/.test(String(factor)) ? factor / 2 * 5 : factor * 2;
    for (let i = 1; i * factor < count; i++) {
      this.ruler.append(element('span', {
        text: `${formatTick(i * factor)} ${UNITS[unit]}`, 'data-bytes': i * factor * 1024 ** unit,
        style: {left: `${100 * i * factor / count}%`},
      }));
    }
  }

  /* ---- table ---- */

  buildTable() {
    this.caption = this.table.querySelector('caption') || this.table.createCaption();
    this.choice = element('select', {
      'aria-label': 'rows of the table',
      onchange: () => { this.by = this.choice.value; this.showTable(); remember(); },
    });
    for (const [value, text] of [['site', 'by site'], ['role', 'by role'],
      ['phase', 'by the phase of allocation'], ['size', 'by block size']])
      this.choice.append(element('option', {value, text}));
    const heads = this.table.tHead.rows[0].cells;
    COLUMNS.forEach((column, index) => {
      const button = element('button', {
        type: 'button', text: heads[index].textContent, onclick: () => this.sortBy(column),
      });
      heads[index].replaceChildren(button);
    });
  }

  sortBy(column) {
    const down = this.sort.column === column ? !this.sort.down : COLUMNS.indexOf(column) < 3;
    this.sort = {column, down};
    this.showTable();
    remember();
  }

  keyOf(group) {
    if (this.by === 'role') return String(group.role);
    if (this.by === 'phase') return group.phase;
    if (this.by === 'size') return String(group.detail ? 0 : group.size);
    return group.detail === 3 ? `small ${group.role}`
      : `${group.role}\n${group.phase}\n${group.site}`;
  }

  nameOf(group) {
    if (this.by === 'role') return data.roles[group.role];
    if (this.by === 'phase') return group.phase || 'no phase';
    if (this.by === 'size')
      return group.detail ? 'blocks of several sizes' : `${formatCount(group.size)} B`;
    return group.detail === 3 ? 'small ones together' : group.site;
  }

  rows() {
    const rows = new Map();
    this.model.groups.forEach((group, index) => {
      const bytes = this.state.bytes[index];
      if (!bytes || (this.chosen && !this.chosen[index])) return;
      const key = this.keyOf(group);
      const row = rows.get(key) ||
        {site: this.nameOf(group), roles: new Set(), phases: new Set(), bytes: 0, blocks: 0};
      row.roles.add(data.roles[group.role]);
      row.phases.add(group.phase);
      row.bytes += bytes;
      row.blocks += this.state.blocks[index];
      rows.set(key, row);
    });
    for (const row of rows.values()) {
      row.role = row.roles.size > 1 ? 'several' : [...row.roles][0];
      row.phase = row.phases.size > 1 ? 'several phases' : [...row.phases][0];
      row.share = row.bytes;
    }
    return [...rows.values()];
  }

  showTable() {
    const {column, down} = this.sort;
    const sign = down ? -1 : 1;
    const rows = this.rows();
    const total = this.model.totals[this.at];
    rows.sort((a, b) => {
      const order = typeof a[column] === 'number' ? a[column] - b[column]
        : a[column] < b[column] ? -1 : a[column] > b[column] ? 1 : 0;
      return sign * order || b.bytes - a.bytes || (a.site < b.site ? -1 : 1);
    });
    this.table.tBodies[0].replaceChildren(...rows.map((row) => tableRow(row, total)));
    const sum = {bytes: 0, blocks: 0};
    for (const row of rows) {
      sum.bytes += row.bytes;
      sum.blocks += row.blocks;
    }
    const foot = this.table.tFoot || this.table.createTFoot();
    foot.replaceChildren(tableRow({...sum, role: '', phase: '', site:
      this.chosen ? `found by the search, of ${formatBytes(total)}` : 'in total'}, total));
    markSorted(this.table.tHead.rows[0].cells, COLUMNS.indexOf(column), down);
    this.choice.value = this.by;
    this.caption.replaceChildren('Live blocks ', this.choice);
    showWholeRows(this.table);
    search.tell(this, sum);
  }
}

function tableRow(row, total) {
  const number = (text, value) => element('td', {class: 'number', text, 'data-v': value});
  return element('tr', {},
    element('td', {
      class: 'number', text: formatBytes(row.bytes), 'data-v': row.bytes,
      title: `${formatCount(row.bytes)} B`,
    }),
    number(formatShare(row.bytes, total), row.bytes), number(formatCount(row.blocks), row.blocks),
    element('td', {text: row.role}), element('td', {text: row.phase}),
    element('td', {class: 'site', text: row.site}));
}

/* The foot is always visible, and would cover half of a row. */
function showWholeRows(table) {
  const box = table.parentElement;
  box.style.maxHeight = '';
  if (box.scrollHeight <= box.clientHeight) return;
  const top = box.getBoundingClientRect().top + box.clientTop - box.scrollTop;
  const foot = table.tFoot.getBoundingClientRect().height;
  const bottoms = [...table.tBodies[0].rows].map((row) => row.getBoundingClientRect().bottom - top);
  const last = bottoms.filter((bottom) => bottom + foot <= box.clientHeight).pop();
  if (last) box.style.maxHeight = `${last + foot + box.offsetHeight - box.clientHeight}px`;
}

/* ---- single blocks -------------------------------------------------------- */

/* A row of a device's `blocks`: the facts about a block that has a key in charts. */
class Block {
  constructor(row, model) {
    const [key, bytes, requested, birth, endEvent, end, role, where, site, operation, node] = row;
    const [address, event] = key.split('.');
    Object.assign(this, {key, bytes, requested, birth, endEvent, end, role, node, model});
    this.address = BigInt(`0x${address}`);
    this.event = Number(event);
    this.where = model.strings[where];
    this.site = model.strings[site];
    this.operation = operation < 0 ? '' : model.strings[operation];
  }

  holds(address) {
    return address >= this.address && address < this.address + BigInt(this.bytes);
  }

  isOlder() {
    return this.birth < 0;
  }

  title() {
    return `${formatBytes(this.bytes)}, ${data.roles[this.role]}, ${this.site}`;
  }

  allocated() {
    if (this.isOlder()) return this.where;
    return `${this.where ? `${this.where}, ` : ''}at ${formatWhen(this.birth, this.event)}`;
  }

  freed() {
    if (this.endEvent < 0) return 'never: still allocated at the end';
    const life = this.isOlder() ? `at least ${formatDuration(this.end)}`
      : `after ${formatDuration(this.end - this.birth)}`;
    return `at ${formatWhen(this.end, this.endEvent)}${data.end ? `, ${life}` : ''}`;
  }

  addresses() {
    const hex = (address) => `0x${address.toString(16)}`;
    return `${hex(this.address)} to ${hex(this.address + BigInt(this.bytes))}`;
  }

  /* Innermost frame first. */
  stack() {
    return this.node < 0 ? [] : this.model.pathOf(this.node).reverse()
      .map((node) => this.model.nodeName(node));
  }
}

/* Facts about the clicked shape, below its chart. */
class Panel {
  constructor() {
    this.box = element('div', {class: 'picked', 'aria-live': 'polite'});
    this.clear();
  }

  clear() {
    this.box.hidden = true;
    this.box.replaceChildren();
  }

  show(title, ...parts) {
    const close = element('button', {
      type: 'button', text: 'close', onclick: () => { unpick(); remember(); },
    });
    this.box.replaceChildren(element('div', {class: 'bar'}, element('strong', {text: title}), close),
      ...parts);
    this.box.hidden = false;
  }

  showLines(lines) {
    this.show(lines[0], ...lines.slice(1).map((text) => element('p', {text})));
  }

  showStack(title, frames, note) {
    const list = frames.map((text) => element('li', {text}));
    this.show(title, element('p', {class: 'small', text: note}),
      element('ol', {class: 'stack'}, ...list));
  }

  showBlock(block) {
    const exact = `${formatCount(block.bytes)} B` +
      (block.requested === block.bytes ? '' : `, requested ${formatCount(block.requested)} B`);
    const facts = [['size', exact], ['role', data.roles[block.role]], ['site', block.site],
      ['operation', block.operation], ['allocated', block.allocated()], ['freed', block.freed()],
      ['addresses', block.addresses()]].filter(([, text]) => text);
    const device = data.devices.length > 1 ? ` --device ${block.model.source.device}` : '';
    const command = commandCode(`${data.live} --at ${block.event}${device}`);
    const frames = block.stack().map((text) => element('li', {text}));
    this.show(block.title(),
      element('dl', {}, ...facts.flatMap(([name, text]) =>
        [element('dt', {text: name}), element('dd', {text})])),
      frames.length ? element('ol', {class: 'stack'}, ...frames)
        : element('p', {class: 'small', text: 'no stack recorded'}),
      element('p', {}, block.isOlder() ? 'alive when the history begins: '
        : 'alive when it was allocated: ', command, copyButton(command)));
  }
}

/* A chart that can be enlarged, moved and clicked. */
class Picture {
  constructor(figure, blocks) {
    this.figure = figure;
    this.chart = figure.dataset.chart;
    this.blocks = blocks;
    this.svg = figure.querySelector('svg');
    this.whole = this.svg.viewBox.baseVal;
    this.whole = {width: this.whole.width, height: this.whole.height};
    this.panel = new Panel();
    this.nameBlocks();
    const button = (text, label, onclick) =>
      element('button', {type: 'button', text, 'aria-label': label, onclick});
    figure.before(element('div', {class: 'chart-bar'},
      element('span', {class: 'small', text: this.hint()}),
      button('+', 'enlarge', () => this.zoom(0.5)), button('−', 'reduce', () => this.zoom(2)),
      button('all', 'all of the chart', () => this.lookAt(0, 0, this.whole.width))));
    figure.after(this.panel.box);
    this.lookAt(0, 0, this.whole.width);
    this.listen();
  }

  /* Blocks of the address map are on top of the segments, whose titles the pointer would show. */
  nameBlocks() {
    for (const shape of this.svg.querySelectorAll('[data-key]')) {
      const block = this.blocks.get(shape.dataset.key);
      if (!block || shape.querySelector('title')) continue;
      const title = drawn('title', {});
      title.textContent = block.title();
      shape.append(title);
    }
  }

  hint() {
    const what = this.chart === 'flamechart' ? 'a call to see its callers'
      : this.blocks.size ? 'a block to see its stack'
        : this.chart === 'address' ? 'a segment to see its size and address'
          : 'a block to see its size';
    return `Click ${what}. To zoom in, double-click, press + or turn the wheel with Ctrl; drag to move.`;
  }

  lookAt(x, y, width) {
    const least = this.whole.width / 64;
    this.width = Math.max(least, Math.min(width, this.whole.width));
    this.height = this.width * this.whole.height / this.whole.width;
    this.x = Math.max(0, Math.min(x, this.whole.width - this.width));
    this.y = Math.max(0, Math.min(y, this.whole.height - this.height));
    this.svg.setAttribute('viewBox', `${this.x} ${this.y} ${this.width} ${this.height}`);
    this.svg.classList.toggle('mt-enlarged', this.isEnlarged());
  }

  isEnlarged() {
    return this.width < this.whole.width;
  }

  /* Zooms around a point of the chart, or its middle. */
  zoom(factor, point) {
    const {x, y} = point || {x: this.x + this.width / 2, y: this.y + this.height / 2};
    const width = Math.min(this.width * factor, this.whole.width);
    const share = width / this.width;
    this.lookAt(x - (x - this.x) * share, y - (y - this.y) * share, width);
  }

  pointOf(event) {
    return new DOMPoint(event.clientX, event.clientY)
      .matrixTransform(this.svg.getScreenCTM().inverse());
  }

  listen() {
    let from = null, moved = false;
    this.svg.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 0.8 : 1.25, this.pointOf(event));
    }, {passive: false});
    this.svg.addEventListener('dblclick', (event) => this.zoom(0.5, this.pointOf(event)));
    this.svg.addEventListener('pointerdown', (event) => {
      from = event.button === 0 ? {x: event.clientX, y: event.clientY} : null;
      moved = false;
    });
    this.svg.addEventListener('pointermove', (event) => {
      if (!from) return;
      const dx = event.clientX - from.x, dy = event.clientY - from.y;
      if (!moved && Math.hypot(dx, dy) < 4) return;
      moved = true;
      if (!this.isEnlarged()) return;
      this.svg.setPointerCapture(event.pointerId);
      const scale = this.svg.getScreenCTM().a;
      this.lookAt(this.x - dx / scale, this.y - dy / scale, this.width);
      from = {x: event.clientX, y: event.clientY};
    });
    const end = () => { from = null; };
    this.svg.addEventListener('pointerup', end);
    this.svg.addEventListener('pointercancel', end);
    this.svg.addEventListener('click', (event) => { if (!moved) this.pick(event.target); });
  }

  pick(target) {
    const shape = target.closest('[data-key]') || target.closest('.t');
    unpick();
    if (!shape) return remember();
    const block = this.blocks.get(shape.dataset.key);
    if (block) {
      pickBlock(block, this);
    } else {
      shape.classList.add('mt-picked');
      this.showShape(shape);
    }
    remember();
  }

  /* Shows the title of a shape. */
  showShape(shape) {
    const title = shape.querySelector('title') || shape.closest('g').querySelector('title');
    const lines = title ? title.textContent.split('\n') : ['a block without a row in this page'];
    if (this.chart === 'flamechart') {
      this.panel.showStack(lines[0], this.callersOf(shape), 'called by, innermost first:');
      return;
    }
    const count = formatCount(this.blocks.size);
    if (this.chart === 'address')
      lines.push(`None of the ${count} blocks that have a row in this page lies here.`);
    this.panel.showLines(lines);
  }

  /* Cells of the rows above a cell of the flame chart, around its middle. */
  callersOf(cell) {
    const number = (shape, name) => Number(shape.getAttribute(name));
    const middle = number(cell, 'x') + number(cell, 'width') / 2;
    return [...this.svg.querySelectorAll('rect.t')].filter((other) =>
      number(other, 'height') === number(cell, 'height') && number(other, 'y') < number(cell, 'y') &&
      number(other, 'x') <= middle && middle <= number(other, 'x') + number(other, 'width'))
      .sort((a, b) => number(b, 'y') - number(a, 'y'))
      .map((other) => other.querySelector('title').textContent);
  }

  shapesOf(block) {
    return [...this.svg.querySelectorAll('[data-key]')]
      .filter((shape) => shape.dataset.key === block.key);
  }
}

let picked = null; // the block that a panel shows

function unpick() {
  picked = null;
  for (const shape of document.querySelectorAll('.mt-picked')) shape.classList.remove('mt-picked');
  for (const picture of pictures) picture.panel.clear();
  search.panel.clear();
}

/* Marks a block in all charts. Shows its facts below `picture`, or below the bar. */
function pickBlock(block, picture) {
  picked = block;
  for (const each of pictures) {
    if (each.blocks.get(block.key) === block)
      for (const shape of each.shapesOf(block)) shape.classList.add('mt-picked');
  }
  (picture ? picture.panel : search.panel).showBlock(block);
}

/* ---- search ------------------------------------------------------------- */

const search = {
  pattern: null,
  text: '',
  box: element('input', {
    type: 'search', placeholder: 'search: a regex  ( / )', spellcheck: 'false',
    'aria-label': 'search frames and sites, as a regular expression, or an address',
    title: 'a regular expression for frames, sites and roles; or an address: 0x7f3a00000000',
  }),
  hits: element('span', {class: 'hits', 'aria-live': 'polite'}),
  list: element('ul', {class: 'found'}), // blocks that held an address
  panel: new Panel(),

  set(text) {
    const address = /^\s*0x([0-9a-f]{1,16})\s*$/i.exec(text);
    this.text = text;
    this.pattern = null;
    this.list.replaceChildren();
    this.hits.textContent = '';
    this.box.classList.remove('wrong');
    if (address) {
      this.findAddress(BigInt(`0x${address[1]}`));
    } else if (text) {
      try {
        this.pattern = new RegExp(text, 'i');
      } catch (error) {
        this.box.classList.add('wrong');
        this.hits.textContent = 'not a regular expression';
      }
    }
    if (this.box.value !== text) this.box.value = text;
    for (const explorer of explorers) explorer.show();
  },

  /* Lists blocks that held the address, in the order of their allocation. */
  findAddress(address) {
    const all = blockMaps.flatMap((blocks) => [...blocks.values()]);
    const found = all.filter((block) => block.holds(address))
      .sort((a, b) => a.birth - b.birth || a.event - b.event);
    this.hits.textContent = `${formatCount(found.length)} of the ${formatCount(all.length)} ` +
      'largest blocks held that address' +
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
    this.hits.textContent = `${formatBytes(sum.bytes)} (${formatCount(sum.bytes)} B) in ` +
      `${formatCount(sum.blocks)} blocks, ${formatShare(sum.bytes, total)}`;
    this.hits.dataset.bytes = sum.bytes;
  },
};

/* ---- the address --------------------------------------------------------- */

let restoring = false;

/* #b=DEVICE.KEY a block; r0=FIRST-LAST columns of device 0, z0=node, g0=rows, s0=sort; q=search,
 * t=theme; s.TABLE=sort of a table that does not change. */
function remember() {
  if (restoring) return;
  const parts = new URLSearchParams();
  const order = (column, down) => `${column}${down ? '-' : '+'}`;
  for (const explorer of explorers) {
    const n = explorer.index;
    if (!explorer.isWhole()) parts.set(`r${n}`, `${explorer.first}-${explorer.last}`);
    if (explorer.focus >= 0) parts.set(`z${n}`, explorer.focus);
    if (explorer.by !== 'site') parts.set(`g${n}`, explorer.by);
    const {column, down} = explorer.sort;
    if (column !== 'bytes' || !down) parts.set(`s${n}`, order(column, down));
  }
  for (const [id, {column, down}] of sortedTables) parts.set(`s.${id}`, order(column, down));
  if (search.text) parts.set('q', search.text);
  if (chosenTheme()) parts.set('t', chosenTheme());
  if (picked) parts.set('b', `${picked.model.source.device}.${picked.key}`);
  const text = parts.toString();
  history.replaceState(null, '', text ? `#${text}` : location.pathname + location.search);
}

function restoreExplorer(explorer, parts) {
  const n = explorer.index;
  const range = /^(\d+)-(\d+)$/.exec(parts.get(`r${n}`) || '');
  const node = Number(parts.get(`z${n}`) || -1);
  const by = parts.get(`g${n}`);
  const sort = /^(\w+)([-+ ])$/.exec(parts.get(`s${n}`) || '');
  explorer.focus = Number.isInteger(node) && node < explorer.model.parents.length ? node : -1;
  explorer.by = [...explorer.choice.options].some((each) => each.value === by) ? by : 'site';
  explorer.sort = sort && COLUMNS.includes(sort[1])
    ? {column: sort[1], down: sort[2] === '-'} : {column: 'bytes', down: true};
  explorer.first = 0;
  explorer.last = explorer.model.columnCount - 1;
  if (range) {
    explorer.first = Math.min(Number(range[1]), explorer.last);
    explorer.last = Math.min(Math.max(explorer.first, Number(range[2])), explorer.last);
  }
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
  for (const table of document.querySelectorAll('table.sortable')) {
    const sort = /^(\d+)([-+ ])$/.exec(parts.get(`s.${table.id}`) || '');
    if (sort && Number(sort[1]) < table.tHead.rows[0].cells.length)
      sortTable(table, Number(sort[1]), sort[2] === '-');
  }
  search.set(parts.get('q') || '');
  restoreBlock(parts.get('b') || '');
  restoring = false;
}

/* ---- keys ----------------------------------------------------------------- */

function resetAll() {
  search.set('');
  unpick();
  for (const picture of pictures) picture.lookAt(0, 0, picture.whole.width);
  for (const explorer of explorers) {
    explorer.focus = -1;
    explorer.select(0, explorer.model.columnCount - 1);
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
    ArrowUp: () => explorer && explorer.zoomOut(),
    ArrowDown: () => explorer && explorer.zoomIn(),
  };
  const isScroll = event.key.startsWith('Arrow') && !(explorer && isNear(explorer));
  if (!actions[event.key] || isScroll) return;
  event.preventDefault();
  actions[event.key]();
}

/* Arrow keys scroll the page, unless an explorer is visible or has the focus. */
function isNear(explorer) {
  const box = explorer.explore.getBoundingClientRect();
  return explorer.section.contains(document.activeElement) ||
    (box.top < innerHeight && box.bottom > 0);
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
  blockMaps.push(new Map(source.blocks.map((row) => [row[0], new Block(row, model)])));
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
  document.querySelector('main').prepend(search.list, search.panel.box);
}
tools.append(element('button', {
  type: 'button', text: 'light / dark', onclick: () => {
    setTheme(isDark() ? 'light' : 'dark');
    remember();
  },
}));
search.box.addEventListener('input', () => {
  search.set(search.box.value);
  remember();
});
for (const link of document.querySelectorAll('a[href^="#"]')) {
  link.addEventListener('click', (event) => { // the address keeps the view
    event.preventDefault();
    document.getElementById(link.hash.slice(1)).scrollIntoView();
  });
}
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
    explorer.showIcicle();
    showWholeRows(explorer.table);
  }), 100);
});
restore();
if (location.hash && !location.hash.includes('='))
  explorers.forEach((explorer) => explorer.show());
document.documentElement.dataset.ready = 'yes';
})();
