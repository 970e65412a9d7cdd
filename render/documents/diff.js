/* The page about two runs, A and B: both timelines on one axis with one selection, the differences
 * beside them, and one icicle of both call trees.
 *
 * The data (diff_html.c) have both histories, which model.js reads, and the rows of the comparison
 * at the instants that the command compared. Names come from traces, so they are only inserted as
 * text. The address of the page has the state of the view. */

const data = JSON.parse(document.getElementById('mt-data').textContent);
const LETTERS = ['A', 'B'];
const MAX_CHANGED_ROWS = 200;
const CHANGE_LEVELS = 8; // on each side of "the same"
const CELL_HEIGHT = 24;
const MAX_OVERLAPS = 40000; // pairs of places whose calls are compared

/* ---- one axis ------------------------------------------------------------ */

/* A run whose positions are on the axis of both. Knots stretch its own axis: steps begin at the
 * positions at which they begin in both runs, and the shorter step is followed by a gap. */
class RunModel extends Model {
  setAxis(byEvent) {
    this.knots = null;
    super.setAxis(byEvent);
    this.own = this.length;
  }

  align(knots, length) {
    this.knots = knots;
    this.x = this.x.map((x) => this.toCommon(x));
    this.length = length;
  }

  end() {
    return this.toCommon(this.own);
  }

  /* The beginnings of steps: number -> own position. */
  stepStarts() {
    const {steps} = this.source, starts = new Map();
    for (let at = 0; at < steps.length; at += 5)
      if (!starts.has(steps[at])) starts.set(steps[at], super.position(steps[at + 1], steps[at + 3]));
    return starts;
  }

  /* The last knot at or before a position, as its index. */
  knotAt(x, of) {
    let low = 0, high = this.knots.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.knots[middle][of] <= x) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  toCommon(own) {
    if (!this.knots) return own;
    const index = this.knotAt(own, 'own'), next = this.knots[index + 1];
    const x = this.knots[index].at + own - this.knots[index].own;
    return next ? Math.min(x, next.at) : x;
  }

  toOwn(x) {
    if (!this.knots) return Math.min(x, this.own);
    const index = this.knotAt(x, 'at'), next = this.knots[index + 1];
    const own = this.knots[index].own + Math.max(0, x - this.knots[index].at);
    return Math.min(own, next ? next.own : this.own);
  }

  position(t, event) {
    return this.toCommon(super.position(t, event));
  }

  valueAt(x) {
    return super.valueAt(this.toOwn(x));
  }
}

/* Knots of both runs for steps with equal numbers, in their order. */
function stepKnots(models) {
  const [a, b] = models.map((model) => model.stepStarts());
  const knots = models.map(() => [{own: 0, at: 0, name: ''}]);
  for (const [step, own] of a) {
    const last = knots.map((list) => list[list.length - 1]);
    const begins = [own, b.get(step)];
    if (begins.some((begin, i) => begin === undefined || begin < last[i].own)) continue;
    const at = last[0].at + Math.max(...begins.map((begin, i) => begin - last[i].own));
    begins.forEach((begin, i) => knots[i].push({own: begin, at, name: `step ${step}`}));
  }
  return knots;
}

/* ---- timelines ------------------------------------------------------------ */

/* What a timeline needs of its owner, for one of the two runs. */
class Side {
  constructor(comparison, index) {
    this.comparison = comparison;
    this.index = index;
    this.model = new RunModel(data.devices[index]);
    this.filter = comparison.filter;
    this.chosen = null;
    this.reset = () => comparison.reset();
    this.toggleFilter = (way, key) => comparison.toggleFilter(way, key);
    this.clearFilter = () => comparison.clearFilter();
    this.selectAll();
  }

  selectAll() {
    const {model} = this;
    this.first = 0;
    this.last = model.columnCount - 1;
    this.at = data.is_peak ? model.fullest(0, this.last) : model.columnOfEvent(data.at[this.index]);
  }

  /* Whether its instant is the one that the command compared. */
  isExact() {
    return this.model.event[this.at] === data.at[this.index];
  }

  isWhole() {
    return !this.comparison.isSelected;
  }

  setRange(first, last) {
    const most = this.model.columnCount - 1;
    this.first = Math.max(0, Math.min(first, most));
    this.last = Math.max(this.first, Math.min(last, most));
    this.at = this.model.fullest(this.first, this.last);
  }

  /* Columns from a position to another. */
  setPositions(from, to) {
    const {model} = this;
    this.setRange(model.columnAt(from), model.columnAt(Math.max(from, to - model.length * 1e-9)));
  }

  select(first, last) {
    this.comparison.select(this, first, last);
  }

  /* The name under which both runs have a group. */
  keyOf(group, way) {
    if (way === 'role') return data.roles[group.role];
    if (way === 'phase') return group.phase || 'no phase';
    if (group.detail === 3) return 'small ones together';
    return this.comparison.siteKey(this.index, group.phase, group.site);
  }
}

