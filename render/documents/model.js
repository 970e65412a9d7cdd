/* The data of a device (page_data.c): the state of memory in each column of time, as differences
 * between columns by group. A group has a place in a tree of call stacks, a site, a phase of birth, a
 * role and a size. All numbers are sums over groups, so they are exact. A column has the fullest
 * instant of a part of the run, or the state after a single event (isExact). */

const GROUP = 9; // numbers per group

/* Ways of naming a group, and their words. */
const WAYS = {
  role: 'by role', site: 'by site', phase: 'by phase of allocation', size: 'by block size',
  stack: 'by stack', stream: 'by stream', pool: 'by pool', tag: 'by tag',
};

class Model {
  constructor(source) {
    this.source = source;
    this.strings = source.strings;
    this.columnCount = source.begin.length;
    this.groups = [];
    for (let at = 0; at < source.groups.length; at += GROUP) {
      const [node, site, phase, role, size, detail, stream, pool, tag] =
        source.groups.slice(at, at + GROUP);
      this.groups.push({
        index: this.groups.length, node, role, detail,
        size: size * source.unit,
        site: this.strings[site],
        phase: phase < 0 ? 'several phases' : this.strings[phase],
        stream: this.strings[stream], pool: this.strings[pool], tag: this.strings[tag],
      });
    }
    this.parents = source.nodes.filter((_, at) => at % 2 === 0);
    this.frames = source.nodes.filter((_, at) => at % 2 === 1);
    this.decodeColumns();
    this.addUp();
    this.setAxis(Boolean(source.by_event));
  }

  decodeColumns() {
    const {source} = this, count = this.columnCount;
    const sums = (list) => { let sum = 0; return list.map((each) => sum += each); };
    this.begin = sums(source.begin);
    this.beginEvent = sums(source.begin_event);
    this.reserved = sums(source.reserved);
    this.t = source.t.map((each, at) => each + this.begin[at]);
    this.event = source.event.map((each, at) => each + this.beginEvent[at]);
    this.isExact = new Uint8Array(count);
    for (let at = 0; at < source.exact.length; at += 2)
      this.isExact.fill(1, source.exact[at], source.exact[at] + source.exact[at + 1]);
    this.where = [];
    for (let at = 0; at < source.where.length; at += 2)
      for (let i = 0; i < source.where[at]; i++) this.where.push(this.strings[source.where[at + 1]]);
  }

  /* Totals of every column. */
  addUp() {
    let total = 0;
    this.totals = this.source.changes.map((changes) => {
      for (let at = 0; at < changes.length; at += 3) total += changes[at + 1] * this.source.unit;
      return total;
    });
  }

  /* ---- the axis: busy time without pauses, or events at equal widths ---- */

  setAxis(byEvent) {
    this.byEvent = byEvent;
    const [first, last] = this.source.events;
    this.length = byEvent ? last + 1 - first : 0;
    for (let at = 0; !byEvent && at < this.source.spans.length; at += 2)
      this.length += this.source.spans[at + 1] - this.source.spans[at];
    this.length = Math.max(this.length, 1);
    this.x = this.begin.map((t, i) => this.position(t, this.beginEvent[i]));
    this.x.push(this.length);
    this.x[0] = 0;
  }

  position(t, event) {
    if (this.byEvent) return Math.min(Math.max(event - this.source.events[0], 0), this.length);
    const {spans} = this.source;
    let busy = 0;
    for (let at = 0; at < spans.length && t > spans[at]; at += 2)
      busy += Math.min(t, spans[at + 1]) - spans[at];
    return busy;
  }

  /* The time, or the event, at a position. */
  valueAt(x) {
    if (this.byEvent) return this.source.events[0] + x;
    const {spans} = this.source;
    for (let at = 0; at < spans.length; at += 2) {
      const length = spans[at + 1] - spans[at];
      if (x <= length || at + 2 >= spans.length) return spans[at] + Math.min(x, length);
      x -= length;
    }
    return 0;
  }

  /* The last column that starts at or before a position. */
  columnAt(x) {
    let low = 0, high = this.columnCount - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.x[middle] <= x) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  columnOfEvent(event) {
    let low = 0, high = this.columnCount - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.beginEvent[middle] <= event) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /* The first and the last column of a step or a phase. */
  columnsOfRange([first, last], begin, end) {
    return first < 0 ? this.columnsOfEvents(begin, end) : [first, last];
  }

  /* Those that have one of these events. A column of a single event lasts until the next one, but
   * does not have the events between them. */
  columnsOfEvents(begin, end) {
    const first = this.columnOfEvent(begin), last = this.columnOfEvent(end);
    const isEarlier = this.isExact[first] && this.event[first] < begin;
    return [isEarlier ? Math.min(first + 1, last) : first, last];
  }

  /* Steps or phases, with their columns. */
  ranges(list, columns, size, make) {
    const ranges = [];
    for (let at = 0; at < list.length; at += size) {
      const [begin, end, beginEvent, endEvent] = list.slice(at + size - 4, at + size);
      ranges.push({from: this.position(begin, beginEvent), to: this.position(end, endEvent + 1),
        ns: end - begin, events: [beginEvent, endEvent], ...make(list, at),
        columns: this.columnsOfRange(columns.slice(2 * at / size, 2 * at / size + 2),
          beginEvent, endEvent)});
    }
    return ranges;
  }

