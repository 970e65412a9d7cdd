/* A timeline as a drawing: layers of allocated memory over time or events, with the line of reserved
 * memory, marks, steps and phases. It draws columns of the model: where many columns share a pixel,
 * their fullest one, so no peak is lost. Where few are visible, layers are divided into groups of
 * blocks. timeline.js lets the reader move it. */

const MARGIN = {left: 76, right: 14, top: 18, bottom: 64};
const ROWS = {ticks: 20, steps: 22, phases: 42, height: 18}; // below the plot
const MAX_LAYERS = 14; // of sites, phases, ...; the others share one
const MAX_BANDS = 90; // groups that have layers of their own
const DETAIL_COLUMNS = 2500; // visible columns, at most, for layers of groups
const MIN_BAND = 0.004; // of the height

/* The step of ticks: 1, 2 or 5 times a power of ten, at least `least`. */
function tickStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least * 0.999);
}

/* Ticks of bytes: 0.5, 1, 2, 5, 10, ... of the largest unit that fits twice. */
function byteTicks(top, most) {
  let unit = 0;
  while (unit + 1 < UNITS.length && top >= 2 * 1024 ** (unit + 1)) unit++;
  const count = top / 1024 ** unit, ticks = [];
  let factor = unit ? 0.5 : 1;
  while (count / factor > most)
    factor = /2/.test(String(factor)) ? factor / 2 * 5 : factor * 2;
  for (let i = 1; i * factor <= count; i++)
    ticks.push({bytes: i * factor * 1024 ** unit, text: `${formatTick(i * factor)} ${UNITS[unit]}`});
  return ticks;
}

/* `owner` has a model, the selection (first, last, at, isWhole), and the filter (chosen). */
class TimelineView {
  constructor(owner) {
    this.owner = owner;
    this.model = owner.model;
    this.from = 0; // visible positions
    this.to = this.model.length;
    this.top = this.model.top();
    this.way = 'role';
    this.pointer = null; // in pixels of the canvas
    this.canvas = element('canvas', {
      class: 'plot', tabindex: '0', role: 'application',
      'aria-label': 'timeline of memory; keys: + and - zoom, arrows move the instant, ' +
        'shift and arrows select, p shows the peak, 0 shows all',
    });
    this.stage = element('div', {class: 'stage'}, this.canvas);
  }

  /* ---- pixels ---- */

  preferredHeight() {
    return Math.max(260, Math.min(440, innerHeight * 0.46));
  }

  measure() {
    const width = this.stage.clientWidth || 800;
    const height = this.preferredHeight();
    const ratio = devicePixelRatio || 1;
    if (this.width !== width || this.height !== height || this.ratio !== ratio) {
      Object.assign(this, {width, height, ratio});
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.height = `${height}px`;
    }
    this.plot = {
      x: MARGIN.left, y: MARGIN.top, width: Math.max(width - MARGIN.left - MARGIN.right, 50),
      height: height - MARGIN.top - MARGIN.bottom,
    };
    this.canvas.dataset.plot = Object.values(this.plot).join(' ');
  }

  pixelOf(x) {
    return this.plot.x + (x - this.from) / (this.to - this.from) * this.plot.width;
  }

  positionOf(pixel) {
    return this.from + (pixel - this.plot.x) / this.plot.width * (this.to - this.from);
  }

  yOf(bytes) {
    return this.plot.y + this.plot.height * (1 - bytes / this.top);
  }

  /* ---- layers ---- */

  /* Names of layers from the base line up, and the layer of each group. Groups that the filter
   * omits are in the last one. */
  layers(first, last) {
    const {model} = this, {chosen} = this.owner;
    const most = new Float64Array(model.groups.length);
    const now = model.stateAt(first).bytes;
    most.set(now);
    model.eachChange(first + 1, last, (group, change) => {
      now[group] += change;
      if (now[group] > most[group]) most[group] = now[group];
    });
    const all = new Map(), shown = new Map();
    for (const group of model.groups) {
      if (!most[group.index]) continue;
      this.addToKey(all, group, most);
      if (!chosen || chosen[group.index]) this.addToKey(shown, group, most);
    }
    return {...this.divide(this.inOrder(shown), most, last - first + 1), all: this.inOrder(all)};
  }