class LinkedTimeline extends Timeline {
  constructor(side, figure) {
    super(side, figure);
    this.hint = this.box.querySelector('.hint');
    this.canvas.setAttribute('aria-label',
      `${LETTERS[side.index]}: ${this.canvas.getAttribute('aria-label')}`);
  }

  makeBar() {
    const {owner} = this, {comparison, index} = owner;
    const peak = formatBytes(owner.model.source.peak[2]);
    const name = element('p', {class: 'run'}, element('strong', {text: LETTERS[index]}),
      ` ${data.names[index]} `, element('span', {class: 'small', text: `peak ${peak}`}));
    if (index) return element('div', {class: 'chart-bar'}, name);
    const button = (text, label, act) => element('button', {
      type: 'button', text, title: label, 'aria-label': label,
      onclick: () => { act(); remember(); },
    });
    const axis = element('select', {
      'aria-label': 'the axis of both', class: 'axis',
      onchange: () => { comparison.setAxis(axis.value); remember(); },
    });
    for (const each of comparison.axes) {
      const text = {time: 'by time since the start', step: 'by step', event: 'by event'}[each];
      axis.append(element('option', {value: each, text}));
    }
    this.axis = axis;
    return element('div', {class: 'chart-bar'}, name,
      button('+', 'zoom in', () => this.zoom(0.5)), button('−', 'zoom out', () => this.zoom(2)),
      button('all', 'show all', () => this.fit()),
      button('peaks', 'compare the peaks', () => owner.reset()), axis);
  }

  preferredHeight() {
    return Math.max(230, Math.min(300, innerHeight * 0.32));
  }

  paint() {
    TimelineView.prototype.paint.call(this);
    this.showLegend();
    if (this.axis) this.axis.value = this.owner.comparison.axis;
  }

  /* One legend, of all roles of both runs. */
  showLegend() {
    const {comparison, index} = this.owner, chosen = comparison.filter.get('role');
    this.legend.hidden = index > 0;
    const state = `${chosen ? [...chosen] : ''} ${comparison.filter.size}`;
    if (index || this.legendState === state) return;
    this.legendState = state;
    const roles = data.stack.filter((role) => comparison.sides.some(({model}) =>
      model.groups.some((group) => group.role === role))).reverse();
    this.legend.replaceChildren(...roles.map((role) => element('button', {
      type: 'button', class: 'key', title: `show only ${data.roles[role]}`,
      'aria-pressed': String(Boolean(chosen && chosen.has(data.roles[role]))),
      onclick: () => comparison.toggleFilter('role', data.roles[role]),
    }, element('i', {class: `role${role}`}), data.roles[role])));
    if (comparison.filter.size)
      this.legend.append(element('button', {
        type: 'button', class: 'key all', text: 'show all', onclick: () => comparison.clearFilter(),
      }));
  }

  /* ---- both move ---- */

  look(from, to) {
    super.look(from, to);
    const {twin} = this;
    if (!twin || (twin.from === this.from && twin.to === this.to)) return;
    Object.assign(twin, {from: this.from, to: this.to});
    twin.draw();
  }

  hit(point) {
    const isBeyond = this.strips && point.y < this.plot.y + this.plot.height + ROWS.ticks &&
      this.positionOf(point.x) > this.model.end();
    return isBeyond ? null : super.hit(point);
  }

  pointAt(point) {
    super.pointAt(point);
    const hit = point && this.hit(point);
    const layer = hit && hit.strip && this.divided.layers[hit.layer];
    this.twin.follow(hit && hit.strip ? point : null, hit && hit.strip, layer ? layer.key : '');
  }

  /* The pointer is at `other`, a strip of the other timeline, or nowhere. */
  follow(point, other, key) {
    const hit = point && this.strips && this.hit({x: point.x, y: this.plot.y});
    this.pointer = hit ? {x: point.x, y: this.plot.y} : null;
    this.tip.hidden = !this.pointer;
    if (hit)
      this.showTip({strip: hit.strip, layer: -1, key, from: this.twin, other}, {x: point.x, y: 20});
    this.draw();
  }

  /* The other timeline adds the same layer, and the difference of what both hold there. */
  stripLines(hit) {
    const lines = super.stripLines(hit), {from} = hit;
    if (!from) return lines;
    if (hit.key)
      lines.push(element('strong', {text: `${formatBytes(this.bytesOf(hit.strip, hit.key))} ${hit.key}`}));
    const bytes = [from.model.totals[hit.other.column], this.model.totals[hit.strip.column]];
    if (this.owner.index === 0) bytes.reverse();
    lines.push(element('div', {class: 'small', text: `${changeText(changeOf(bytes))} from A to B here`}));
    return lines;
  }

