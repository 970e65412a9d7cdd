/* The timeline that the reader zooms, moves, points at and selects on; the axes, the detail and the
 * legend follow. */

const CLICK_PIXELS = 4; // a shorter drag is a click
const DOUBLE_MS = 500; // from a click to the second one of a double click

class Timeline extends TimelineView {
  /* `owner`, as for the view, also has the filter and the methods select, showPeak, toggleFilter and
   * clearFilter. */
  constructor(owner, figure) {
    super(owner);
    this.figure = figure;
    this.tip = element('div', {class: 'tip', role: 'status'});
    this.tip.hidden = true;
    this.legend = element('div', {class: 'layers', role: 'group', 'aria-label': 'filter by layer'});
    this.stage.append(this.tip);
    this.box = element('div', {class: 'timeline'}, this.makeBar(), this.legend, this.stage,
      element('p', {class: 'small hint', text: 'Wheel or pinch: zoom. Drag: move, or select while ' +
        'all is shown. Shift and drag: select. Click: an instant. Double click: all. ' +
        'Keys: + − zoom, ← → instant, with shift a range, p peak, 0 all, / search, Esc: back to the start.'}));
    const omitted = this.omitted();
    if (omitted) this.box.append(element('p', {class: 'small', text: omitted}));
    figure.classList.add('explored');
    figure.prepend(this.box);
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.stage);
  }

  /* What the rows below the plot lack. */
  omitted() {
    const {source} = this.model, words = [];
    const tell = (list, size, all, what) => {
      const missing = all - list.length / size;
      if (missing) words.push(`${formatCount(missing)} of ${formatCount(all)} ${what}`);
    };
    tell(source.steps, 5, source.steps_in_all, 'steps');
    tell(source.phases, 6, source.phases_in_all, 'phases, the shortest');
    tell(source.ooms, 3, source.ooms_in_all, 'out-of-memory errors, the last');
    return words.length ? `Not drawn, because there are too many: ${words.join('; ')}.` : '';
  }

  makeBar() {
    const button = (text, label, act) => element('button', {
      type: 'button', text, title: label, 'aria-label': label,
      onclick: () => { act(); remember(); },
    });
    this.colors = this.model.ways({
      'aria-label': 'layers',
      onchange: () => { this.setWay(this.colors.value); remember(); },
    });
    this.axisButton = button('', 'the axis', () => this.setAxis(!this.model.byEvent));
    this.axisButton.hidden = !data.end;
    return element('div', {class: 'chart-bar'},
      button('+', 'zoom in', () => this.zoom(0.5)), button('−', 'zoom out', () => this.zoom(2)),
      button('all', 'show all', () => this.fit()),
      button('peak', 'show the allocated peak', () => this.owner.showPeak()), this.colors,
      this.axisButton);
  }

  paint() {
    super.paint();
    this.showLegend();
    this.axisButton.replaceChildren(...this.axisWords());
    this.axisButton.title = this.axisButton.textContent;
  }

  axisWords() {
    const {byEvent, source} = this.model;
    if (!byEvent) return ['axis: time'];
    return source.first_step && data.end ? ['axis: events', element('span', {class: 'why',
      text: `, because the first step takes ${source.first_step}% of the time`})] : ['axis: events'];
  }

  /* ---- the view ---- */

  setWay(way) {
    this.way = this.model.tellsApart(way) ? way : 'role';
    this.colors.value = this.way;
    this.draw();
  }

  setAxis(byEvent) {
    const {model} = this;
    const columns = [model.columnAt(this.from), model.columnAt(this.to)];
    const isWhole = this.isWhole();
    model.setAxis(byEvent);
    if (isWhole) this.look(0, model.length);
    else this.look(model.x[columns[0]], model.x[Math.min(columns[1] + 1, model.columnCount)]);
  }

  isWhole() {
    return this.from <= 0 && this.to >= this.model.length;
  }

  /* The address of the page may request any numbers. */
  look(from, to) {
    const {length} = this.model;
    if (!Number.isFinite(from) || !Number.isFinite(to)) return this.look(0, length);
    const least = Math.min(length, this.model.byEvent ? 4 : Math.max(length * 1e-8, 20));
    const size = Math.min(Math.max(to - from, least), length);
    this.from = Math.min(Math.max(from, 0), length - size);
    this.to = this.from + size;
    this.draw();
  }

  fit() {
    this.look(0, this.model.length);
  }

  /* Around a position, or the selected instant if it is visible, or the middle. */
  zoom(factor, around) {
    const middle = (this.from + this.to) / 2;
    const mark = this.model.x[this.owner.at];
    const at = around ?? (mark > this.from && mark < this.to ? mark : middle);
    this.look(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  /* Moves the view so that an instant is visible. */
  reveal(column) {
    const x = this.model.x[column], size = this.to - this.from;
    if (x < this.from || x > this.to) this.look(x - size / 2, x + size / 2);
  }

  /* ---- legend ---- */

  showLegend() {
    const {way} = this, {filter} = this.owner;
    const all = this.divided.all.slice(0, way === 'role' ? undefined : MAX_LAYERS);
    const chosen = filter.get(way) || new Set();
    const absent = [...chosen].filter((name) => !all.some((key) => key.name === name));
    const keys = [...all, ...absent.map((name) => ({name}))];
    const state = `${way}\n${keys.map((key) => key.name).join('\n')}\n${[...chosen].join('\n')}\n${filter.size}`;
    if (this.legendState === state) return;
    this.legendState = state;
    this.legend.replaceChildren(
      ...keys.reverse().map((key) => element('button', {
        type: 'button', class: 'layer', title: `show only ${key.name}`,
        'aria-pressed': String(chosen.has(key.name)),
        onclick: () => this.owner.toggleFilter(this.way, key.name),
      }, element('i', {class: key.role === undefined ? 'root0' : `role${key.role}`}), key.name)));
    this.legend.append(...this.lineKeys([this.model]));
    if (this.owner.filter.size)
      this.legend.append(element('button', {
        type: 'button', class: 'layer all', text: 'show all', onclick: () => this.owner.clearFilter(),
      }));
  }

  /* What the lines over the layers are, and a layer without a role. */
  lineKeys(models) {
    const key = (name, words) => element('span', {}, element('i', {class: name}), words);
    const limits = models.map((model) => model.source.limit).filter((limit) => limit && limit <= this.top);
    const isPlain = models.some((model) => model.groups.some((group) => group.role < 0));
    return [...(isPlain ? [key('allocated', 'allocated')] : []),
      ...(models.some((model) => model.reserved.some(Boolean)) ? [key('reserved', 'reserved')] : []),
      ...(limits.length ? [key('limit', `limit ${[...new Set(limits)].map(formatBytes).join(', ')}`)] : [])];
  }

  /* ---- the pointer ---- */

  /* What is below a point of the canvas: a strip, a layer, a step or a phase. */
  hit(point) {
    const {plot} = this;
    if (!this.strips || point.x < plot.x || point.x > plot.x + plot.width) return null;
    const position = this.positionOf(point.x), below = point.y - plot.y - plot.height;
    if (below > ROWS.steps && below < ROWS.steps + ROWS.height + ROWS.height + 4) {
      const ranges = below < ROWS.phases ? this.stepRanges() : this.phaseRanges();
      const range = ranges.find((each) => position >= each.from && position < each.to);
      return range ? {range} : null;
    }
    if (point.y < 0 || below > ROWS.ticks) return null;
    let strip = this.strips[this.strips.length - 1];
    for (const each of this.strips) if (point.x >= each.left && point.x < each.right) strip = each;
    const bytes = (plot.y + plot.height - point.y) / plot.height * this.top;
    const layer = strip.tops.findIndex((top, at) => bytes < top && bytes >= (at ? strip.tops[at - 1] : 0));
    return {strip, layer};
  }

  pointOf(event) {
    const box = this.canvas.getBoundingClientRect();
    return {x: event.clientX - box.left, y: event.clientY - box.top};
  }

  pointAt(point) {
    const hit = point && this.hit(point);
    this.pointer = hit && hit.strip ? point : null;
    this.tip.hidden = !hit;
    if (hit) this.showTip(hit, point);
    this.draw();
  }

  showTip(hit, point) {
    this.tip.replaceChildren(...(hit.range ? this.rangeLines(hit.range) : this.stripLines(hit)));
    const width = this.tip.offsetWidth, height = this.tip.offsetHeight;
    const left = point.x + 16 + width > this.width ? point.x - 16 - width : point.x + 16;
    const top = Math.min(Math.max(point.y - height / 2, 0), Math.max(this.height - height, 0));
    this.tip.style.left = `${Math.max(left, 0)}px`;
    this.tip.style.top = `${top}px`;
  }

  /* With the peak, unless the fullest instant of a column at an end of the range is not in it. */
  rangeLines(range) {
    const {model} = this, at = model.fullest(...range.columns), [begin, end] = range.events;
    const isIn = begin <= model.event[at] && model.event[at] <= end;
    return [element('strong', {text: range.name}),
      element('div', {text: data.end ? formatDuration(range.ns) : ''}),
      element('div', {text: isIn ? `peak ${formatBytes(model.totals[at])} allocated` : ''}),
      element('div', {class: 'small', text: 'click to select it'})];
  }

  stripLines({strip, layer}) {
    const {model} = this, at = strip.column, found = this.divided.layers[layer];
    const lines = [
      element('div', {text: model.when(at)}),
      element('div', {text: model.where[at]}),
      element('div', {text: `${formatBytes(model.totals[at])} allocated` +
        (model.reserved[at] ? ` of ${formatBytes(model.reserved[at])} reserved` : '')}),
    ];
    if (!found) return lines;
    const bytes = strip.tops[layer] - (layer ? strip.tops[layer - 1] : 0);
    lines.push(element('strong', {text: `${formatBytes(bytes)} ${found.name}`}));
    if (found.group && found.role >= 0) lines.push(...this.groupLines(found.group));
    return lines;
  }

  groupLines(group) {
    const {model} = this;
    const size = group.detail ? 'blocks of several sizes' : `${formatCount(group.size)} B each`;
    const facts = [`${data.roles[group.role]}, ${size}`, group.site,
      group.phase && `allocated in ${group.phase}`].filter(Boolean);
    const frames = group.node < 0 ? [] : model.pathOf(group.node).reverse().slice(0, 4);
    return [...facts.map((text) => element('div', {text})),
      ...frames.map((node) => element('div', {class: 'frame', text: model.nodeName(node)}))];
  }

  listen() {
    const {canvas} = this, fingers = new Map();
    const spread = () => {
      const [a, b] = [...fingers.values()].map((finger) => finger.x);
      return Math.max(Math.abs(a - b), 10);
    };
    let start = null, pinch = 0, first = {t: -Infinity}; // first: the click that may become double
    canvas.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      const point = this.pointOf(event);
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, point);
      start = fingers.size > 1 ? null : {
        point, from: this.from, to: this.to, moved: false,
        selects: event.shiftKey || (this.isWhole() && event.pointerType === 'mouse'),
      };
      pinch = fingers.size === 2 ? spread() : 0;
    });
    canvas.addEventListener('pointermove', (event) => {
      const point = this.pointOf(event);
      if (fingers.has(event.pointerId)) fingers.set(event.pointerId, point);
      if (fingers.size === 2) {
        const [a, b] = [...fingers.values()];
        const distance = spread();
        this.zoom(pinch / distance, this.positionOf((a.x + b.x) / 2));
        pinch = distance;
      } else if (start) {
        this.dragged(start, point);
      }
      this.pointAt(fingers.size < 2 && !(start && start.moved) ? point : null);
    });
    const end = (event) => {
      fingers.delete(event.pointerId);
      const isClick = start && !start.moved && event.type === 'pointerup';
      const isSecond = event.timeStamp - first.t < DOUBLE_MS && isClick &&
        Math.hypot(start.point.x - first.x, start.point.y - first.y) < CLICK_PIXELS;
      if (isClick && !isSecond) {
        first = {...start.point, t: event.timeStamp, undo: this.undoOfClick()};
        this.clicked(start.point, event.shiftKey);
      }
      if (start) remember();
      start = null;
    };
    canvas.addEventListener('pointerup', end);
    canvas.addEventListener('pointercancel', end);
    canvas.addEventListener('pointerleave', () => this.pointAt(null));
    canvas.addEventListener('dblclick', () => {
      if (first.undo) first.undo();
      this.fit();
      remember();
    });
    canvas.addEventListener('wheel', (event) => this.turned(event), {passive: false});
  }

  dragged(start, point) {
    if (!start.moved && Math.abs(point.x - start.point.x) < CLICK_PIXELS) return;
    start.moved = true;
    if (start.selects) {
      const ends = [start.point.x, point.x].map((x) => this.model.columnAt(this.positionOf(x)));
      this.owner.select(Math.min(...ends), Math.max(...ends));
    } else {
      const shift = (start.point.x - point.x) / this.plot.width * (start.to - start.from);
      this.look(start.from + shift, start.to + shift);
    }
  }

  /* What takes back the selection of a click that follows. */
  undoOfClick() {
    const {first, last, pinned} = this.owner;
    return () => this.owner.select(first, last, pinned);
  }

  /* A click selects the instant that is drawn there, and shows what is below the pointer; on a step
   * or a phase its range, with shift joined with what is selected. */
  clicked(point, isJoined) {
    const hit = this.hit(point);
    if (!hit) return;
    if (hit.range) {
      const [first, last] = hit.range.columns, {owner} = this;
      const joins = isJoined && !owner.isWhole();
      owner.select(joins ? Math.min(first, owner.first) : first, joins ? Math.max(last, owner.last) : last);
    } else {
      const layer = this.divided.layers[hit.layer];
      this.owner.select(hit.strip.column, hit.strip.column, layer && layer.group);
    }
  }

  /* Zooms, or moves sideways. The page scrolls where nothing is left to reduce. */
  turned(event) {
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      if (this.isWhole()) return;
      const shift = event.deltaX / this.plot.width * (this.to - this.from);
      this.look(this.from + shift, this.to + shift);
    } else {
      if (event.deltaY > 0 && this.isWhole() && !event.ctrlKey) return;
      const factor = Math.exp(Math.min(Math.max(event.deltaY, -240), 240) / 400);
      this.zoom(factor, this.positionOf(this.pointOf(event).x));
    }
    event.preventDefault();
    rememberSoon();
  }
}
