/* Runs on one axis: their models, and their timelines, which move and select together. The page of
 * two runs has A and B; the page of a job has a rank, or two to compare. */

const changeOf = ([a, b]) => b - a;
const changeText = (change) => (change ? formatChange(change) : '±0');

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

const lengthOf = ({events: [begin, end]}) => end - begin;

/* What a timeline needs of its owner, for one of the runs. */
class Side {
  constructor(comparison, index, model) {
    this.comparison = comparison;
    this.index = index;
    this.model = model;
    this.filter = comparison.filter;
    this.chosen = null;
    this.reset = () => comparison.reset();
    this.toggleFilter = (way, key) => comparison.toggleFilter(way, key);
    this.clearFilter = () => comparison.clearFilter();
    this.selectAll();
  }

  selectAll() {
    this.first = 0;
    this.last = this.model.columnCount - 1;
    this.at = this.comparison.startOf(this);
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

  /* The columns of a step or a phase. */
  setEvents(range) {
    this.setRange(...range.columns);
  }

  select(first, last) {
    this.comparison.select(this, first, last);
  }
}

class LinkedTimeline extends Timeline {
  constructor(side, figure) {
    super(side, figure);
    this.hint = this.box.querySelector('.hint');
    this.canvas.setAttribute('aria-label', `${side.comparison.labels[side.index]}: timeline of memory; ` +
      'keys: + and - zoom, arrows move the instant, p shows the peak, 0 shows all');
  }

  makeBar() {
    const {owner} = this, {comparison, index} = owner;
    const peak = formatBytes(owner.model.source.peak[2]);
    const name = element('p', {class: 'run'}, element('strong', {text: comparison.labels[index]}),
      ` ${comparison.names[index]} `, element('span', {class: 'small', text: `peak ${peak}`}));
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
      button(comparison.sides.length > 1 ? 'peaks' : 'peak', 'back to the peak', () => owner.reset()),
      ...(comparison.axes.length > 1 ? [axis] : []));
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
      type: 'button', class: 'layer', title: `show only ${data.roles[role]}`,
      'aria-pressed': String(Boolean(chosen && chosen.has(data.roles[role]))),
      onclick: () => comparison.toggleFilter('role', data.roles[role]),
    }, element('i', {class: `role${role}`}), data.roles[role])));
    this.legend.append(...this.lineKeys(comparison.sides.map(({model}) => model)));
    if (comparison.filter.size)
      this.legend.append(element('button', {
        type: 'button', class: 'layer all', text: 'show all', onclick: () => comparison.clearFilter(),
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
    if (!this.twin) return;
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
    const [a, b] = this.owner.comparison.labels;
    lines.push(element('div', {class: 'small', text: `${changeText(changeOf(bytes))} from ${a} to ${b} here`}));
    return lines;
  }

  /* Bytes of all layers of a name in a strip. */
  bytesOf(strip, key) {
    return this.divided.layers.reduce((sum, layer, at) => sum +
      (layer.key === key ? strip.tops[at] - (at ? strip.tops[at - 1] : 0) : 0), 0);
  }

  undoOfClick() {
    const {comparison} = this.owner, {isSelected} = comparison;
    const ranges = comparison.sides.map(({first, last}) => [first, last]);
    return () => {
      comparison.isSelected = isSelected;
      comparison.sides.forEach((side, at) => isSelected ? side.setRange(...ranges[at]) : side.selectAll());
      comparison.show();
    };
  }

  /* A click on a step or a phase selects the one of the other run that has its name and begins
   * closest to it. */
  clicked(point) {
    const hit = this.hit(point);
    if (!hit || !hit.range) return super.clicked(point);
    const {owner} = this, {comparison} = owner;
    const lists = this.twin ? [this.twin.stepRanges(), this.twin.phaseRanges()] : [];
    const same = lists.flat().filter((each) => each.name === hit.range.name)
      .sort((a, b) => Math.abs(a.from - hit.range.from) - Math.abs(b.from - hit.range.from))[0];
    comparison.isSelected = true;
    owner.setEvents(hit.range);
    if (same) this.twin.owner.setEvents(same);
    else if (this.twin) this.twin.owner.setPositions(hit.range.from, hit.range.to);
    comparison.show();
  }

  /* ---- the same part of both runs ---- */

  /* The step and the innermost phase that an instant is in, and its share of the phase. */
  placeOf(column) {
    const event = this.model.event[column];
    const holds = ({events: [begin, end]}) => begin <= event && event <= end;
    const step = this.stepRanges().find(holds);
    const phase = this.phaseRanges().filter(holds)
      .reduce((best, each) => (best && lengthOf(best) <= lengthOf(each) ? best : each), null);
    if (!step || !phase) return null;
    const number = this.phasesOf(step, phase.name)
      .findIndex((each) => each.events[0] === phase.events[0]);
    return {step: step.name, phase: phase.name, number,
      share: (event - phase.events[0]) / Math.max(lengthOf(phase), 1)};
  }

  /* Phases of a name that begin in a step, in their order. */
  phasesOf({events: [first, last]}, name) {
    return this.phaseRanges().sort((a, b) => a.events[0] - b.events[0])
      .filter((each) => each.name === name && first <= each.events[0] && each.events[0] <= last);
  }

  /* The column whose instant is at that place in this run; -1: there is none. */
  columnOf({step, phase, number, share}) {
    const {model} = this, found = this.stepRanges().find((each) => each.name === step);
    const range = found && this.phasesOf(found, phase)[number];
    if (!range) return -1;
    const [begin, end] = range.events, wanted = begin + share * lengthOf(range);
    let best = -1;
    for (let at = range.columns[0]; at <= range.columns[1]; at++) {
      const event = model.event[at], away = (column) => Math.abs(model.event[column] - wanted);
      if (event >= begin && event <= end && (best < 0 || away(at) < away(best))) best = at;
    }
    return best;
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
        last = Math.max(pixel, plot.x + 20); // the first one is moved into the plot
        this.tick(x, x === at ? name : words(Number((x - at).toPrecision(6))),
          plot.y + plot.height + 15);
      }
    });
  }
}

