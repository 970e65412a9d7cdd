/* A chart of the page that can be enlarged, moved and clicked: blocks, addresses. */

/* Ticks of bytes between two values, in the largest unit in which they have at most two decimals. */
function byteTicksBetween(low, high, most) {
  let unit = UNITS.length - 1;
  const stepOf = () => tickStep((high - low) / most / 1024 ** unit);
  while (unit && stepOf() < 0.01) unit--;
  const step = unit ? stepOf() : Math.max(1, stepOf()), ticks = [];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  const words = (at) => (at * step).toFixed(decimals).replace(/^\d+/, formatCount);
  for (let at = Math.ceil(low / 1024 ** unit / step); at * step * 1024 ** unit <= high; at++)
    ticks.push({bytes: at * step * 1024 ** unit, text: `${words(at)} ${UNITS[unit]}`});
  return ticks;
}

/* A chart that can be enlarged, moved and clicked. */
class Picture {
  constructor(figure, blocks) {
    this.figure = figure;
    this.chart = figure.dataset.chart;
    this.blocks = blocks;
    this.svg = figure.querySelector('svg');
    this.findParts();
    this.panel = new Panel();
    this.nameBlocks();
    const button = (text, label, onclick) =>
      element('button', {type: 'button', text, 'aria-label': label, onclick});
    figure.before(element('div', {class: 'chart-bar'},
      element('span', {class: 'small', text: this.hint()}),
      button('+', 'enlarge', () => this.zoom(0.5)), button('−', 'reduce', () => this.zoom(2)),
      button('all', 'all of the chart', () => this.fit())));
    figure.after(this.panel.box);
    this.fit();
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
    const what = this.blocks.size ? 'a block to see its stack'
      : this.chart === 'address' ? 'a segment to see its size and address'
        : 'a block to see its size';
    return `Click ${what}. To zoom in, double-click, press + or turn the wheel with Ctrl; drag to move.`;
  }

  /* ---- the parts that follow the view ---- */

  /* See mt_zoom_begin. A part with a box becomes an SVG of its own, whose view box is the visible
   * part. */
  findParts() {
    this.panes = [];
    this.points = [];
    for (const group of this.svg.querySelectorAll('g[data-zoom]')) {
      const [kind, ...rest] = group.dataset.zoom.split(' ');
      const numbers = rest.map(Number);
      if (kind === 'bytes') this.bytes = {group, top: numbers[0]};
      else if (kind === 'events' || kind === 'times') this.ticks = {group, kind, numbers};
      else if (numbers.length === 2) this.points.push({group, kind, x: numbers[0], y: numbers[1]});
      else this.panes.push(this.paneOf(group, kind, numbers));
    }
    const plot = this.panes.find((pane) => pane.kind === 'xy');
    this.whole = plot ? plot.box : {x: 0, y: 0, width: 1, height: 1};
    for (const axis of [this.bytes, this.ticks]) {
      if (!axis) continue;
      axis.now = drawn('g', {class: 'mt-axis'});
      axis.group.after(axis.now);
    }
  }

  paneOf(group, kind, [x, y, width, height]) {
    const svg = drawn('svg', {x, y, width, height, preserveAspectRatio: 'none', class: 'pane'});
    group.before(svg);
    svg.append(group);
    const rigid = [...group.querySelectorAll('text, circle')].map((node) => ({
      node, transform: node.getAttribute('transform') || '',
      x: node.getAttribute('x') || node.getAttribute('cx'),
      y: node.getAttribute('y') || node.getAttribute('cy'),
    }));
    return {svg, kind, box: {x, y, width, height}, rigid};
  }

  fit() {
    this.lookAt(this.whole.x, this.whole.y, this.whole.width);
  }

  /* Shows a part of the plot. Axes stay at its edges, and texts keep their size. */
  lookAt(x, y, width) {
    const {whole} = this;
    this.width = Math.max(whole.width / 64, Math.min(width, whole.width));
    this.height = this.width * whole.height / whole.width;
    this.x = Math.max(whole.x, Math.min(x, whole.x + whole.width - this.width));
    this.y = Math.max(whole.y, Math.min(y, whole.y + whole.height - this.height));
    this.scale = whole.width / this.width;
    this.svg.dataset.view = `${this.x} ${this.y} ${this.width} ${this.height}`;
    this.svg.classList.toggle('mt-enlarged', this.isEnlarged());
    for (const pane of this.panes) this.showPane(pane);
    for (const point of this.points) this.showPoint(point);
    this.showAxes();
  }

  showPane({svg, kind, box, rigid}) {
    const [x, width] = kind.includes('x') ? [this.x, this.width] : [box.x, box.width];
    const [y, height] = kind.includes('y') ? [this.y, this.height] : [box.y, box.height];
    svg.setAttribute('viewBox', `${x} ${y} ${width} ${height}`);
    for (const each of rigid) {
      each.node.setAttribute('transform', `translate(${each.x} ${each.y}) ` +
        `scale(${width / box.width} ${height / box.height}) translate(${-each.x} ${-each.y}) ${each.transform}`);
    }
  }

