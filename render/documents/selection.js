/* The panel beside the timeline: what an instant holds, or what a range of time changed, allocated,
 * freed, kept, and in which order. It replaces the answers while something is selected. */

const VIEWS = [
  ['change', 'Grew'], ['allocated', 'Allocated'], ['freed', 'Freed'], ['survived', 'Survived'],
  ['events', 'Events'], ['held', 'Held'],
];
const MAX_ROWS = 200;

class SelectionPanel {
  constructor(owner, aside) {
    this.owner = owner;
    this.model = owner.model;
    this.aside = aside;
    this.answers = [...aside.children];
    this.view = 'change';
    this.way = 'site';
    this.tabs = element('div', {class: 'tabs', role: 'tablist'});
    for (const [view, text] of VIEWS) {
      this.tabs.append(element('button', {
        type: 'button', role: 'tab', text, 'data-view': view, onclick: () => this.setView(view),
      }));
    }
    this.choice = this.model.ways({
      'aria-label': 'rows', onchange: () => { this.way = this.choice.value; this.show(); remember(); },
    });
    this.single = element('option', {value: 'block', text: 'single blocks'});
    this.choice.append(this.single);
    this.title = element('p', {class: 'title'});
    this.group = element('div', {class: 'group'});
    this.body = element('div', {class: 'rows'});
    this.note = element('p', {class: 'small'});
    this.box = element('div', {class: 'selection', 'aria-live': 'polite'},
      element('div', {class: 'bar'}, this.title, element('button', {
        type: 'button', text: 'close', onclick: () => owner.reset(),
      })),
      this.group, element('div', {class: 'bar'}, this.tabs, this.choice), this.body, this.note);
    aside.append(this.box);
  }

  setView(view) {
    this.view = VIEWS.some(([each]) => each === view) ? view : 'change';
    this.show();
    remember();
  }

  show() {
    const {owner} = this;
    const isOpen = !owner.isWhole() || Boolean(owner.pinned);
    this.box.hidden = !isOpen;
    for (const each of this.answers) each.hidden = isOpen;
    if (!isOpen) return;
    const isRange = owner.first < owner.last;
    const view = isRange ? this.view : 'held';
    this.tabs.hidden = !isRange;
    for (const tab of this.tabs.children)
      tab.setAttribute('aria-selected', String(tab.dataset.view === view));
    this.single.hidden = view !== 'held';
    this.choice.value = view === 'held' ? this.way : this.sumWay();
    this.choice.hidden = view === 'events' || view === 'survived';
    this.showTitle(isRange);
    this.showGroup();
    this.note.textContent = '';
    this.body.dataset.view = view;
    if (view === 'events') this.showEvents();
    else if (view === 'survived') this.showSurvivors();
    else if (view === 'held' && this.way === 'block') this.showBlocks();
    else this.showSums(view);
  }

  showTitle(isRange) {
    const {model, owner} = this;
    if (!isRange) {
      this.title.textContent = `${formatBytes(model.totals[owner.at])} allocated ` +
        `${model.where[owner.at] ? `in ${model.where[owner.at]} ` : ''}` +
        `at ${formatWhen(model.t[owner.at], model.event[owner.at])}`;
      return;
    }
    const before = model.firstChange(owner.first) - 1, {last} = owner;
    const change = model.totals[last] - (before < 0 ? 0 : model.totals[before]);
    const from = before < 0 ? 'the start'
      : formatWhen(model.t[before], model.event[before]);
    this.title.textContent = `${formatChange(change)} from ${from} to ` +
      formatWhen(model.t[last], model.event[last]);
    this.title.dataset.bytes = change;
  }

  /* The group that was clicked: its stack. */
  showGroup() {
    const group = this.owner.pinned;
    this.group.hidden = !group;
    if (!group) return this.group.replaceChildren();
    const frames = group.node < 0 ? [] : this.model.pathOf(group.node).reverse();
    this.group.replaceChildren(
      element('strong', {text: this.owner.state.blocks[group.index]
        ? leafName(group, this.owner.state.blocks[group.index]) : 'freed'}),
      element('div', {text: `${data.roles[group.role]}, ${this.model.nameOf(group, 'site')}` +
        (group.phase ? `, allocated in ${group.phase}` : '')}),
      element('ol', {class: 'stack'}, ...frames.map((node) =>
        element('li', {text: this.model.nodeName(node)}))));
  }

  /* ---- sums ---- */

  /* What a row of sums is about. Only an instant has single blocks. */
  sumWay() {
    return this.way === 'block' ? 'site' : this.way;
  }

