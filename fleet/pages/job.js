/* The interactive part of a job's page: the user chooses a rank, or two, and rank_timeline.js draws
 * their timelines from the data (described in job_page_data.h). Names come from files, so they are
 * only inserted as text.
 *
 * The address has the rank: #rank=17, or #row=3 if a rank has several rows; the one to compare it
 * with: &with=3, or &with-row=5; and the view of the timelines. Without scripts the page has
 * everything except single ranks. */
const data = JSON.parse(document.getElementById('mt-data').textContent);
const picked = null; // the timelines mark a picked block; this page has no single blocks
const MAX_BUTTONS = 24; // notable ranks that have one
const OUTCOMES = ['how it ended is unknown', 'it finished', 'it ran out of memory',
  'it ended with an error', 'it was ended by a signal', 'its recording was cut off'];

const text = (number) => data.strings[number];

/* ---- the data ------------------------------------------------------------ */

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

/* What is shown: a rank, the one that it is compared with or null, and their timelines. */
let shown = {rank: null, other: null, runs: null};
const view = document.getElementById('rank-view'), picker = document.getElementById('picker');

/* Draws the timelines of ranks on one axis, or says why there are none. */
function timelinesOf(ranks) {
  const drawn = ranks.filter((rank) => rank.allocated >= 0);
  const figures = ranks.map((rank) => element('figure', {}, ...(drawn.includes(rank) ? []
    : [element('p', {class: 'omitted', text: `There is no curve of ${text(rank.name)}: no time ` +
        'passed between its first and its last event.'})])));
  const readout = element('p', {class: 'hover', 'aria-live': 'polite'});
  return {figures, readout, start() {
    const open = figures.filter((_, at) => drawn.includes(ranks[at]));
    return drawn.length ? new RankRuns(drawn, open, readout) : null;
  }};
}

const precisionOf = (rank) => `the highest level of each 512th of ${formatDuration(rank.time)}, exact to ${
  formatBytes(Math.ceil(rank.most / (2 * LEVELS)))}`;

/* Shows a rank, and beside it another one. */
function show(rank, other = shown.other) {
  const ranks = rank === other || !other ? [rank] : [rank, other];
  const [, compared = null] = ranks, why = reasons.get(rank);
  const timelines = timelinesOf(ranks);
  if (!compared) {
    otherInput.value = '';
    otherInput.classList.remove('wrong');
  }
  view.replaceChildren(
    element('h3', {text: text(rank.name)}),
    ...(why ? [element('p', {class: 'why', text: why})] : []),
    element('div', {class: 'pair'}, ...timelines.figures), timelines.readout,
    element('p', {class: 'small', text: rank.allocated >= 0 ? precisionOf(rank) : ''}), factsOf(rank),
    element('div', {class: 'rank-parts'}, element('div', {}, ...differencesOf(rank, compared),
      ...rolesOf(rank), ...librariesOf(rank)),
      element('div', {}, ...sitesOf(rank))));
  shown = {rank, other: compared, runs: timelines.start()};
  for (const button of picker.querySelectorAll('button[data-row]'))
    button.setAttribute('aria-pressed', String(Number(button.dataset.row) === rank.row));
}

/* ---- the picker ------------------------------------------------------------ */

const input = element('input', {id: 'rank-input', type: 'text', autocomplete: 'off',
  spellcheck: 'false', inputmode: 'search'});
const answer = element('p', {class: 'picker-answer', role: 'status'});

function pick(rank) {
  answer.replaceChildren();
  input.classList.remove('wrong');
  input.value = nameOf(rank);
  show(rank);
  remember();
}

function rankButton(rank, words) {
  return element('button', {type: 'button', 'data-row': rank.row, onclick: () => pick(rank)},
    element('b', {text: text(rank.name)}), words ? ` ${words}` : '');
}

/* For a rank whose data is not on this page: known facts, and a replica that is. */
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
  const isWrong = Boolean(words) && (!rank || rank === shown.rank);
  if (shown.rank) show(shown.rank, isWrong ? null : rank);
  otherInput.value = words;
  otherInput.classList.toggle('wrong', isWrong);
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
  const at = byRow.indexOf(shown.rank);
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

/* Links names of ranks in tables to their timelines. */
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

/* A click on a rank of a chart shows its timeline; with shift, beside that of the rank that is
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
  const parts = new URLSearchParams(), {rank, other, runs} = shown;
  const isNumbered = (each) => each.rank >= 0 && findRank(each.rank) === each;
  if (rank) parts.set(isNumbered(rank) ? 'rank' : 'row', isNumbered(rank) ? rank.rank : rank.row);
  if (other)
    parts.set(isNumbered(other) ? 'with' : 'with-row', isNumbered(other) ? other.rank : other.row);
  if (runs) runs.remember(parts);
  if (chosenTheme()) parts.set('t', chosenTheme());
  setAddress(parts);
}

const nameOf = (rank) => (rank.rank >= 0 ? String(rank.rank) : text(rank.trace));

function restore() {
  const hash = location.hash.slice(1);
  const parts = new URLSearchParams(hash.includes('=') ? hash : '');
  const number = /^\d+$/.test(parts.get('rank') || '') ? Number(parts.get('rank')) : -1;
  const rowOf = (name) => byRow.find((each) => each.row === Number(parts.get(name) ?? NaN));
  setTheme(['dark', 'light'].includes(parts.get('t')) ? parts.get('t') : '');
  const rank = (number >= 0 && findRank(number)) || rowOf('row') || data.ranks[0];
  if (!rank) return;
  const other = findRank(Number(parts.get('with') ?? NaN)) || rowOf('with-row') || null;
  const isElsewhere = number >= 0 && rank.rank !== number;
  for (const box of [input, otherInput]) box.classList.remove('wrong');
  otherInput.value = other ? nameOf(other) : '';
  input.value = isElsewhere ? String(number) : nameOf(rank);
  show(rank, other);
  if (shown.runs) shown.runs.restore(parts);
  answer.replaceChildren(...(isElsewhere ? answerFor(number) : []));
}

/* ---- the page ------------------------------------------------------------- */

makePicker();
linkRanks();
linkCharts();
for (const each of document.querySelectorAll('table.sortable')) makeSortable(each, () => {});
document.getElementById('tools').append(element('button', {
  type: 'button', text: 'light / dark', onclick: () => {
    setTheme(isDark() ? 'light' : 'dark');
    if (shown.runs) shown.runs.show();
    remember();
  },
}));
keepAddress();
addEventListener('hashchange', restore);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => shown.runs && shown.runs.show());
addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const isTimeline = shown.runs && event.target.closest('.timeline');
  const act = event.key === '/' ? () => { input.focus(); input.select(); }
    : isTimeline && shown.runs.actions()[event.key];
  if (!act) return;
  event.preventDefault();
  act();
  remember();
});
restore();
if (location.hash && !location.hash.includes('=')) {
  const target = document.getElementById(location.hash.slice(1));
  if (target) target.scrollIntoView();
}
document.documentElement.dataset.ready = 'yes';