  stepRanges() {
    const {steps, step_columns: columns} = this.source;
    return this.ranges(steps, columns, 5, (list, at) => ({name: this.stepName(list[at])}));
  }

  phaseRanges() {
    const {phases, phase_columns: columns} = this.source;
    return this.ranges(phases, columns, 6, (list, at) =>
      ({name: this.strings[list[at]], color: list[at + 1]}));
  }

  /* The step that has an event. */
  stepAt(event) {
    this.allSteps = this.allSteps || this.stepRanges(); // only their columns and events are read
    return this.allSteps.find(({events: [begin, end]}) => begin <= event && event <= end);
  }

  /* The first column of a range that has changes. The state before all events is not one. */
  firstChange(first) {
    return this.event[0] < this.source.events[0] ? Math.max(first, 1) : first;
  }

  /* ---- states ---- */

  /* Calls tell(group, bytes, blocks) for each change of the columns from `first` to `last`. */
  eachChange(first, last, tell) {
    for (let i = Math.max(first, 0); i <= last; i++) {
      const changes = this.source.changes[i];
      for (let at = 0; at < changes.length; at += 3)
        tell(changes[at], changes[at + 1] * this.source.unit, changes[at + 2], i);
    }
  }

  /* Bytes and blocks of every group: the changes of these columns added up. */
  sumOf(first, last) {
    const bytes = new Float64Array(this.groups.length);
    const blocks = new Float64Array(this.groups.length);
    this.eachChange(first, last, (group, change, count) => {
      bytes[group] += change;
      blocks[group] += count;
    });
    return {bytes, blocks};
  }

  stateAt(column) {
    return this.sumOf(0, column);
  }

  fullest(first, last) {
    let best = first;
    for (let i = first + 1; i <= last; i++) if (this.totals[i] > this.totals[best]) best = i;
    return best;
  }

  /* The height of the plot. */
  top() {
    return 1.04 * Math.max(1, this.source.peak[2], ...this.totals, ...this.reserved);
  }

  areExact(first, last) {
    for (let i = first; i <= last; i++) if (!this.isExact[i]) return false;
    return true;
  }

  /* ---- names ---- */

  when(column) {
    return formatWhen(this.t[column], this.event[column]);
  }

  stepName(step) {
    return `step ${step}`;
  }

  /* A list of the ways that tell groups apart. */
  ways(attributes) {
    const list = element('select', attributes);
    for (const [value, text] of Object.entries(WAYS))
      if (this.tellsApart(value)) list.append(element('option', {value, text}));
    return list;
  }

  tellsApart(way) {
    return Object.hasOwn(WAYS, way) && (!['stream', 'pool', 'tag'].includes(way) ||
      new Set(this.groups.map((group) => group[way])).size > 1);
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

  nameOf(group, way) {
    if (way === 'role') return data.roles[group.role];
    if (way === 'phase') return group.phase || 'no phase';
    if (way === 'size')
      return group.detail ? 'blocks of several sizes' : `${formatCount(group.size)} B`;
    if (way === 'stream' || way === 'pool' || way === 'tag') return group[way] || `no ${way}`;
    if (way === 'stack') return group.node < 0 ? 'no stack' : this.nodeName(group.node);
    return group.detail === 3 ? 'small ones together' : group.site;
  }
}

/* What groups must have: way -> names, one name of each way. */
class Filter extends Map {
  /* Adds a name, or removes it. */
  toggle(way, name) {
    const names = this.get(way) || new Set();
    if (!names.delete(name)) names.add(name);
    if (names.size) this.set(way, names);
    else this.delete(way);
  }

  /* nameOf(way): the name of the group. */
  passes(nameOf) {
    return [...this].every(([way, names]) => names.has(nameOf(way)));
  }
}

/* What has a filter, and shows itself when that changes. */
class Filtered {
  constructor() {
    this.filter = new Filter();
  }

  /* Shows only what has this name, or one of several; again: no longer. */
  toggleFilter(way, name) {
    this.filter.toggle(way, name);
    this.show();
    remember();
  }

  clearFilter() {
    this.filter.clear();
    this.show();
    remember();
  }
}

/* Groups with the same key share a leaf below their stack. */
const leafKey = (group) => `${group.node} ${group.role} ${group.detail} ${group.size}`;

/* Name of the blocks of a group below their stack. */
function leafName(group, blocks) {
  const count = formatCount(blocks);
  if (group.detail === 0) return `${count} × ${formatBytes(group.size)}`;
  const what = blocks === 1 ? 'block' : 'blocks';
  return group.detail === 1 ? `${count} ${what}` : `${count} small ${what}`;
}

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

/* ---- the tree at an instant --------------------------------------------- */

/* Bytes below every node of the tree of stacks; blocks of one role and size become one leaf.
 * `chosen`: the groups that pass the filter and the search, or null. */
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
    const key = leafKey(group);
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