  addToKey(keys, group, most) {
    const name = this.model.nameOf(group, this.way);
    const key = keys.get(name) || {name, role: group.role, most: 0, groups: []};
    key.most += most[group.index];
    key.groups.push(group);
    keys.set(name, key);
  }

  /* Keys from the base line up. */
  inOrder(keys) {
    const order = data.stack.map((role) => data.roles[role]);
    return [...keys.values()].sort(this.way === 'role'
      ? (a, b) => order.indexOf(a.name) - order.indexOf(b.name) : (a, b) => b.most - a.most);
  }

  divide(keys, most, columns) {
    const layers = [], layerOf = new Int32Array(this.model.groups.length).fill(-1);
    const add = (layer, groups) => {
      for (const group of groups) layerOf[group.index] = layers.length;
      layers.push(layer);
    };
    const shown = this.way === 'role' ? keys : keys.slice(0, MAX_LAYERS);
    const isDetailed = columns <= DETAIL_COLUMNS;
    let bands = MAX_BANDS;
    shown.forEach((key, at) => {
      const shade = this.way === 'role' ? 0 : at % 2;
      const large = isDetailed ? key.groups
        .filter((group) => most[group.index] > this.top * MIN_BAND)
        .sort((a, b) => most[b.index] - most[a.index]).slice(0, bands)
        .sort((a, b) => a.index - b.index) : [];
      const small = key.groups.filter((group) => !large.includes(group));
      bands -= large.length;
      if (small.length) add({name: key.name, key: key.name, role: key.role, shade}, small);
      for (const group of large)
        add({name: key.name, key: key.name, role: group.role, shade, group}, [group]);
    });
    const others = keys.slice(shown.length).flatMap((key) => key.groups);
    if (others.length) add({name: `${keys.length - shown.length} others`, shade: 0}, others);
    add({name: 'not selected', isRest: true, shade: 0},
      this.model.groups.filter((group) => layerOf[group.index] < 0));
    return {layers, layerOf};
  }

  /* Strips of pixels that show one column each, the fullest of those that share pixels. */
  makeStrips(first, last) {
    const {model} = this, strips = [];
    const limit = this.plot.x + this.plot.width, size = 1 / this.ratio;
    for (let i = first; i <= last; i++) {
      const left = Math.max(this.pixelOf(model.x[i]), this.plot.x);
      const right = Math.min(this.pixelOf(model.x[i + 1]), limit);
      const strip = strips[strips.length - 1];
      if (strip && strip.right - strip.left < size && right - strip.left < 2 * size) {
        strip.right = Math.max(strip.right, right);
        strip.reserved = Math.max(strip.reserved, model.reserved[i]);
        strip.last = i;
        if (model.totals[i] > model.totals[strip.column]) strip.column = i;
      } else {
        strips.push({left, right, first: i, last: i, column: i, reserved: model.reserved[i]});
      }
    }
    return strips;
  }

  /* Bytes of each layer in each strip, as sums from the base line up. */
  sumStrips(strips, first, {layers, layerOf}) {
    const {model} = this, count = layers.length;
    const now = new Float64Array(count);
    model.eachChange(0, first - 1, (group, change) => { now[layerOf[group]] += change; });
    let at = first - 1;
    for (const strip of strips) {
      model.eachChange(at + 1, strip.column, (group, change) => { now[layerOf[group]] += change; });
      at = strip.column;
      strip.tops = new Float64Array(count);
      let sum = 0;
      for (let i = 0; i < count; i++) strip.tops[i] = sum += now[i];
    }
  }

  /* ---- drawing ---- */

  draw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  paint() {
    this.measure();
    const {model} = this;
    const first = model.columnAt(this.from);
    const last = Math.max(first, model.columnAt(this.to));
    this.divided = this.layers(first, last);
    this.strips = this.makeStrips(first, last);
    this.sumStrips(this.strips, first, this.divided);
    const pen = this.pen = this.canvas.getContext('2d');
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    pen.font = `12px ${getComputedStyle(this.canvas).fontFamily}`;
    this.ink = inkOfTheme();
    this.paintGrid();
    pen.save();
    pen.beginPath();
    pen.rect(this.plot.x, 0, this.plot.width, this.height);
    pen.clip();
    this.paintLayers();
    this.paintLines();
    this.paintSelection();
    this.paintRows();
    this.paintTicks();
    this.paintMarks();
    pen.restore();
    this.canvas.dataset.view = `${this.from} ${this.to}`;
    this.canvas.dataset.layers = this.divided.layers.length;
  }