  /* Bytes of all layers of a name in a strip. */
  bytesOf(strip, key) {
    return this.divided.layers.reduce((sum, layer, at) => sum +
      (layer.key === key ? strip.tops[at] - (at ? strip.tops[at - 1] : 0) : 0), 0);
  }

  /* A click on a step or a phase selects the one of the other run that has its name and begins
   * closest to it. */
  clicked(point) {
    const hit = this.hit(point);
    if (!hit || !hit.range) return super.clicked(point);
    const {owner} = this, {comparison} = owner;
    const lists = [this.twin.stepRanges(), this.twin.phaseRanges()];
    const same = lists.flat().filter((each) => each.name === hit.range.name)
      .sort((a, b) => Math.abs(a.from - hit.range.from) - Math.abs(b.from - hit.range.from))[0];
    comparison.isSelected = true;
    owner.setPositions(hit.range.from, hit.range.to);
    this.twin.owner.setPositions((same || hit.range).from, (same || hit.range).to);
    comparison.show();
  }

  paintTicks() {
    const {model, plot} = this;
    if (!model.knots) return super.paintTicks();
    const step = Math.max(model.byEvent ? 1 : 0,
      tickStep((this.to - this.from) / Math.max(plot.width / 110, 2)));
    const words = (offset) => data.end ? `+${formatDuration(offset)}` : `+${formatCount(offset)}`;
    let last = -Infinity;
    model.knots.forEach(({at, name}, i) => {
      const end = i + 1 < model.knots.length ? model.knots[i + 1].at : model.length;
      const hidden = Math.max(0, Math.ceil((this.from - at) / step));
      for (let x = at + hidden * step; x < end && x <= this.to; x += step) {
        const pixel = this.pixelOf(x);
        const room = x === at ? 48 : 64;
        if (x < this.from || pixel - last < room || (x > at && this.pixelOf(end) - pixel < 64)) continue;
        if (x === at && !name) continue;
        last = pixel;
        this.tick(x, x === at ? name : words(Number((x - at).toPrecision(6))),
          plot.y + plot.height + 15);
      }
    });
  }
}

/* ---- the union of both call trees ------------------------------------------ */

/* Function, file and line of a frame. Names of calls without a stack end with a place. */
function partsOf(model, [name, place]) {
  const words = model.strings[name] + (place < 0 ? '' : ` ${model.strings[place]}`);
  const found = /^(.*) (\S+):(\d+)$/s.exec(words);
  const [call, file, line] = found ? found.slice(1) : [words, '', 0];
  return {call: call.split('.').pop(), file: file.split('/').pop(), line: Number(line)};
}

/* A node by its function and file, and its line. Frames of both runs match by the first two, as
 * sites do (diff.c). Files that only one run has may be one file with a new name. */
function placeOf(model, node, otherFiles) {
  const {call, file, line} = partsOf(model, model.source.frames[model.frames[node]]);
  return {node, key: `${call}\n${otherFiles.has(file) ? file : ''}`, line};
}

/* The share of what is directly below one of two places that is below both. */
function overlapOf(a, b) {
  const both = [...a].filter((each) => b.has(each)).length;
  return both / Math.max(1, a.size + b.size - both);
}

/* Pairs places of one key in the order of their lines, as mt_diff_match_places does; of all such
 * alignments, one with the most equal lines, and the most equal calls and roles below. */
function alignPlaces(a, b) {
  const width = b.length + 1, best = new Float64Array((a.length + 1) * width), pairs = [];
  const isLarge = a.length * b.length > MAX_OVERLAPS;
  const likeness = (i, j) => 1 + (a[i].line === b[j].line ? 2 : 0) +
    (isLarge ? 0 : Math.round(64 * overlapOf(a[i].below, b[j].below)) / 16);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--)
      best[i * width + j] = Math.max(best[(i + 1) * width + j + 1] + likeness(i, j),
        best[(i + 1) * width + j], best[i * width + j + 1]);
  }
  let i = 0, j = 0;
  while (i < a.length && j < b.length) {
    const here = best[i * width + j];
    if (here === best[(i + 1) * width + j + 1] + likeness(i, j)) pairs.push([a[i++], b[j++]]);
    else if (here === best[(i + 1) * width + j]) pairs.push([a[i++], null]);
    else pairs.push([null, b[j++]]);
  }
  for (; i < a.length; i++) pairs.push([a[i], null]);
  for (; j < b.length; j++) pairs.push([null, b[j]]);
  return pairs;
}

/* The nodes of both trees. A parent has a smaller number than its children. If one run has a frame
 * around calls of both, such as another entry of the program, these calls are below that frame. */
