/* The union of the call trees of two runs, and the icicle that shows it, colored by the change. */

const CHANGE_LEVELS = 8; // on each side of "the same"
const MAX_OVERLAPS = 40000; // pairs of places whose calls are compared

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

/* "12.0 MiB (12,582,912 B)" of A and B, and the change. */
function bothText(bytes) {
  const exact = (value) => `${formatBytes(value)} (${formatCount(value)} B)`;
  const change = changeOf(bytes);
  return `A ${exact(bytes[0])}\nB ${exact(bytes[1])}\nchange ${formatChange(change)} ` +
    `(${change < 0 ? '−' : change ? '+' : ''}${formatCount(Math.abs(change))} B)`;
}

/* The icicle of both trees, colored by the change. */
class UnionIcicle extends Icicle {
  constructor(comparison, section) {
    super('what changed, by call stack');
    this.comparison = comparison;
    this.tree = new UnionTree(comparison.sides.map((side) => side.model));
    this.when = element('p', {class: 'when'});
    this.legend = element('div', {class: 'scale', 'aria-hidden': 'true'});
    section.append(element('h2', {text: 'What changed, by call stack'}),
      element('div', {class: 'explore'}, this.when, this.legend, this.crumbs, this.cells,
        this.dropped));
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

  root() {
    const {sides} = this.comparison;
    return {node: -1, name: 'all', bytes: sides.map((side) => side.model.totals[side.at]),
      found: 1, width: this.below(-1).reduce((sum, cell) => sum + cell.width, 0)};
  }

  cellOf(node) {
    return this.below(this.tree.parents[node]).find((cell) => cell.node === node) ||
      {node, name: this.tree.nameOf(node), bytes: [0, 0], found: 0, width: 0};
  }

  below(node) {
    return this.children.get(node) || [];
  }

  pathOf(node) {
    return this.tree.pathOf(node);
  }

  sizeOf(cell) {
    return cell.width;
  }

  bytesOf(cell) {
    return changeOf(cell.bytes);
  }

  crumb(node) {
    return node < 0 ? 'all' : this.tree.nameOf(node);
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
      style: {left: `${100 * left}%`, width: `${100 * width}%`, top: `${row * ROW_HEIGHT}px`},
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
    this.cells.append(made);
  }

  showWords(shown, root) {
    const {sides} = this.comparison;
    this.when.replaceChildren(
      element('strong', {text: `${changeText(changeOf(root.bytes))} from A to B`}),
      ` ${this.comparison.instantWords()}: ` +
      sides.map(({model, at}, side) => `${LETTERS[side]} ${formatBytes(model.totals[at])} at ` +
        formatWhen(model.t[at], model.event[at])).join(', ') +
      '. A cell is as wide as the larger of both; a call, as what is below it. Click to zoom.');
    this.legend.replaceChildren(element('span', {text: `less, ${formatChange(-this.most)}`}),
      ...Array.from({length: 2 * CHANGE_LEVELS + 1}, (_, level) =>
        element('i', {class: `change${level}`})),
      element('span', {text: `${formatChange(this.most)}, more`}),
      element('span', {}, element('i', {class: `change${CHANGE_LEVELS}`}), ' the same'));
    this.dropped.textContent = this.narrowWords(formatChange(this.narrow.bytes));
  }
}