  text(words, x, y, align, color) {
    this.pen.textAlign = align;
    this.pen.fillStyle = color || this.ink.muted;
    this.pen.fillText(words, x, y);
  }

  line(x1, y1, x2, y2, color, dash) {
    const {pen} = this;
    pen.strokeStyle = color;
    pen.lineWidth = 1;
    pen.setLineDash(dash || []);
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x2, y2);
    pen.stroke();
    pen.setLineDash([]);
  }

  paintGrid() {
    const {x, y, width, height} = this.plot;
    this.text('0', x - 8, y + height + 4, 'right');
    for (const tick of byteTicks(this.top, Math.max(3, height / 45))) {
      this.line(x, this.yOf(tick.bytes), x + width, this.yOf(tick.bytes), this.ink.grid);
      this.text(tick.text, x - 8, this.yOf(tick.bytes) + 4, 'right');
    }
    this.line(x, y + height, x + width, y + height, this.ink.axis);
  }

  /* Each layer down to its base; runs without bytes are omitted. */
  paintLayers() {
    this.divided.layers.forEach((layer, at) => {
      this.pen.fillStyle = layer.isRest ? this.ink.grid : layer.role < 0 ? this.ink.axis // unknown
        : this.ink.roles[layer.role] || this.ink.muted;
      this.pen.globalAlpha = layer.shade ? 0.72 : 1;
      let begin = -1;
      for (let i = 0; i <= this.strips.length; i++) {
        const isThere = i < this.strips.length && this.heightOf(i, at) > 0;
        if (isThere && begin < 0) begin = i;
        if (isThere || begin < 0) continue;
        this.paintRun(begin, i, at, Boolean(layer.group));
        begin = -1;
      }
    });
    this.pen.globalAlpha = 1;
  }

  baseOf(strip, layer) {
    return layer ? this.strips[strip].tops[layer - 1] : 0;
  }

  heightOf(strip, layer) {
    return this.strips[strip].tops[layer] - this.baseOf(strip, layer);
  }

  paintRun(begin, end, layer, isBand) {
    const {pen, strips} = this;
    pen.beginPath();
    pen.moveTo(strips[begin].left, this.yOf(strips[begin].tops[layer]));
    for (let i = begin; i < end; i++) {
      const y = this.yOf(strips[i].tops[layer]);
      if (i > begin && strips[i].tops[layer] !== strips[i - 1].tops[layer])
        pen.lineTo(strips[i].left, y);
      if (i + 1 === end || strips[i].tops[layer] !== strips[i + 1].tops[layer])
        pen.lineTo(strips[i].right, y);
    }
    for (let i = end - 1; i >= begin; i--) {
      const y = this.yOf(this.baseOf(i, layer));
      if (i + 1 === end || this.baseOf(i, layer) !== this.baseOf(i + 1, layer))
        pen.lineTo(strips[i].right, y);
      if (i === begin || this.baseOf(i, layer) !== this.baseOf(i - 1, layer))
        pen.lineTo(strips[i].left, y);
    }
    pen.closePath();
    pen.fill();
    if (!isBand) return;
    pen.strokeStyle = this.ink.background;
    pen.lineWidth = 0.5;
    pen.stroke();
  }

  paintLines() {
    const {pen, strips} = this;
    const {limit} = this.model.source;
    if (limit && limit <= this.top)
      this.line(this.plot.x, this.yOf(limit), this.plot.x + this.plot.width, this.yOf(limit),
        this.ink.bad, [6, 4]);
    pen.strokeStyle = this.ink.reserved;
    pen.lineWidth = 1.5;
    pen.beginPath();
    for (const strip of strips) {
      pen.lineTo(strip.left, this.yOf(strip.reserved));
      pen.lineTo(strip.right, this.yOf(strip.reserved));
    }
    pen.stroke();
    this.paintFolds();
  }

  /* Pauses that the axis omits. */
  paintFolds() {
    const {spans} = this.model.source;
    for (let at = 2; !this.model.byEvent && at < spans.length; at += 2) {
      const x = this.pixelOf(this.model.position(spans[at], 0));
      this.line(x, this.plot.y, x, this.plot.y + this.plot.height, this.ink.axis, [2, 3]);
    }
  }

  paintSelection() {
    const {pen, model, owner} = this;
    const {y, height} = this.plot;
    if (!owner.isWhole()) {
      const left = this.pixelOf(model.x[owner.first]);
      const right = this.pixelOf(model.x[owner.last + 1]);
      pen.fillStyle = this.ink.link;
      pen.globalAlpha = 0.14;
      pen.fillRect(left, y, Math.max(right - left, 1), height);
      pen.globalAlpha = 1;
    }
    const mark = this.pixelOf(model.x[owner.at]);
    this.line(mark, y, mark, y + height, this.ink.link);
    if (this.pointer) this.line(this.pointer.x, y, this.pointer.x, y + height, this.ink.muted, [3, 3]);
  }

  /* Cells of a row below the plot, each [left, right, fill, name]; a cell keeps its place. */
  paintRow(cells, y) {
    const {pen} = this;
    let filled = this.plot.x;
    for (const [from, to, fill, name] of cells) {
      const left = Math.max(this.pixelOf(from), filled), right = this.pixelOf(to);
      if (right < this.plot.x || left > this.plot.x + this.plot.width || right <= filled) continue;
      filled = right;
      pen.fillStyle = fill;
      pen.fillRect(left, y, Math.max(right - left - (right - left > 3 ? 1 : 0), 0.5), ROWS.height);
      const visible = Math.min(right, this.plot.x + this.plot.width) - left;
      if (pen.measureText(name).width + 6 <= visible)
        this.text(name, left + visible / 2, y + 13, 'center', fill === this.ink.panel
          ? this.ink.muted : this.ink.text);
    }
  }

  paintRows() {
    const bottom = this.plot.y + this.plot.height;
    this.paintRow(this.stepRanges().map((each) =>
      [each.from, each.to, this.ink.panel, each.name]), bottom + ROWS.steps);
    this.paintRow(this.phaseRanges().map((each) =>
      [each.from, each.to, this.ink.phases[each.color], each.name]), bottom + ROWS.phases);
    const {model} = this;
    this.pen.fillStyle = this.ink.link; // where each event has a column
    for (let at = 0; at < model.source.exact.length; at += 2) {
      const [first, count] = model.source.exact.slice(at, at + 2);
      const left = this.pixelOf(model.x[first]), right = this.pixelOf(model.x[first + count]);
      this.pen.fillRect(left, bottom + 1, Math.max(right - left, 2), 2);
    }
  }

  stepRanges() {
    return this.model.stepRanges();
  }

  phaseRanges() {
    return this.model.phaseRanges();
  }

  paintTicks() {
    const {model, plot} = this;
    const y = plot.y + plot.height + 15;
    const step = tickStep((this.to - this.from) / Math.max(plot.width / 110, 2));
    if (model.byEvent) {
      const whole = Math.max(1, step);
      for (let at = Math.ceil(model.valueAt(this.from) / whole) * whole;
        at <= model.valueAt(this.to); at += whole)
        this.tick(model.position(0, at), formatCount(at), y);
      return;
    }
    const [unit, size] = data.end >= 1e9 ? ['s', 1e9] : data.end >= 1e6 ? ['ms', 1e6] : ['µs', 1e3];
    const decimals = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9)));
    let last = -Infinity;
    for (let at = Math.ceil(model.valueAt(this.from) / step) * step;
      at <= model.valueAt(this.to) && at >= 0; at = this.nextTick(at + step, step)) {
      const x = model.position(at, 0);
      if (this.pixelOf(x) - last < 60) continue;
      last = this.pixelOf(x);
      this.tick(x, `${(at / size).toFixed(decimals)} ${unit}`, y);
    }
  }

  /* The next tick that is not in a pause. */
  nextTick(at, step) {
    const {spans} = this.model.source;
    for (let i = 0; i < spans.length; i += 2)
      if (at <= spans[i + 1]) return Math.max(at, Math.ceil(spans[i] / step) * step);
    return Infinity;
  }

  tick(x, words, y) {
    const pixel = this.pixelOf(x), {plot} = this;
    const half = this.pen.measureText(words).width / 2;
    this.line(pixel, plot.y + plot.height, pixel, plot.y + plot.height + 4, this.ink.axis);
    this.text(words, Math.min(Math.max(pixel, plot.x + half), plot.x + plot.width - half), y, 'center');
  }

  /* The life of the block that was picked: a line from its birth to its end. */
  paintPicked() {
    if (!picked || picked.model.source !== this.model.source) return;
    const {model} = this, y = this.plot.y + 5;
    const left = picked.isOlder() ? this.plot.x
      : this.pixelOf(model.position(picked.birth, picked.event));
    const right = this.pixelOf(picked.endEvent < 0 ? model.length
      : model.position(picked.end, picked.endEvent));
    this.pen.fillStyle = this.ink.link;
    this.pen.fillRect(left, y - 2, Math.max(right - left, 3), 4);
    this.label(picked.title(), Math.max(left, this.plot.x), y + 16, this.ink.link);
  }

  paintMarks() {
    const {source} = this.model;
    this.paintPicked();
    for (let at = 0; at < source.ooms.length; at += 3) {
      const x = this.pixelOf(this.model.position(source.ooms[at], source.ooms[at + 1]));
      this.line(x, this.plot.y - 4, x, this.plot.y + this.plot.height, this.ink.bad);
      if (at + 3 === source.ooms.length)
        this.label(`out of memory: ${formatBytes(source.ooms[at + 2])}`, x, this.plot.y - 5, this.ink.bad);
    }
    const [t, event, bytes] = source.peak;
    const x = this.pixelOf(this.model.position(t, event)), y = this.yOf(bytes);
    this.pen.fillStyle = this.ink.text;
    this.pen.beginPath();
    this.pen.arc(x, y, 3.5, 0, 7);
    this.pen.fill();
    const words = `peak ${formatBytes(bytes)}`;
    this.label(words, x, Math.max(this.clearOfReserved(words, x, y - 3), 12), this.ink.text);
  }

  /* A base line for a label at y or, if the line of reserved memory is there, above that line. */
  clearOfReserved(words, x, y) {
    const room = this.pen.measureText(words).width + 10;
    const lines = this.strips.filter((strip) => strip.right > x - room && strip.left < x + room)
      .map((strip) => this.yOf(strip.reserved)).filter((line) => line > y - 14 && line < y + 6);
    return Math.min(y, ...lines.map((line) => line - 6));
  }

  /* A label beside a mark, on its own ground; within the plot. */
  label(words, x, y, color) {
    const {pen, plot} = this, width = pen.measureText(words).width;
    if (x < plot.x || x > plot.x + plot.width) return;
    const left = x + 7 + width > plot.x + plot.width ? Math.max(x - 7 - width, plot.x + 3) : x + 7;
    pen.fillStyle = this.ink.background;
    pen.globalAlpha = 0.85;
    pen.fillRect(left - 3, y - 12, width + 6, 16);
    pen.globalAlpha = 1;
    this.text(words, left, y, 'left', color);
  }
}

/* Colors of the theme that is shown. */
let inks = null;

function inkOfTheme() {
  if (inks && inks.isDark === isDark()) return inks;
  const style = getComputedStyle(document.documentElement);
  const probe = document.body.appendChild(element('i', {class: 'probe'}));
  const colorOf = (name) => {
    probe.className = `probe ${name}`;
    return getComputedStyle(probe).backgroundColor;
  };
  inks = {
    isDark: isDark(), roles: data.roles.map((_, role) => colorOf(`role${role}`)),
    phases: Array.from({length: 11}, (_, phase) => colorOf(`phase${phase}`)),
  };
  for (const name of ['background', 'panel', 'grid', 'axis', 'text', 'muted', 'reserved', 'bad', 'link'])
    inks[name] = style.getPropertyValue(`--${name}`).trim();
  probe.remove();
  return inks;
}