class UnionTree {
  constructor(models) {
    this.models = models;
    this.parents = [];
    this.pairs = []; // nodes of A and B, -1 = none
    this.numbers = models.map((model) => new Int32Array(model.parents.length));
    const files = models.map((model) =>
      new Set(model.source.frames.map((frame) => partsOf(model, frame).file)));
    this.children = models.map((model, side) => this.childrenOf(model, files[1 - side]));
    const waiting = [{lists: [0, 1].map((side) => this.below(side, -1)), number: -1}];
    for (let at = 0; at < waiting.length; at++) {
      for (const {both, lists} of this.match(waiting[at].lists))
        waiting.push({lists, number: this.add(waiting[at].number, both)});
    }
    this.views = models.map((model, side) => ({ // as growTree reads a model
      parents: this.parents, nodeName: (node) => this.nameOf(node),
      groups: model.groups.map((group) => ({
        ...group, node: group.node < 0 ? -1 : this.numbers[side][group.node],
      })),
    }));
  }

  childrenOf(model, otherFiles) {
    const children = new Map();
    const places = model.parents.map((_, node) => placeOf(model, node, otherFiles));
    for (const place of places) place.below = new Set();
    model.parents.forEach((parent, node) => {
      if (!children.has(parent)) children.set(parent, []);
      children.get(parent).push(places[node]);
      if (parent >= 0) places[parent].below.add(places[node].key);
    });
    for (const group of model.groups)
      if (group.node >= 0) places[group.node].below.add(data.roles[group.role]);
    return children;
  }

  below(side, node) {
    return this.children[side].get(node) || [];
  }

  /* Pairs of places, and what is below each pair. */
  match(lists) {
    const keys = new Map();
    lists.forEach((list, side) => list.forEach((place) => {
      if (!keys.has(place.key)) keys.set(place.key, [[], []]);
      keys.get(place.key)[side].push(place);
    }));
    const pairs = [...keys.values()].flatMap(([a, b]) => {
      for (const list of [a, b]) list.sort((x, y) => x.line - y.line);
      return alignPlaces(a, b);
    });
    const alone = [0, 1].map((side) => pairs.filter((both) => !both[1 - side]).map((both) => both[side]));
    const taken = new Set(), made = [];
    for (const both of pairs) {
      const side = both[0] ? 0 : 1;
      if (taken.has(both[side])) continue;
      const inner = both[0] && both[1] ? null
        : this.innerOf(side, both[side], alone[1 - side].filter((place) => !taken.has(place)));
      if (inner) taken.add(inner);
      const below = both.map((place, i) => (place ? this.below(i, place.node) : inner ? [inner] : []));
      made.push({both, lists: below});
    }
    return made.filter(({both}) => !both.some((place) => place && taken.has(place)));
  }

  /* The call of the other run that a frame is around: both are the only path to it. */
  innerOf(side, place, others) {
    let list = this.below(side, place.node);
    while (list.length === 1) {
      const inner = others.find((other) => other.key === list[0].key);
      if (inner) return inner;
      list = this.below(side, list[0].node);
    }
    return null;
  }

  add(parent, both) {
    const number = this.parents.length, pair = both.map((place) => (place ? place.node : -1));
    this.parents.push(parent);
    this.pairs.push(pair);
    pair.forEach((node, side) => { if (node >= 0) this.numbers[side][node] = number; });
    return number;
  }

  /* The run that alone has a frame around calls of both; -1: none. */
  onlyIn(number) {
    return this.pairs[number].indexOf(-1) < 0 ? -1 : this.pairs[number].indexOf(-1) ? 0 : 1;
  }

  /* The name of B, or of A if only A has the node. */
  nameOf(number) {
    const [a, b] = this.pairs[number];
    return b >= 0 ? this.models[1].nodeName(b) : this.models[0].nodeName(a);
  }

  /* Its name in A, if the line moved. */
  oldName(number) {
    const [a, b] = this.pairs[number];
    const old = a >= 0 && b >= 0 ? this.models[0].nodeName(a) : '';
    return old === this.nameOf(number) ? '' : old;
  }

  pathOf(number) {
    const path = [];
    for (let at = number; at >= 0; at = this.parents[at]) path.unshift(at);
    return path;
  }

  /* Cells with the bytes of both states. The width of a block is the larger of both; of a call, the
   * sum of what is below it. */
  grow(states, chosen) {
    const trees = this.views.map((view, side) => growTree(view, states[side], chosen[side]));
    const cells = new Map(), children = new Map();
    const childOf = (parent, key, make) => {
      const id = `${parent} ${key}`;
      if (!cells.has(id)) {
        cells.set(id, {bytes: [0, 0], blocks: [0, 0], found: 0, width: 0, ...make()});
        if (!children.has(parent)) children.set(parent, []);
        children.get(parent).push(cells.get(id));
      }
      return cells.get(id);
    };
    trees.forEach((tree, side) => {
      for (const [parent, list] of tree.children) {
        for (const child of list) {
          const cell = child.node >= 0
            ? childOf(parent, child.node, () => ({node: child.node, name: child.name}))
            : childOf(parent, `role ${child.group.role}`, () => ({
              node: -1, role: child.group.role, name: data.roles[child.group.role]}));
          cell.bytes[side] += child.bytes;
          cell.blocks[side] += child.blocks || 0;
          cell.found += child.found;
        }
      }
    });
    this.addWidths(cells, children);
    return children;
  }

