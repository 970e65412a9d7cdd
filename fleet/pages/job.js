/* The interactive part of a job's page: the user chooses a rank, and its course is drawn from the
 * data (described in job_page_data.h). Names come from files, so they are only inserted as text.
 *
 * The address has the rank: #rank=17, or #row=3 if a rank has several rows; and the one to compare
 * it with: &with=3, or &with-row=5. Without scripts the
 * page has everything except single ranks. */
(() => {
'use strict';

const data = JSON.parse(document.getElementById('mt-data').textContent);
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const LEVELS = 4095;
const MAX_BUTTONS = 24; // notable ranks that have one
const OUTCOMES = ['how it ended is unknown', 'it finished', 'it ran out of memory',
  'it ended with an error', 'it was ended by a signal', 'its recording was cut off'];

const text = (number) => data.strings[number];

/* ---- the data ------------------------------------------------------------ */

/* Levels of a curve, 0 to LEVELS; none if no time passed. */
function levelsOf(curve) {
  const levels = [], code = curve < 0 ? '' : data.curves[curve];
  for (let at = 0; at < code.length; at += 2) {
    if (code[at] === '~') {
      for (let n = DIGITS.indexOf(code[at + 1]); n >= 0; n--) levels.push(levels.at(-1));
    } else {
      levels.push(DIGITS.indexOf(code[at]) * 64 + DIGITS.indexOf(code[at + 1]));
    }
  }
  return levels;
}

const bytesOf = (rank, level) => rank.most * level / LEVELS;

/* A list of every row from its runs. */
function expand(runs, step) {
  const list = [];
  for (let at = 0; at < runs.length; at += 2)
    for (let n = 0; n < runs[at + 1]; n++) list.push(runs[at] + n * step);
  return list;
}

const index = data.index && {
  ranks: expand(data.index.ranks, 1),
  clusters: expand(data.index.clusters, 0),
  peaks: data.index.peaks,
  outcomes: data.index.outcomes,
};

const byRow = [...data.ranks].sort((a, b) => a.row - b.row);
const reasons = new Map(); // rank -> why it is notable
for (let at = 0; at < data.notable.length; at += 2)
  reasons.set(data.ranks[data.notable[at]], data.notable[at + 1]);

const findRank = (number) => byRow.find((rank) => rank.rank === number);

/* Finds a rank by its number, or by a part of the name of its host or trace. */
function search(words) {
  if (/^\d+$/.test(words)) return findRank(Number(words));
  return words && byRow.find((rank) =>
    [rank.name, rank.host, rank.trace].some((each) => text(each).includes(words)));
}

/* ---- the course of a rank ------------------------------------------------ */

const MARGIN = {left: 70, right: 12, top: 20, steps: 18, bottom: 40};

/* A step of an axis: a power of two for bytes, 1, 2 or 5 times a power of ten for time. */
const byteStep = (most, ticks) => 2 ** Math.ceil(Math.log2(Math.max(most, 1) / ticks));

function timeStep(most, ticks) {
  const least = Math.max(most, 1) / ticks, power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((each) => each * power >= least);
}

class Course {
  /* `other`: a rank whose allocated memory is drawn for comparison; or null. */
  constructor(rank, other, box, readout) {
    this.rank = rank;
    this.other = other;
    this.otherLevels = other ? levelsOf(other.allocated) : [];
    this.box = box;
    this.readout = readout;
    this.allocated = levelsOf(rank.allocated);
    this.reserved = levelsOf(rank.reserved);
    this.column = -1;
  }

  draw() {
    if (!this.allocated.length) {
      this.box.replaceChildren(element('p', {class: 'omitted', text: 'There is no curve: no time ' +
        'passed between the first and the last event of this rank.'}));
      this.readout.textContent = '';
      return;
    }
    const width = Math.max(260, this.box.clientWidth), height = width < 600 ? 230 : 300;
    const {rank} = this;
    this.left = MARGIN.left;
    this.width = width - MARGIN.left - MARGIN.right;
    this.base = height - MARGIN.bottom;
    this.height = this.base - MARGIN.top;
    this.highest = Math.max(rank.most, rank.peaks[1], rank.peaks[3], 1);
    const shows = this.limitBytes() > 0;
    if (shows) this.highest = Math.max(this.highest, this.limitBytes() * 1.06);
    if (this.other) this.highest = Math.max(this.highest, this.other.peaks[1]);
    this.svg = drawn('svg', {
      viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', tabindex: 0, class: 'course',
      'aria-label': `memory of ${text(rank.name)} over time; arrow keys move along it`});
    this.addAxes();
    this.addLevels();
    if (shows) this.addLimit();
    this.addSteps();
    this.addPeaks();
    this.cursor = this.add('line', {class: 'cursor', y1: MARGIN.top, y2: this.base, x1: -9, x2: -9});
    this.svg.addEventListener('pointermove', (event) => this.point(event));
    this.svg.addEventListener('pointerdown', (event) => this.point(event));
    this.svg.addEventListener('keydown', (event) => this.onKey(event));
    this.box.replaceChildren(this.svg);
    if (this.column >= 0) this.show(this.column);
  }

  add(name, attributes, words) {
    const made = drawn(name, attributes);
    if (words !== undefined) made.textContent = words;
    this.svg.append(made);
    return made;
  }

  x(ns) { return this.left + this.width * Math.min(1, this.rank.time ? ns / this.rank.time : 0); }
  y(bytes) { return this.base - this.height * Math.min(1, bytes / this.highest); }

  /* The allocator's limit, unless it is so far above the levels that it would flatten them. */
  limitBytes() {
    const {limit, device, most} = this.rank, bytes = limit || device;
    return bytes && bytes <= most * 1.5 ? bytes : 0;
  }

  addAxes() {
    const step = byteStep(this.highest, 7);
    for (let bytes = 0; bytes <= this.highest; bytes += step) {
      const y = this.y(bytes);
      this.add('line', {class: 'grid', x1: this.left, x2: this.left + this.width, y1: y, y2: y});
      this.add('text', {class: 'tick', x: this.left - 8, y: y + 4, 'text-anchor': 'end'},
        formatBytes(bytes));
    }
    const {time} = this.rank, every = timeStep(time, Math.max(2, Math.floor(this.width / 80)));
    for (let ns = 0; time && ns <= time; ns += every) {
      const anchor = this.x(ns) > this.left + this.width - 24 ? 'end' : 'middle';
      this.add('text', {class: 'tick', x: this.x(ns), y: this.base + 34, 'text-anchor': anchor},
        ns ? formatDuration(ns) : '0');
    }
  }

  /* Each column is as wide as its share of the time of its rank. */
  outline(levels, rank = this.rank) {
    const share = this.rank.time ? rank.time / this.rank.time : 1;
    const part = this.width * share / levels.length;
    let path = '';
    for (let at = 0; at < levels.length && part * at < this.width; at++) {
      const y = this.y(bytesOf(rank, levels[at])).toFixed(1);
      const right = this.left + Math.min(part * (at + 1), this.width);
      path += `${at ? 'V' : `M${this.left} `}${y}H${right.toFixed(1)}`;
    }
    return path;
  }

  addLevels() {
    const close = `V${this.base}H${this.left}Z`;
    this.add('path', {class: 'reserved-area', d: this.outline(this.reserved) + close});
    this.add('path', {class: 'allocated-area', d: this.outline(this.allocated) + close});
    this.add('path', {class: 'allocated-line', d: this.outline(this.allocated)});
    this.add('path', {class: 'reserved-line', d: this.outline(this.reserved)});
    if (this.otherLevels.length)
      this.add('path', {class: 'other-line', d: this.outline(this.otherLevels, this.other)});
  }

  addLimit() {
    const y = this.y(this.limitBytes());
    const name = this.rank.limit ? 'limit' : 'device';
    this.add('line', {class: 'limit', x1: this.left, x2: this.left + this.width, y1: y, y2: y});
    this.add('text', {class: 'tick', x: this.left + this.width, y: y - 5, 'text-anchor': 'end'},
      `${name} ${formatBytes(this.limitBytes())}`);
  }

  /* Marks at the starts of steps, with numbers that fit. */
  addSteps() {
    const {steps} = this.rank;
    let free = this.left - 4;
    for (let at = 0; at < steps.length; at += 2) {
      const x = this.x(steps[at + 1]), label = `step ${steps[at]}`;
      this.add('line', {class: 'step', x1: x, x2: x, y1: this.base, y2: this.base + 6});
      if (x - 2 < free || x + label.length * 7 > this.left + this.width) continue;
      this.add('text', {class: 'tick', x: x + 3, y: this.base + MARGIN.steps - 3}, label);
      free = x + label.length * 7 + 12;
    }
  }

  addPeaks() {
    const [allocatedAt, reservedAt] = this.rank.when;
    this.add('circle', {class: 'allocated-peak', r: 4, cx: this.x(allocatedAt),
      cy: this.y(this.rank.peaks[1])});
    this.add('circle', {class: 'reserved-peak', r: 4, cx: this.x(reservedAt),
      cy: this.y(this.rank.peaks[3])});
  }

  point(event) {
    const at = (event.clientX - this.svg.getBoundingClientRect().left - this.left) / this.width;
    if (at >= 0 && at <= 1)
      this.show(Math.min(this.allocated.length - 1, Math.floor(at * this.allocated.length)));
  }

  onKey(event) {
    const moves = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity};
    const move = moves[event.key], last = this.allocated.length - 1;
    if (move === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const by = event.shiftKey ? move * 16 : move;
    this.show(Math.max(0, Math.min(last, this.column < 0 ? (move < 0 ? last : 0) : this.column + by)));
  }

  stepAt(ns) {
    const {steps} = this.rank;
    let found = null;
    for (let at = 0; at < steps.length && steps[at + 1] <= ns; at += 2) found = at;
    return found;
  }

  show(column) {
    this.column = column;
    const ns = this.rank.time * (column + 0.5) / this.allocated.length;
    const at = this.stepAt(ns), {steps} = this.rank;
    const x = this.x(ns);
    this.cursor.setAttribute('x1', x);
    this.cursor.setAttribute('x2', x);
    this.readout.textContent = [
      formatDuration(ns),
      ...(at === null ? [] : [this.stepWords(at)]),
      `allocated ${formatBytes(Math.round(bytesOf(this.rank, this.allocated[column])))}`,
      `reserved ${formatBytes(Math.round(bytesOf(this.rank, this.reserved[column])))}`,
      ...(this.otherLevels.length ? [this.otherWords(ns)] : []),
    ].join(' · ');
  }

  otherWords(ns) {
    const at = Math.floor(ns / (this.other.time || 1) * this.otherLevels.length);
    if (at >= this.otherLevels.length) return `${text(this.other.name)} has ended`;
    return `${text(this.other.name)} allocated ` +
      formatBytes(Math.round(bytesOf(this.other, this.otherLevels[at])));
  }

  /* If there are many steps, only some have a mark. */
  stepWords(at) {
    const {steps, last} = this.rank;
    const next = at + 2 < steps.length ? steps[at + 2] - 1 : last;
    return next > steps[at] ? `steps ${steps[at]} to ${next}` : `step ${steps[at]}`;
  }
}

/* ---- all facts about a rank ----------------------------------------------- */

function table(id, titles, rows) {
  const heads = titles.map((title) => title.startsWith('#')
    ? element('th', {scope: 'col', class: 'number', text: title.slice(1)})
    : element('th', {scope: 'col', text: title}));
  const made = element('table', {class: 'job', id},
    element('thead', {}, element('tr', {}, ...heads)),
    element('tbody', {}, ...rows.map((cells) => element('tr', {}, ...cells.map((cell, at) => {
      const isNumber = titles[at].startsWith('#');
      return element('td', isNumber ? {class: 'number'} : at === titles.length - 1
        ? {class: 'site'} : {}, cell);
    })))));
  return element('div', {class: 'scroll'}, made);
}

function exact(bytes) {
  return element('span', {title: `${formatCount(bytes)} B`, text: formatBytes(bytes)});
}

function fact(name, ...words) {
  return element('div', {}, element('dt', {text: name}), element('dd', {}, ...words));
}

function placeOf(rank) {
  return rank.at.map((coordinate, at) => coordinate < 0 ? '' : `${data.axes[at]} ${coordinate}`)
    .filter((each) => each).join(', ');
}

/* The difference from its replicas. */
function replicasOf(rank) {
  if (rank.replicas < 2) return 'none: no other rank is equivalent to it';
  const more = rank.peaks[3] - rank.median;
  const difference = more ? `${more < 0 ? '−' : '+'}${formatBytes(Math.abs(more))} from` : 'equal to';
  return `${formatCount(rank.replicas)} with it; its reserved peak is ${difference} their median of ${
    formatBytes(rank.median)}`;
}

function factsOf(rank) {
  const facts = [
    fact('ended', text(rank.end)),
    fact('reserved peak', exact(rank.peaks[3]), ` after ${formatDuration(rank.when[1])}`),
    fact('allocated peak', exact(rank.peaks[1]), ` after ${formatDuration(rank.when[0])}`),
    fact('a device must have', rank.needed ? exact(rank.needed) : 'not known',
      rank.needed && !rank.exact ? ', at least' : ''),
    fact('replicas', replicasOf(rank)),
  ];
  if (rank.beside) {
    facts.push(fact('outside the allocator', exact(rank.beside[0]),
      rank.beside[1] < 0 ? '' : ` and a context of ${formatBytes(rank.beside[1])}`));
  }
  if (rank.growth >= 0)
    facts.push(fact('growth', rank.growth ? `${formatBytes(rank.growth)} per step` : 'none'));
  const place = placeOf(rank);
  if (place) facts.push(fact('place', place));
  if (text(rank.host)) facts.push(fact('host', text(rank.host)));
  if (rank.planned) facts.push(fact('planned', 'a dry run, not a run on a device'));
  if (text(rank.trace)) facts.push(fact('trace', text(rank.trace)));
  return element('dl', {class: 'rank-facts'}, ...facts);
}

function rolesOf(rank) {
  const whole = rank.held.reduce((sum, bytes) => sum + bytes, 0);
  const order = rank.held.map((bytes, role) => ({bytes, role})).filter((each) => each.bytes)
    .sort((a, b) => b.bytes - a.bytes);
  const bar = element('div', {class: 'roles', 'aria-hidden': 'true'}, ...order.map(({bytes, role}) =>
    element('span', {class: `role${role}`, title: `${data.roles[role]} ${formatBytes(bytes)}`,
      style: {flexGrow: bytes / whole}})));
  return [element('h4', {text: 'Roles at the allocated peak'}), bar,
    table('rank-roles', ['#bytes', '#share', 'role'], order.map(({bytes, role}) =>
      [exact(bytes), formatShare(bytes, whole),
        element('span', {}, element('i', {class: `chip role${role}`}), data.roles[role])]))];
}

function sitesOf(rank) {
  const rows = [];
  for (let at = 0; at < rank.sites.length; at += 4) {
    const [site, role, bytes, blocks] = rank.sites.slice(at, at + 4);
    rows.push([exact(bytes), formatCount(blocks), data.roles[role], text(site)]);
  }
  return [element('h4', {text: 'Largest holders at the allocated peak'}),
    table('rank-sites', ['#bytes', '#blocks', 'role', 'site'], rows),
    ...(rank.others ? [element('p', {class: 'omitted',
      text: `${formatCount(rank.others)} smaller holders are not on this page.`})] : [])];
}

/* The difference of two allocated peaks by role; the rows add up to it. */
function differencesOf(rank, other) {
  if (!other) return [];
  const sum = (held) => held.reduce((bytes, each) => bytes + each, 0);
  const rows = rank.held.map((bytes, role) => [bytes, other.held[role], data.roles[role]])
    .filter(([here, there]) => here || there)
    .sort((a, b) => Math.abs(b[1] - b[0]) - Math.abs(a[1] - a[0]));
  rows.push([sum(rank.held), sum(other.held), 'in total']);
  return [element('h4', {text: `${text(rank.name)} and ${text(other.name)} at their allocated peaks`}),
    table('rank-differences', [`#${text(rank.name)}`, `#${text(other.name)}`, '#change', 'role'],
      rows.map(([here, there, role]) => [exact(here), exact(there), formatChange(there - here), role]))];
}

function librariesOf(rank) {
  if (!rank.libraries.length) return [];
  const rows = [];
  for (let at = 0; at < rank.libraries.length; at += 2)
    rows.push([exact(rank.libraries[at + 1]), text(rank.libraries[at])]);
  return [element('h4', {text: 'Outside the allocator'}),
    table('rank-libraries', ['#bytes', 'library'], rows)];
}

let shown = null, compared = null, course = null;
const view = document.getElementById('rank-view'), picker = document.getElementById('picker');

function legendOf(rank) {
  return element('p', {class: 'legend'},
    element('span', {}, element('i', {class: 'key allocated'}), 'allocated'),
    element('span', {}, element('i', {class: 'key reserved'}), 'reserved'),
    ...(compared ? [element('span', {}, element('i', {class: 'key other'}),
      `allocated by ${text(compared.name)}`)] : []),
    element('span', {class: 'small', text: rank.allocated >= 0 ? `the highest level of each 512th of ${
      formatDuration(rank.time)}, exact to ${formatBytes(Math.ceil(rank.most / (2 * LEVELS)))}` : ''}));
}

function show(rank) {
  const readout = element('p', {class: 'hover', 'aria-live': 'polite',
    text: 'Point at the curve, or move along it with the arrow keys.'});
  const box = element('div', {class: 'course-box'});
  const why = reasons.get(rank);
  shown = rank;
  if (compared === rank) {
    compared = null;
    otherInput.value = '';
  }
  view.replaceChildren(
    element('h3', {text: text(rank.name)}),
    ...(why ? [element('p', {class: 'why', text: why})] : []),
    box, legendOf(rank), readout, factsOf(rank),
    element('div', {class: 'rank-parts'}, element('div', {}, ...differencesOf(rank, compared),
      ...rolesOf(rank), ...librariesOf(rank)),
      element('div', {}, ...sitesOf(rank))));
  course = new Course(rank, compared, box, readout);
  course.draw();
  for (const button of picker.querySelectorAll('button[data-row]'))
    button.setAttribute('aria-pressed', String(Number(button.dataset.row) === rank.row));
  box.tabIndex = -1;
}

/* ---- the picker ------------------------------------------------------------ */

const input = element('input', {id: 'rank-input', type: 'text', autocomplete: 'off',
  spellcheck: 'false', inputmode: 'search'});
const answer = element('p', {class: 'picker-answer', role: 'status'});

function pick(rank) {
  answer.replaceChildren();
  input.classList.remove('wrong');
  input.value = rank.rank >= 0 ? String(rank.rank) : text(rank.trace);
  show(rank);
  remember();
}

function rankButton(rank, words) {
  return element('button', {type: 'button', 'data-row': rank.row, onclick: () => pick(rank)},
    element('b', {text: text(rank.name)}), words ? ` ${words}` : '');
}

/* For a rank without a course on this page: known facts, and a replica that has a course. */
function answerFor(number) {
  const row = index ? index.ranks.indexOf(number) : -1;
  if (row < 0)
    return [index ? `No rank ${number} was read.` : `Rank ${number} is not on this page.`];
  const like = byRow.find((rank) => index.clusters[rank.row] === index.clusters[row]);
  const words = [`The curve of rank ${number} is not on this page. It reserved at most ${
    formatBytes(index.peaks[row])}, and ${OUTCOMES[Number(index.outcomes[row])]}.`];
  if (like) words.push(' A replica of it: ', rankButton(like, reasons.get(like)));
  return words;
}

/* A rank to compare with the one that is shown; nothing: none. */
const otherInput = element('input', {id: 'other-input', type: 'text', autocomplete: 'off',
  spellcheck: 'false', inputmode: 'search'});

function onOther() {
  const words = otherInput.value.trim(), rank = search(words);
  otherInput.classList.toggle('wrong', Boolean(words) && (!rank || rank === shown));
  compared = rank && rank !== shown ? rank : null;
  if (shown) show(shown);
  remember();
}

function onInput() {
  const words = input.value.trim(), rank = search(words);
  input.classList.toggle('wrong', Boolean(words) && !rank);
  if (rank) {
    answer.replaceChildren();
    show(rank);
    remember();
  } else {
    answer.replaceChildren(...(/^\d+$/.test(words) ? answerFor(Number(words))
      : words ? ['No rank, host or trace on this page has this in its name.'] : []));
  }
}

function step(by) {
  const at = byRow.indexOf(shown);
  const next = byRow[Math.max(0, Math.min(byRow.length - 1, at + by))];
  if (next) pick(next);
}

function makePicker() {
  const notable = [...reasons.keys()];
  const buttons = notable.slice(0, MAX_BUTTONS).map((rank) => rankButton(rank, reasons.get(rank)));
  picker.append(
    element('div', {class: 'bar'},
      element('label', {for: 'rank-input', text: 'Rank, host or trace'}), input,
      element('label', {for: 'other-input', text: 'compare with'}), otherInput,
      element('button', {type: 'button', text: '‹ previous', onclick: () => step(-1)}),
      element('button', {type: 'button', text: 'next ›', onclick: () => step(1)})),
    answer, element('div', {class: 'notable'}, ...buttons));
  if (notable.length > MAX_BUTTONS) {
    picker.append(element('p', {class: 'omitted', text: `${
      formatCount(notable.length - MAX_BUTTONS)} more notable ranks: type their numbers.`}));
  }
  input.addEventListener('input', onInput);
  otherInput.addEventListener('input', onOther);
  input.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowUp' || event.key === 'ArrowDown') {
      event.preventDefault();
      step(event.key === 'ArrowUp' ? -1 : 1);
    }
  });
}