  /* The bytes and blocks of every group that a view counts. */
  sums(view) {
    const {model, owner} = this;
    if (view === 'held') return owner.state;
    const first = model.firstChange(owner.first);
    if (view === 'change') return model.sumOf(first, owner.last);
    const bytes = new Float64Array(model.groups.length), blocks = new Float64Array(bytes.length);
    const sign = view === 'freed' ? -1 : 1;
    const add = (group, change, count) => {
      bytes[group] += change;
      blocks[group] += count;
    };
    if (hasAllBlocks(model)) {
      for (const block of this.flow(view)) add(block.group, sign * block.bytes, sign);
    } else {
      model.eachChange(first, owner.last, (group, change, count) => {
        if (change * sign > 0) add(group, change, count);
      });
    }
    return {bytes, blocks};
  }

  /* Blocks that were allocated, or freed, between the instants that the range begins and ends with. */
  flow(view) {
    const {model, owner} = this, before = model.firstChange(owner.first) - 1;
    const from = before < 0 ? model.source.events[0] : model.event[before] + 1;
    const to = model.event[owner.last], isIn = (event) => from <= event && event <= to;
    return blocksOf(model).filter((block) =>
      (view === 'freed' ? isIn(block.endEvent) : !block.isOlder() && isIn(block.event)));
  }

  showSums(view) {
    const {model, owner} = this, {bytes, blocks} = this.sums(view);
    const rows = new Map();
    let sum = 0;
    for (const group of model.groups) {
      if (!bytes[group.index] || (owner.chosen && !owner.chosen[group.index])) continue;
      const name = model.nameOf(group, this.sumWay());
      const row = rows.get(name) || {name, role: group.role, bytes: 0, blocks: 0, most: 0};
      row.bytes += bytes[group.index];
      row.blocks += blocks[group.index];
      sum += bytes[group.index];
      if (Math.abs(bytes[group.index]) > row.most) {
        row.most = Math.abs(bytes[group.index]);
        row.role = group.role;
      }
      rows.set(name, row);
    }
    const sorted = [...rows.values()].filter((row) => row.bytes)
      .sort((a, b) => (view === 'freed' ? a.bytes - b.bytes : b.bytes - a.bytes));
    const isLeast = (view === 'allocated' || view === 'freed') && !hasAllBlocks(model) &&
      !model.areExact(model.firstChange(owner.first), owner.last);
    this.fill([...sorted.slice(0, MAX_ROWS).map((row) => this.sumRow(row, view)),
      this.row('', view === 'held' ? formatBytes(sum) : formatChange(sum), '',
        isLeast ? 'in total, at least' : 'in total', sum)]);
    this.body.dataset.bytes = sum;
    if (view === 'held' && owner.first < owner.last)
      this.note.textContent = `At the fullest instant of the range, ${
        formatWhen(model.t[owner.at], model.event[owner.at])}.`;
    if (isLeast)
      this.note.textContent = 'At least: parts of the range have only sums of several events. ' +
        'Blocks that were allocated and freed within such a part are not counted.';
    if (sorted.length > MAX_ROWS)
      this.note.textContent += ` ${formatCount(sorted.length - MAX_ROWS)} smaller rows are not shown.`;
  }

  sumRow(row, view) {
    const bytes = view === 'held' ? formatBytes(row.bytes) : formatChange(row.bytes);
    const line = this.row(`role${row.role}`, bytes, formatCount(row.blocks), row.name, row.bytes);
    line.tabIndex = 0;
    line.title = `show only ${row.name}`;
    const act = () => this.owner.toggleFilter(this.sumWay(), row.name);
    line.addEventListener('click', act);
    line.addEventListener('keydown', (event) => { if (event.key === 'Enter') act(); });
    return line;
  }

  row(color, bytes, blocks, name, value) {
    return element('tr', {'data-v': value}, element('td', {}, element('i', {class: color})),
      element('td', {class: 'number', text: bytes}), element('td', {class: 'number', text: blocks}),
      element('td', {class: 'site', text: name}));
  }

  fill(rows) {
    this.body.replaceChildren(element('table', {}, element('tbody', {}, ...rows)));
  }

  /* ---- single blocks and events ---- */

  /* The blocks of the page that pass the filter and the search, the largest first. */
  blocks(isWanted) {
    const {chosen} = this.owner;
    return blocksOf(this.model).filter((block) => (!chosen || chosen[block.group]) && isWanted(block))
      .sort((a, b) => b.bytes - a.bytes || a.event - b.event);
  }