  addWidths(cells, children) {
    for (const cell of cells.values()) if (cell.node < 0) cell.width = Math.max(...cell.bytes);
    for (let node = this.parents.length - 1; node >= 0; node--) {
      const cell = cells.get(`${this.parents[node]} ${node}`);
      if (cell)
        cell.width = (children.get(node) || []).reduce((sum, child) => sum + child.width, 0);
    }
    for (const list of children.values())
      list.sort((x, y) => y.width - x.width || (x.name < y.name ? -1 : 1));
  }
}

const changeOf = ([a, b]) => b - a;
const changeText = (change) => (change ? formatChange(change) : '±0');

/* "12.0 MiB (12,582,912 B)" of A and B, and the change. */
function bothText(bytes) {
  const exact = (value) => `${formatBytes(value)} (${formatCount(value)} B)`;
  const change = changeOf(bytes);
  return `A ${exact(bytes[0])}\nB ${exact(bytes[1])}\nchange ${formatChange(change)} ` +
    `(${change < 0 ? '−' : change ? '+' : ''}${formatCount(Math.abs(change))} B)`;
}

/* The icicle of both trees, colored by the change. */
class UnionIcicle {
  constructor(comparison, section) {
    this.comparison = comparison;
    this.tree = new UnionTree(comparison.sides.map((side) => side.model));
    this.focus = -1;
    this.when = element('p', {class: 'when'});
    this.legend = element('div', {class: 'scale', 'aria-hidden': 'true'});
    this.crumbs = element('nav', {class: 'crumbs', 'aria-label': 'zoom of the icicle'});
    this.cells = element('div', {
      class: 'icicle', tabindex: '0', role: 'group', 'aria-label': 'what changed, by call stack',
    });
    this.dropped = element('p', {class: 'small'});
    section.append(element('h2', {text: 'What changed, by call stack'}),
      element('div', {class: 'explore'}, this.when, this.legend, this.crumbs, this.cells,
        this.dropped));
    this.cells.addEventListener('click', (event) => {
      const cell = event.target.closest('[data-node]');
      if (cell) this.zoom(Number(cell.dataset.node));
    });
  }

  zoom(node) {
    this.focus = node;
    this.draw();
    remember();
  }

  show() {
    const {sides, filter} = this.comparison;
    this.isFiltered = filter.size > 0;
    this.children = this.tree.grow(sides.map((side) => side.model.stateAt(side.at)),
      sides.map((side) => side.chosen));
    this.most = Math.abs(changeOf(sides.map((side) => side.model.totals[side.at])));
    for (const list of this.children.values())
      for (const cell of list) this.most = Math.max(this.most, Math.abs(changeOf(cell.bytes)));
    this.draw();
  }

  /* 8 = the same; more: up to 16; less: down to 0. */
  levelOf(change) {
    if (!change || !this.most) return CHANGE_LEVELS;
    const size = Math.ceil(CHANGE_LEVELS * Math.sqrt(Math.abs(change) / this.most));
    return CHANGE_LEVELS + Math.sign(change) * Math.max(2, Math.min(size, CHANGE_LEVELS));
  }

  draw() {
    const {sides} = this.comparison;
    const path = this.tree.pathOf(this.focus);
    const root = {node: -1, name: 'all', bytes: sides.map((side) => side.model.totals[side.at]),
      found: 1, width: (this.children.get(-1) || []).reduce((sum, cell) => sum + cell.width, 0)};
    const shown = path.length ? this.cellOf(this.focus) : root;
    this.width = this.cells.clientWidth || 1000;
    this.narrow = {cells: 0, change: 0};
    this.depth = path.length;
    this.cells.replaceChildren();
    this.addCell(root, 0, 1, 0, path.length > 0);
    path.forEach((node, row) => this.addCell(this.cellOf(node), 0, 1, row + 1, node !== this.focus));
    if (shown.width) this.addChildren(shown.width, path.length + 1);
    this.cells.style.height = `${(this.depth + 1) * CELL_HEIGHT}px`;
    this.showWords(path, root);
  }

  cellOf(node) {
    return (this.children.get(this.tree.parents[node]) || []).find((cell) => cell.node === node) ||
      {node, name: this.tree.nameOf(node), bytes: [0, 0], found: 0, width: 0};
  }

  /* Cells below the focus. Not recursive, because a file determines the depth of stacks. */
  addChildren(shown, row) {
    const waiting = [{node: this.focus, offset: 0, row}];
    const least = Math.max(0.0005, 1.5 / this.width);
    while (waiting.length) {
      const parent = waiting.pop();
      let left = parent.offset;
      for (const cell of this.children.get(parent.node) || []) {
        if (cell.width / shown < least) {
          this.narrow.cells++;
          this.narrow.change += changeOf(cell.bytes);
        } else {
          this.addCell(cell, left / shown, cell.width / shown, parent.row, false);
          if (cell.node >= 0) waiting.push({node: cell.node, offset: left, row: parent.row + 1});
        }
        left += cell.width;
      }
    }
  }

