/* One device on the page: the selected time and the filter, and what shows them: the timeline, the
 * panel beside it, the icicle and the table of live blocks. */

const COLUMNS = ['bytes', 'share', 'blocks', 'role', 'phase', 'site'];

class Explorer extends Filtered {
  constructor(section, source) {
    super();
    this.section = section;
    this.index = source.device;
    this.model = new Model(source);
    this.first = 0;
    this.last = this.model.columnCount - 1;
    this.at = this.model.fullest(0, this.last);
    this.rangeStart = -1; // the end that stays while keys extend a range
    this.pinned = null; // the group that was clicked
    this.chosen = null;
    this.icicle = new CallIcicle(this);
    this.by = 'site';
    this.sort = {column: 'bytes', down: true};
    this.table = section.querySelector('table.live');
    this.heading = section.querySelector('.alive');
    const figure = document.getElementById(`timeline-${source.device}`);
    const aside = document.getElementById(`side-${source.device}`);
    this.timeline = figure && new Timeline(this, figure);
    this.panel = aside && new SelectionPanel(this, aside);
    this.build();
    for (const part of [section, figure, aside]) {
      if (!part) continue;
      part.addEventListener('pointerdown', () => { current = this; });
      part.addEventListener('focusin', () => { current = this; });
    }
  }

  build() {
    const {icicle} = this;
    this.when = element('p', {class: 'when', 'aria-live': 'polite'});
    const peak = element('button', {
      type: 'button', text: 'Back to the peak', class: 'peak', onclick: () => this.reset(),
    });
    this.explore = element('div', {class: 'explore'}, element('div', {class: 'bar'}, this.when, peak),
      icicle.crumbs, icicle.ruler, icicle.cells, icicle.dropped);
    const still = this.section.querySelector('[data-chart="icicle"]');
    if (still) {
      still.hidden = true;
      still.before(this.explore);
      this.explore.id = still.id; // target of links to the icicle
      still.removeAttribute('id');
    } else {
      this.section.prepend(this.explore);
    }
    this.buildTable();
  }

  /* ---- the selection ---- */

  select(first, last, group) {
    const most = this.model.columnCount - 1;
    this.first = Math.max(0, Math.min(first, most));
    this.last = Math.max(this.first, Math.min(last, most));
    this.pinned = group || null;
    this.rangeStart = -1;
    this.show();
  }

  isWhole() {
    return this.first === 0 && this.last === this.model.columnCount - 1;
  }

  reset() {
    this.icicle.focus = -1;
    this.select(0, this.model.columnCount - 1);
    if (this.timeline) this.timeline.reveal(this.at);
    remember();
  }

  /* Moves the instant, or one end of the range; the other end is where the range began. */
  step(by, extend) {
    const [first, last] = this.isWhole() ? [this.at, this.at] : [this.first, this.last];
    /* a range that was not made here is extended at its end */
    const start = this.rangeStart === last ? last : first;
    const from = !extend ? this.at : start === first ? last : first;
    const end = Math.max(0, Math.min(from + by, this.model.columnCount - 1));
    if (extend) this.select(Math.min(start, end), Math.max(start, end));
    else this.select(end, end);
    this.rangeStart = start;
    if (this.timeline) this.timeline.reveal(end);
    remember();
  }

  /* The allocated peak as the selected instant. */
  showPeak() {
    this.icicle.focus = -1;
    const peak = this.model.fullest(0, this.model.columnCount - 1);
    this.select(peak, peak);
    if (this.timeline) this.timeline.reveal(peak);
    remember();
  }

  /* The blocks of a leaf of the icicle, one by one, beside the timeline. */
  showLeaf(group) {
    if (this.panel) this.panel.way = 'block';
    this.select(this.at, this.at, group);
    if (this.timeline) this.timeline.reveal(this.at);
    if (this.panel) this.panel.box.scrollIntoView({block: 'nearest'});
    remember();
  }

  /* ---- the filter ---- */

  /* The groups that pass the filter and match the search; null: all. */
  choose() {
    const found = search.groupsOf(this.model);
    if (!this.filter.size) return found;
    return this.model.groups.map((group) => (!found || found[group.index]) &&
      this.filter.passes((way) => this.model.nameOf(group, way)));
  }

  /* ---- showing ---- */

  show() {
    this.at = this.model.fullest(this.first, this.last);
    this.state = this.model.stateAt(this.at);
    this.chosen = this.choose();
    this.showInstant();
    if (this.timeline) this.timeline.draw();
    if (this.panel) this.panel.show();
    this.icicle.show(growTree(this.model, this.state, this.chosen));
    this.showTable();
  }

  showInstant() {
    const {source, totals, where, t, event} = this.model;
    const bytes = totals[this.at];
    const part = this.isWhole() ? 'The allocated peak' :
      this.first === this.last ? 'The selected instant' : 'The fullest instant of the range';
    const command = commandCode(this.command());
    this.when.replaceChildren(
      element('strong', {text: `${part}: ${formatBytes(bytes)}`}),
      ` (${formatCount(bytes)} B) allocated${where[this.at] ? `, ${where[this.at]}` : ''}, ` +
      `at ${formatWhen(t[this.at], event[this.at])} · `,
      command, copyButton(command));
    this.heading.textContent = `Alive at ${part[0].toLowerCase()}${part.slice(1)}`;
    this.when.dataset.event = event[this.at];
    this.when.dataset.bytes = bytes;
  }