  showRows(blocks) {
    this.fill(blocks.slice(0, MAX_ROWS).map((block) => this.blockRow(block)));
    if (blocks.length > MAX_ROWS)
      this.note.textContent += ` The largest ${MAX_ROWS} are listed.`;
  }

  /* Blocks that were allocated in the range and live after it. */
  showSurvivors() {
    const {model, owner} = this, count = blocksOf(model).length;
    const from = model.beginEvent[owner.first], to = model.event[owner.last];
    const kept = this.blocks((block) => !block.isOlder() && block.event >= from &&
      block.event <= to && (block.endEvent < 0 || block.endEvent > to));
    const sum = kept.reduce((bytes, block) => bytes + block.bytes, 0);
    this.note.textContent = !count ? NO_BLOCKS
      : `${formatCount(kept.length)} of ${listed(count, [model.source])}: ` +
      `${formatBytes(sum)} allocated in the range${this.filtered()} and alive after it.`;
    this.showRows(kept);
  }

  filtered() {
    return this.owner.chosen ? ', within the filter or the search,' : '';
  }

  blockRow(block) {
    const line = this.row(`role${block.role}`, formatBytes(block.bytes), '',
      `${block.site}; freed ${block.freed()}`, block.bytes);
    const end = block.endEvent < 0 ? null : this.model.stepAt(block.endEvent);
    if (end) line.lastChild.append(' ', this.stepLink(end, `freed in ${end.name}`));
    line.tabIndex = 0;
    const act = () => { unpick(); pickBlock(block, null); remember(); };
    line.addEventListener('click', act);
    line.addEventListener('keydown', (event) => { if (event.key === 'Enter') act(); });
    return line;
  }

  /* A button that selects a step. */
  stepLink(step, text) {
    const act = (event) => {
      event.stopPropagation();
      this.owner.select(...step.columns);
      remember();
    };
    return element('button', {type: 'button', class: 'link', text, onclick: act,
      onkeydown: (event) => event.stopPropagation()});
  }

  /* The blocks that are alive at the instant, one by one; of the group that was clicked if any. */
  showBlocks() {
    const {model, owner} = this, count = blocksOf(model).length;
    const leaf = owner.pinned && leafKey(owner.pinned);
    const alive = this.blocks((block) => block.isAliveAt(model.event[owner.at]) &&
      (!leaf || leafKey(model.groups[block.group]) === leaf));
    const sum = alive.reduce((bytes, block) => bytes + block.bytes, 0);
    this.note.textContent = !count ? NO_BLOCKS
      : `${formatBytes(sum)} of ${formatBytes(model.totals[owner.at])} allocated: ` +
        `${formatCount(alive.length)} of ${listed(count, [model.source])} are alive then` +
        `${leaf ? ' and of the kind above' : ''}${this.filtered().replace(/,$/, '')}.`;
    this.showRows(alive);
  }

  /* Allocations and frees in order, where columns have a single event. */
  showEvents() {
    const {model, owner} = this, found = [];
    let inexact = 0, middle = 0;
    for (let at = owner.first; at <= owner.last; at++) {
      if (!model.isExact[at]) {
        inexact++;
        continue;
      }
      model.eachChange(at, at, (index, bytes) => {
        if (owner.chosen && !owner.chosen[index]) return;
        if (at <= owner.at) middle = found.length;
        found.push([at, model.groups[index], bytes]);
      });
    }
    /* the fullest instant is among those that are shown */
    const first = Math.max(0, Math.min(middle - MAX_ROWS / 2, found.length - MAX_ROWS));
    this.fill(found.slice(first, first + MAX_ROWS).map((each) => this.eventRow(...each)));
    const later = Math.max(found.length - first - MAX_ROWS, 0), parts = [];
    if (first || later)
      parts.push(`${formatCount(first)} earlier and ${formatCount(later)} later: select a shorter range.`);
    if (inexact) parts.push(`${formatCount(inexact)} parts of the range have only sums; events are ` +
      'kept one by one where the blue line is below the plot.');
    this.note.textContent = parts.join(' ');
  }

  eventRow(at, group, bytes) {
    const line = this.row(`role${group.role}`, formatChange(bytes), '',
      `${formatWhen(this.model.t[at], this.model.event[at])}: ${this.model.nameOf(group, 'site')}`, bytes);
    line.tabIndex = 0;
    line.dataset.event = this.model.event[at];
    const act = () => { this.owner.select(at, at, group); remember(); };
    line.addEventListener('click', act);
    line.addEventListener('keydown', (event) => { if (event.key === 'Enter') act(); });
    return line;
  }
}