  addCell(cell, left, width, row, isAbove) {
    const isLeaf = cell.node < 0 && cell.role !== undefined;
    const change = changeOf(cell.bytes), pixels = width * this.width;
    const old = cell.node >= 0 ? this.tree.oldName(cell.node) : '';
    const only = cell.node >= 0 && cell.bytes[0] && cell.bytes[1] ? this.tree.onlyIn(cell.node) : -1;
    const blocks = isLeaf ? `\n${formatCount(cell.blocks[0])} blocks in A, ` +
      `${formatCount(cell.blocks[1])} in B` : '';
    const isDim = this.isFiltered && !cell.found;
    const made = element('div', {
      class: `cell change${this.levelOf(change)}${isAbove ? ' above' : ''}${isDim ? ' dim' : ''}`,
      title: `${cell.name}${old ? `\nin A: ${old}` : ''}` +
        `${only < 0 ? '' : `\na call of ${LETTERS[only]} around calls of both`}\n${bothText(cell.bytes)}${blocks}`,
      'data-a': cell.bytes[0], 'data-b': cell.bytes[1],
      style: {left: `${100 * left}%`, width: `${100 * width}%`, top: `${row * CELL_HEIGHT}px`},
    });
    if (isLeaf) made.dataset.role = cell.role;
    else made.dataset.node = cell.node;
    const words = changeText(change);
    if (isLeaf) {
      const text = [`${cell.name} ${words}`, words]
        .find((each) => this.textWidth(each) <= pixels - 9);
      if (text) made.append(element('span', {class: 'name', text}));
    } else if (pixels > 26) {
      made.append(element('span', {class: 'name', text: cell.name}));
      if (pixels > 150) made.append(element('span', {class: 'size', text: words}));
    }
    this.depth = Math.max(this.depth, row);
    this.cells.append(made);
  }

  textWidth(text) {
    this.pen = this.pen || document.createElement('canvas').getContext('2d');
    this.pen.font = `12.5px ${getComputedStyle(this.cells).fontFamily}`;
    return this.pen.measureText(text).width;
  }

  showWords(path, root) {
    const {sides} = this.comparison;
    this.when.replaceChildren(
      element('strong', {text: `${changeText(changeOf(root.bytes))} from A to B`}),
      ` ${this.comparison.instantWords()}: ` +
      sides.map(({model, at}, side) => `${LETTERS[side]} ${formatBytes(model.totals[at])} at ` +
        formatWhen(model.t[at], model.event[at])).join(', ') +
      '. A cell is as wide as the larger of both; a call, as what is below it. Click to zoom.');
    this.crumbs.replaceChildren(...[-1, ...path].map((node) => element('button', {
      type: 'button', text: node < 0 ? 'all' : this.tree.nameOf(node),
      onclick: () => this.zoom(node),
    })));
    this.crumbs.hidden = path.length === 0;
    this.legend.replaceChildren(element('span', {text: `less, ${formatChange(-this.most)}`}),
      ...Array.from({length: 2 * CHANGE_LEVELS + 1}, (_, level) =>
        element('i', {class: `change${level}`})),
      element('span', {text: `${formatChange(this.most)}, more`}),
      element('span', {}, element('i', {class: `change${CHANGE_LEVELS}`}), ' the same'));
    this.dropped.textContent = this.narrow.cells
      ? `${formatCount(this.narrow.cells)} ${this.narrow.cells === 1 ? 'cell' : 'cells'} too narrow ` +
        `to draw (${formatChange(this.narrow.change)})` : '';
  }
}

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
      key: way === 'site' ? this.comparison.siteKey(bBlocks ? 1 : 0, phase, name || '')
        : name || 'no phase',
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
      const sums = view === 'change' ? side.model.sumOf(side.first, side.last)
        : side.model.stateAt(side.at);
      for (const group of side.model.groups) {
        const bytes = sums.bytes[group.index];
        if (!bytes || (side.chosen && !side.chosen[group.index])) continue;
        const key = side.keyOf(group, way);
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
      element('tfoot', {}, total)));
    this.sum = sum;
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
    const where = view === 'change' ? 'in the selected ranges' : this.comparison.instantWords();
    const words = sides.map(({model, first, last, at}, side) => {
      const ends = view === 'change' ? [first, last] : [at];
      return `${LETTERS[side]} ${ends.map((column) =>
        formatInstant(model.t[column], model.event[column])).join(' to ')}`;
    });
    this.title.replaceChildren(`${changeText(change)} from A to B ${where}` +
      `${filter.size ? ', of this selection' : ''} `,
    element('span', {class: 'small', text: words.join(', ')}));
    this.title.dataset.a = this.sum[0];
    this.title.dataset.b = this.sum[1];
  }
}