/* Links names of ranks in tables to their courses. */
function linkRanks() {
  const names = new Map(byRow.map((rank) => [text(rank.name), rank]));
  for (const cell of document.querySelectorAll('table.sortable.job td:not(.number, .site)')) {
    const rank = names.get(cell.textContent) || names.get(cell.textContent.replace(/ \(.*$/, ''));
    if (!rank) continue;
    cell.replaceChildren(element('button', {type: 'button', class: 'to-rank', text: cell.textContent.replace(/^rank (?=\d)/, 'rank\u00a0'),
      onclick: () => {
        pick(rank);
        document.getElementById('one').scrollIntoView();
      }}));
  }
}

/* A click on a rank of a chart shows its course; with shift, it compares it with the rank that is
 * shown. */
function linkCharts() {
  for (const figure of document.querySelectorAll('figure.chart')) {
    figure.addEventListener('click', (event) => {
      const title = event.target.querySelector && event.target.querySelector(':scope > title');
      const found = /^rank (\d+)\b/.exec(title ? title.textContent : '');
      if (!found) return;
      const box = event.shiftKey ? otherInput : input;
      box.value = found[1];
      box.dispatchEvent(new Event('input'));
      document.getElementById('one').scrollIntoView();
    });
  }
}

/* ---- the address --------------------------------------------------------- */

function remember() {
  const parts = new URLSearchParams();
  const isNumbered = (rank) => rank.rank >= 0 && findRank(rank.rank) === rank;
  if (shown) parts.set(isNumbered(shown) ? 'rank' : 'row', isNumbered(shown) ? shown.rank : shown.row);
  if (compared) {
    parts.set(isNumbered(compared) ? 'with' : 'with-row',
      isNumbered(compared) ? compared.rank : compared.row);
  }
  if (chosenTheme()) parts.set('t', chosenTheme());
  history.replaceState(null, '', `#${parts}`);
}

function restore() {
  const hash = location.hash.slice(1);
  const parts = new URLSearchParams(hash.includes('=') ? hash : '');
  const number = /^\d+$/.test(parts.get('rank') || '') ? Number(parts.get('rank')) : -1;
  const row = Number(parts.get('row') ?? -1);
  setTheme(['dark', 'light'].includes(parts.get('t')) ? parts.get('t') : '');
  const rank = (number >= 0 && findRank(number)) || byRow.find((each) => each.row === row) ||
    data.ranks[0];
  if (!rank) return;
  compared = findRank(Number(parts.get('with') ?? NaN)) ||
    byRow.find((each) => each.row === Number(parts.get('with-row') ?? NaN)) || null;
  otherInput.value = compared ? compared.rank >= 0 ? String(compared.rank) : text(compared.trace) : '';
  input.value = number >= 0 && rank.rank !== number ? String(number)
    : rank.rank >= 0 ? String(rank.rank) : text(rank.trace);
  show(rank);
  answer.replaceChildren(...(number >= 0 && rank.rank !== number ? answerFor(number) : []));
}

/* ---- the page ------------------------------------------------------------- */

makePicker();
linkRanks();
linkCharts();
for (const each of document.querySelectorAll('table.sortable')) makeSortable(each, () => {});
document.getElementById('tools').append(element('button', {
  type: 'button', text: 'light / dark', onclick: () => {
    setTheme(isDark() ? 'light' : 'dark');
    remember();
  },
}));
for (const link of document.querySelectorAll('a[href^="#"]')) {
  link.addEventListener('click', (event) => { // the address keeps the rank
    event.preventDefault();
    document.getElementById(link.hash.slice(1)).scrollIntoView();
  });
}
addEventListener('hashchange', restore);
addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  event.preventDefault();
  input.focus();
  input.select();
});
let resized;
addEventListener('resize', () => {
  clearTimeout(resized);
  resized = setTimeout(() => course && course.draw(), 100);
});
restore();
if (location.hash && !location.hash.includes('=')) {
  const target = document.getElementById(location.hash.slice(1));
  if (target) target.scrollIntoView();
}
document.documentElement.dataset.ready = 'yes';
})();