  command() {
    const device = data.devices.length > 1 ? ` --device ${this.index}` : '';
    return `${data.live} --at ${this.model.event[this.at]}${device}`;
  }

  /* ---- table ---- */

  buildTable() {
    this.caption = this.table.querySelector('caption') || this.table.createCaption();
    this.choice = this.model.ways({
      'aria-label': 'rows of the table',
      onchange: () => { this.by = this.choice.value; this.showTable(); remember(); },
    });
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
    if (this.by === 'site' && group.detail !== 3)
      return `${group.role}\n${group.phase}\n${group.site}`;
    if (this.by === 'site') return `small ${group.role}`;
    return this.model.nameOf(group, this.by);
  }

  rows() {
    const rows = new Map();
    this.model.groups.forEach((group, index) => {
      const bytes = this.state.bytes[index];
      if (!bytes || (this.chosen && !this.chosen[index])) return;
      const key = this.keyOf(group);
      const row = rows.get(key) ||
        {site: this.model.nameOf(group, this.by), roles: new Set(), phases: new Set(), bytes: 0, blocks: 0};
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
      this.chosen ? `of this selection, of ${formatBytes(total)}` : 'in total'}, total));
    markSorted(this.table.tHead.rows[0].cells, COLUMNS.indexOf(column), down);
    this.choice.value = this.by;
    this.caption.replaceChildren('Live blocks ', this.choice);
    showWholeRows(this.table);
    search.tell(this, sum);
  }
}

/* The call tree at the selected instant. */
class CallIcicle extends Icicle {
  constructor(explorer) {
    super('what holds memory, by call stack');
    this.explorer = explorer;
    this.ruler = element('div', {class: 'ruler', 'aria-hidden': 'true'});
    this.cells.addEventListener('click', (event) => {
      const leaf = event.target.closest('[data-group]');
      if (leaf) explorer.showLeaf(explorer.model.groups[leaf.dataset.group]);
    });
  }

  show(tree) {
    this.tree = tree;
    this.draw();
  }

  zoomIn() {
    const inner = this.below(this.focus).find((child) => child.node >= 0);
    if (inner) this.zoom(inner.node);
  }

  zoomOut() {
    if (this.focus >= 0) this.zoom(this.explorer.model.parents[this.focus]);
  }

  root() {
    const {model, at} = this.explorer, bytes = model.totals[at];
    return {node: -1, bytes, found: bytes, name: 'all'};
  }

  cellOf(node) {
    const bytes = this.tree.sums[node];
    return {node, bytes, found: bytes, name: this.explorer.model.nodeName(node)};
  }

  below(node) {
    return this.tree.children.get(node) || [];
  }

  pathOf(node) {
    return this.explorer.model.pathOf(node);
  }

  sizeOf(cell) {
    return cell.bytes;
  }

  bytesOf(cell) {
    return cell.bytes;
  }

  addCell(child, left, width, row, isAbove) {
    const {model, at, chosen} = this.explorer;
    const isLeaf = child.node < 0 && child.group;
    const kind = isLeaf ? `role${child.group.role}`
      : child.node < 0 ? 'root0' : `origin${model.nodeOrigin(child.node)}`;
    const total = model.totals[at];
    const role = isLeaf ? `, ${data.roles[child.group.role]}` : '';
    const small = isLeaf && child.group.site && child.group.detail > 1 ? ` of ${child.group.site}` : '';
    const pixels = width * this.width;
    const cell = element('div', {
      class: `cell ${kind}${isAbove ? ' above' : ''}${chosen && !child.found ? ' dim' : ''}` +
        (search.pattern && search.pattern.test(child.name) ? ' hit' : ''),
      title: `${child.name}${small}${role}\n${formatBytes(child.bytes)} ` +
        `(${formatCount(child.bytes)} B), ${formatShare(child.bytes, total)}`,
      'data-bytes': child.bytes,
      style: {left: `${100 * left}%`, width: `${100 * width}%`, top: `${row * ROW_HEIGHT}px`},
    });
    if (isLeaf) cell.dataset.group = child.group.index;
    else cell.dataset.node = child.node;
    const name = isLeaf ? this.leafText(child, pixels) : pixels > 26 ? child.name : '';
    if (name) cell.append(element('span', {class: 'name', text: name}));
    if (pixels > 130 && !isLeaf)
      cell.append(element('span', {class: 'size', text: formatBytes(child.bytes)}));
    this.cells.append(cell);
  }

  /* The whole name, or the bytes, or nothing: a truncated number would be a different number. */
  leafText(leaf, pixels) {
    const room = pixels - 9;
    return [leaf.name, formatBytes(leaf.bytes)].find((text) => this.textWidth(text) <= room) || '';
  }

  crumb(node) {
    return node < 0 ? `all ${formatBytes(this.root().bytes)}` : this.explorer.model.nodeName(node);
  }

  showWords(shown) {
    const ticks = byteTicks(shown, Math.max(3, Math.floor(this.width / 110)));
    this.ruler.replaceChildren(...ticks.filter((tick) => tick.bytes < shown).map((tick) =>
      element('span', {
        text: tick.text, 'data-bytes': tick.bytes, style: {left: `${100 * tick.bytes / shown}%`},
      })));
    const {bytes} = this.narrow;
    this.dropped.textContent = !shown && this.focus >= 0 ? 'None of this is alive at that time.'
      : this.narrowWords(`${formatBytes(bytes)}, ${formatShare(bytes, shown)}`);
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