/* ---- both ------------------------------------------------------------------- */

class Comparison {
  constructor() {
    this.filter = new Map(); // way -> keys; groups must have one of each
    this.isSelected = false;
    this.moved = new Map(); // "phase\nsite" of A -> key
    for (const [phase, a, b] of data.moved)
      this.moved.set(`${phase}\n${a}`, b === null ? `${phase}\n${a}\nonly in A` : `${phase}\n${b}`);
    this.sides = LETTERS.map((_, index) => new Side(this, index));
    const hasSteps = stepKnots(this.sides.map((side) => side.model))[0].length > 1;
    this.axes = [hasSteps && 'step', data.end && 'time', 'event'].filter(Boolean);
    document.querySelector('.compared').classList.add('open');
    this.timelines = this.sides.map((side, index) => new LinkedTimeline(side,
      document.getElementById(`timeline-${LETTERS[index].toLowerCase()}`)));
    const [a, b] = this.timelines;
    Object.assign(a, {twin: b, top: Math.max(a.top, b.top)});
    Object.assign(b, {twin: a, top: a.top});
    a.hint.remove();
    b.hint.textContent = 'Both move together. Wheel or pinch: zoom. Drag: move, or select while all ' +
      'is shown. Shift and drag: select. Click: an instant, a step or a phase of both. Double ' +
      'click: all. Keys: + − zoom, ← → instant, p peaks, 0 all, Esc undo.';
    this.panel = new ChangePanel(this, document.getElementById('side'));
    this.icicle = new UnionIcicle(this, document.getElementById('union'));
    this.setAxis(this.axes[0]);
  }

  siteKey(side, phase, site) {
    const key = `${phase}\n${site}`;
    return side ? key : this.moved.get(key) || key;
  }

  /* ---- axis ---- */

  setAxis(axis) {
    const models = this.sides.map((side) => side.model);
    const [a] = this.timelines;
    const view = this.axis && !a.isWhole() ? [models[0].columnAt(a.from), models[0].columnAt(a.to)] : null;
    this.axis = this.axes.includes(axis) ? axis : this.axes[0];
    for (const model of models) model.setAxis(this.axis === 'event' || !data.end);
    const knots = this.axis === 'step' ? stepKnots(models) : [null, null];
    models.forEach((model, i) => { model.knots = knots[i]; });
    const length = Math.max(...models.map((model) => model.end()));
    models.forEach((model, i) => model.align(knots[i], length));
    if (view) a.look(models[0].x[view[0]], models[0].x[view[1] + 1]);
    else a.look(0, length);
    for (const timeline of this.timelines) timeline.draw();
  }

  /* ---- selection ---- */

  /* A selection in one run selects the same part of the axis in the other. */
  select(side, first, last) {
    const other = this.sides[1 - side.index];
    const {x} = side.model;
    this.isSelected = true;
    side.setRange(first, last);
    if (side.first === side.last) other.setPositions(x[side.first], x[side.first]);
    else other.setPositions(x[side.first], x[side.last + 1]);
    this.show();
  }

  isRange() {
    return this.isSelected && this.sides.some((side) => side.first < side.last);
  }

  instantWords() {
    if (!this.isSelected) return data.is_peak ? 'at the peaks' : 'at the compared instants';
    return this.isRange() ? 'at the fullest instants of the ranges' : 'at the selected instants';
  }

  reset() {
    this.isSelected = false;
    this.icicle.focus = -1;
    for (const side of this.sides) side.selectAll();
    this.show();
    remember();
  }

  step(by) {
    const side = this.sides[current];
    this.select(side, Math.max(0, side.at + by), Math.max(0, side.at + by));
    this.timelines[current].reveal(side.at);
    remember();
  }

  toggleFilter(way, key) {
    const keys = this.filter.get(way) || new Set();
    if (!keys.delete(key)) keys.add(key);
    if (keys.size) this.filter.set(way, keys);
    else this.filter.delete(way);
    this.show();
    remember();
  }

  clearFilter() {
    this.filter.clear();
    this.show();
    remember();
  }