  toPixelX(x) {
    return this.whole.x + (x - this.x) * this.scale;
  }

  toPixelY(y) {
    return this.whole.y + (y - this.y) * this.scale;
  }

  showPoint({group, kind, x, y}) {
    const isInside = x >= this.x && x <= this.x + this.width &&
      (kind === 'mark' || (y >= this.y && y <= this.y + this.height));
    group.style.display = isInside ? '' : 'none';
    group.setAttribute('transform', `translate(${this.toPixelX(x) - x} ` +
      `${kind === 'mark' ? 0 : this.toPixelY(y) - y})`);
  }

  /* ---- axes: those of the drawing, or of the visible part ---- */

  showAxes() {
    for (const axis of [this.bytes, this.ticks]) {
      if (!axis) continue;
      axis.group.style.display = this.isEnlarged() ? 'none' : '';
      axis.now.replaceChildren();
    }
    if (!this.isEnlarged()) return;
    if (this.bytes) this.drawBytes();
    if (this.ticks) this.drawTicks();
  }

  /* A text in the style of those that it replaces. */
  write({group, now}, words, x, y) {
    const like = group.querySelector('text');
    if (!like) return;
    const text = drawn('text', {x, y, class: like.getAttribute('class'), 'font-size': like.getAttribute('font-size')});
    text.textContent = words;
    now.append(text);
  }

  drawBytes() {
    const {whole, bytes} = this, line = [...bytes.group.querySelectorAll('path')].pop();
    const valueAt = (y) => bytes.top * (whole.y + whole.height - y) / whole.height;
    const low = valueAt(this.y + this.height), high = valueAt(this.y);
    for (const tick of byteTicksBetween(low, high, Math.max(2, whole.height / 45))) {
      const y = this.toPixelY(whole.y + whole.height * (1 - tick.bytes / bytes.top));
      bytes.now.append(drawn('path', {d: `M${whole.x} ${y}h${whole.width}`, class: line.getAttribute('class')}));
      this.write(bytes, tick.text, whole.x - 9, y + 4.5);
    }
  }

  drawTicks() {
    const {whole, ticks} = this, [base, ...numbers] = ticks.numbers, spans = [];
    for (let at = 0; at < numbers.length; at += 4) spans.push(numbers.slice(at, at + 4));
    const ends = spans[spans.length - 1][3];
    const drawnWidth = spans.reduce((sum, [left, right]) => sum + right - left, 0);
    const shown = spans.reduce((sum, [, , begin, end]) => sum + end - begin, 0) / drawnWidth * this.width;
    const isTime = ticks.kind === 'times';
    const step = Math.max(isTime ? 0 : 1, tickStep(shown / Math.max(whole.width / 110, 2)));
    const [unit, size] = !isTime ? ['', 1] : ends >= 1e9 ? ['s', 1e9] : ends >= 1e6 ? ['ms', 1e6] : ['µs', 1e3];
    const decimals = isTime ? Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9))) : 0;
    for (const [left, right, begin, end] of spans) {
      const xOf = (value) => this.toPixelX(left + (value - begin) / (end - begin) * (right - left));
      const first = begin + (this.x - left) / (right - left) * (end - begin);
      for (let at = Math.ceil(Math.max(begin, first) / step) * step; at <= end; at += step) {
        const x = xOf(at);
        if (x > whole.x + whole.width) break;
        ticks.now.append(drawn('path', {d: `M${x} ${base}v4`, class: ticks.group.querySelector('path').getAttribute('class')}));
        this.write(ticks, isTime ? `${(at / size).toFixed(decimals)} ${unit}` : formatCount(at), x, base + 18);
      }
    }
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

  /* The point of the plot that is drawn there. */
  pointOf(event) {
    const point = new DOMPoint(event.clientX, event.clientY)
      .matrixTransform(this.svg.getScreenCTM().inverse());
    return {x: this.x + (point.x - this.whole.x) / this.scale,
      y: this.y + (point.y - this.whole.y) / this.scale};
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
      if (!(event.buttons & 1)) from = null; // released outside of the chart
      if (!from) return;
      const dx = event.clientX - from.x, dy = event.clientY - from.y;
      if (!moved && Math.hypot(dx, dy) < 4) return;
      moved = true;
      if (!this.isEnlarged()) return;
      this.svg.setPointerCapture(event.pointerId);
      const scale = this.svg.getScreenCTM().a * this.scale;
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
    if (this.chart === 'blocks' && shape.tagName === 'rect') {
      this.panel.showStack(lines[0], this.callersOf(shape), 'called by, innermost first:');
      return;
    }
    const count = formatCount(this.blocks.size);
    if (this.chart === 'address')
      lines.push(`None of the ${count} blocks that have a row in this page lies here.`);
    this.panel.showLines(lines);
  }

  /* Cells of the rows above a call below the blocks, around its middle. */
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