/* The runs of a page, on one axis, with one selection and one filter. */
class LinkedRuns extends Filtered {
  constructor(sources, labels, names) {
    super();
    this.labels = labels;
    this.names = names;
    this.isSelected = false;
    this.sides = sources.map((source, index) => new Side(this, index, this.modelOf(source)));
    this.axes = this.axesOf(this.sides.length > 1 &&
      stepKnots(this.sides.map((side) => side.model))[0].length > 1);
  }

  /* The first one is shown first. */
  axesOf(hasSteps) {
    return [hasSteps && 'step', data.end && 'time', 'event'].filter(Boolean);
  }

  modelOf(source) {
    return new RunModel(source);
  }

  /* The column that is marked while nothing is selected. */
  startOf({model}) {
    return model.fullest(0, model.columnCount - 1);
  }

  keyOf(side, group, way) {
    return side.model.nameOf(group, way);
  }

  /* Makes the timelines in these figures. */
  draw(figures) {
    this.current = 0; // the run that receives keys
    this.timelines = this.sides.map((side, index) => new LinkedTimeline(side, figures[index]));
    this.timelines.forEach((timeline, index) => {
      for (const kind of ['pointerdown', 'focusin'])
        timeline.box.addEventListener(kind, () => { this.current = index; });
    });
    const [a, b] = this.timelines;
    if (b) {
      Object.assign(a, {twin: b, top: Math.max(a.top, b.top)});
      Object.assign(b, {twin: a, top: a.top});
      a.hint.remove();
    }
    (b || a).hint.textContent = `${b ? 'Both move together. ' : ''}Wheel or pinch: zoom. Drag: move, ` +
      `or select while all is shown. Shift and drag: select. Click: an instant, a step or a phase${
        b ? ' of both' : ''}. Double click: all. Keys: + − zoom, ← → instant, p ${
        b ? 'peaks' : 'peak'}, 0 all, Esc undo.`;
    this.setAxis(this.axes[0]);
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
    const {x} = side.model;
    this.isSelected = true;
    side.setRange(first, last);
    for (const other of this.sides.filter((each) => each !== side)) {
      if (side.first === side.last) this.selectTwin(side, other);
      else other.setPositions(x[side.first], x[side.last + 1]);
    }
    this.show();
  }

  /* The instant of the other run: in the same phase of the same step if the axis is that of steps
   * and both have it, otherwise at the same position. */
  selectTwin(side, other) {
    const place = this.axis === 'step' && this.timelines[side.index].placeOf(side.at);
    const column = place ? this.timelines[other.index].columnOf(place) : -1;
    const x = side.model.x[side.first];
    if (column >= 0) other.setRange(column, column);
    else other.setPositions(x, x);
  }

  isRange() {
    return this.isSelected && this.sides.some((side) => side.first < side.last);
  }

  reset() {
    this.isSelected = false;
    for (const side of this.sides) side.selectAll();
    this.timelines[this.current].reveal(this.sides[this.current].at);
    this.show();
    remember();
  }

  step(by) {
    const side = this.sides[this.current];
    this.select(side, Math.max(0, side.at + by), Math.max(0, side.at + by));
    this.timelines[this.current].reveal(side.at);
    remember();
  }

  show() {
    for (const side of this.sides)
      side.chosen = this.filter.size ? side.model.groups.map((group) =>
        this.filter.passes((way) => this.keyOf(side, group, way))) : null;
    for (const timeline of this.timelines) timeline.draw();
  }

  /* What keys do. */
  actions() {
    const timeline = this.timelines[this.current];
    return {
      Escape: () => {
        this.filter.clear();
        this.reset();
        timeline.fit();
      },
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      '+': () => timeline.zoom(0.5),
      '=': () => timeline.zoom(0.5),
      '-': () => timeline.zoom(2),
      0: () => timeline.fit(),
      p: () => this.reset(),
    };
  }

  /* ---- the address: x=axis, v=FROM-TO positions, r=FIRST-LAST[.FIRST-LAST] columns ---- */

  remember(parts) {
    const {sides, axis, axes, timelines: [timeline]} = this;
    if (axis !== axes[0]) parts.set('x', axis);
    if (!timeline.isWhole()) parts.set('v', `${Math.round(timeline.from)}-${Math.round(timeline.to)}`);
    if (this.isSelected) parts.set('r', sides.map((side) => `${side.first}-${side.last}`).join('.'));
  }

  restore(parts) {
    const {sides, timelines: [timeline]} = this;
    const ranges = (parts.get('r') || '').split('.').map((text) => /^(\d+)-(\d+)$/.exec(text));
    const view = /^(\d+)-(\d+)$/.exec(parts.get('v') || '');
    this.isSelected = ranges.length === sides.length && ranges.every(Boolean);
    sides.forEach((side, i) => this.isSelected
      ? side.setRange(Number(ranges[i][1]), Number(ranges[i][2])) : side.selectAll());
    this.setAxis(parts.get('x') || this.axes[0]);
    if (view) timeline.look(Number(view[1]), Number(view[2]));
    else timeline.fit();
  }
}