  show() {
    for (const side of this.sides)
      side.chosen = this.filter.size ? side.model.groups.map((group) =>
        [...this.filter].every(([way, keys]) => keys.has(side.keyOf(group, way)))) : null;
    for (const timeline of this.timelines) timeline.draw();
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
  for (const [id, {column, down}] of sortedTables) parts.set(`s.${id}`, `${column}${down ? '-' : '+'}`);
  if (chosenTheme()) parts.set('t', chosenTheme());
  const text = parts.toString();
  history.replaceState(null, '', text ? `#${text}` : location.pathname + location.search);
}

let soon = 0;
function rememberSoon() {
  clearTimeout(soon);
  soon = setTimeout(remember, 200);
}

function rememberComparison(parts) {
  const {sides, panel, icicle, axis, axes, filter, timelines: [timeline]} = comparison;
  if (axis !== axes[0]) parts.set('x', axis);
  if (!timeline.isWhole()) parts.set('v', `${Math.round(timeline.from)}-${Math.round(timeline.to)}`);
  if (comparison.isSelected) parts.set('r', sides.map((side) => `${side.first}-${side.last}`).join('.'));
  if (panel.view !== 'change' || panel.way !== 'role') parts.set('m', `${panel.view}.${panel.way}`);
  if (icicle.focus >= 0) parts.set('z', icicle.focus);
  for (const [way, keys] of filter) parts.set(`f.${way}`, JSON.stringify([...keys]));
}

/* Keys of a filter; any other text is none. */
function keysOf(text) {
  try {
    const keys = JSON.parse(text);
    return Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : [];
  } catch (error) {
    return [];
  }
}

function restoreComparison(parts) {
  const {sides, panel, icicle, filter, timelines: [timeline]} = comparison;
  const range = /^(\d+)-(\d+)\.(\d+)-(\d+)$/.exec(parts.get('r') || '');
  const view = /^(\d+)-(\d+)$/.exec(parts.get('v') || '');
  const [shown, way] = (parts.get('m') || 'change.role').split('.');
  const node = Number(parts.get('z') || -1);
  comparison.isSelected = Boolean(range);
  sides.forEach((side, i) => range
    ? side.setRange(Number(range[2 * i + 1]), Number(range[2 * i + 2])) : side.selectAll());
  panel.view = CHANGE_VIEWS.some(([each]) => each === shown) ? shown : 'change';
  panel.way = CHANGE_WAYS.some(([each]) => each === way) ? way : 'role';
  icicle.focus = Number.isInteger(node) && node < icicle.tree.parents.length ? node : -1;
  filter.clear();
  for (const each of ['role', 'site', 'phase']) {
    const keys = keysOf(parts.get(`f.${each}`) || '[]');
    if (keys.length) filter.set(each, new Set(keys));
  }
  comparison.setAxis(parts.get('x') || comparison.axes[0]);
  if (view) timeline.look(Number(view[1]), Number(view[2]));
  else timeline.fit();
  comparison.show();
}

function restore() {
  const text = location.hash.slice(1);
  const parts = new URLSearchParams(text.includes('=') ? text : '');
  restoring = true;
  setTheme(['dark', 'light'].includes(parts.get('t')) ? parts.get('t') : '');
  for (const table of document.querySelectorAll('table.sortable')) {
    const sort = /^(\d+)([-+ ])$/.exec(parts.get(`s.${table.id}`) || '');
    if (sort && Number(sort[1]) < table.tHead.rows[0].cells.length)
      sortTable(table, Number(sort[1]), sort[2] === '-');
  }
  if (comparison) restoreComparison(parts);
  restoring = false;
}

/* ---- the page ------------------------------------------------------------- */

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !comparison) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const timeline = comparison.timelines[current], {icicle} = comparison;
  const box = timeline.stage.getBoundingClientRect();
  const isNear = box.top < innerHeight && box.bottom > 0;
  const actions = {
    Escape: () => {
      comparison.filter.clear();
      comparison.reset();
      timeline.fit();
    },
    ArrowLeft: () => comparison.step(-1),
    ArrowRight: () => comparison.step(1),
    ArrowUp: () => icicle.focus >= 0 && icicle.zoom(icicle.tree.parents[icicle.focus]),
    '+': () => timeline.zoom(0.5),
    '=': () => timeline.zoom(0.5),
    '-': () => timeline.zoom(2),
    0: () => timeline.fit(),
    p: () => comparison.reset(),
  };
  if (!actions[event.key]) return;
  if (event.key === 'ArrowUp' && !icicle.cells.contains(document.activeElement)) return;
  if (/Left|Right/.test(event.key) && !isNear) return;
  event.preventDefault();
  actions[event.key]();
  remember();
}

let current = 0; // the run that receives keys
const comparison = data ? new Comparison() : null;

for (const table of document.querySelectorAll('table.sortable')) makeSortable(table, remember);
document.getElementById('tools').append(element('button', {
  type: 'button', text: 'light / dark', onclick: () => {
    setTheme(isDark() ? 'light' : 'dark');
    drawBoth();
    remember();
  },
}));
for (const link of document.querySelectorAll('a[href^="#"]')) {
  link.addEventListener('click', (event) => { // the address keeps the view
    event.preventDefault();
    document.getElementById(link.hash.slice(1)).scrollIntoView();
  });
}
function drawBoth() {
  if (comparison) for (const timeline of comparison.timelines) timeline.draw();
}
if (comparison) {
  comparison.timelines.forEach((timeline, index) => {
    for (const kind of ['pointerdown', 'focusin'])
      timeline.box.addEventListener(kind, () => { current = index; });
  });
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
