/* Shared by the pages: formats of numbers, elements, sortable tables, light and dark mode. The
 * build puts it before report.js and before job.js. */
'use strict';

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

/* ---- words -------------------------------------------------------------- */

function formatBytes(bytes) {
  let value = bytes, unit = 0;
  if (bytes < 1000) return `${bytes} B`;
  while (value >= 999.5 && unit + 1 < UNITS.length) {
    value /= 1024;
    unit++;
  }
  const decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${value.toFixed(decimals)} ${UNITS[unit]}`;
}

const formatChange = (bytes) =>
  bytes < 0 ? `−${formatBytes(-bytes)}` : `${bytes ? '+' : ''}${formatBytes(bytes)}`;

function formatDuration(ns) {
  const [unit, scale] = ns >= 1e9 ? ['s', 1e9] : ns >= 1e6 ? ['ms', 1e6] : ['µs', 1e3];
  return `${Number((ns / scale).toPrecision(3))} ${unit}`;
}

const formatCount = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ',');

function formatShare(part, whole) {
  const percent = whole ? 100 * part / whole : 0;
  if (!percent) return '0%';
  if (percent < 0.05) return '<0.1%';
  const tenths = Math.floor(percent * 10 + 0.5);
  return tenths >= 1000 && tenths % 10 === 0 ? `${tenths / 10}%` : `${(tenths / 10).toFixed(1)}%`;
}

function element(name, properties, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key === 'class') made.className = value;
    else if (key === 'text') made.textContent = value;
    else if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (key === 'style') Object.assign(made.style, value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/* A command, with line breaks between words and after '=' and ','; see mt_page_add_command. */
function commandCode(text) {
  const code = element('code', {});
  text.split(' ').forEach((word, number) => {
    const span = element('span', {class: 'word'});
    word.split(/(?<=[=,])/).forEach((piece, at) => {
      if (at) span.append(element('wbr', {}));
      span.append(piece);
    });
    code.append(number ? ' ' : '', span);
  });
  return code;
}

function drawn(name, attributes) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/* ---- tables that do not change ------------------------------------------ */

function markSorted(heads, index, down) {
  [...heads].forEach((head, at) => {
    if (at === index) head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    else head.removeAttribute('aria-sort');
  });
}

const sortedTables = new Map(); // id of a table -> {column, down}

function sortTable(table, column, down) {
  const body = table.tBodies[0];
  const value = (row) => {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  };
  const rows = [...body.rows].map((row) => ({row, value: value(row)}));
  rows.sort((a, b) => (down ? -1 : 1) * (a.value < b.value ? -1 : a.value > b.value ? 1 : 0));
  body.replaceChildren(...rows.map((entry) => entry.row));
  markSorted(table.tHead.rows[0].cells, column, down);
  sortedTables.set(table.id, {column, down});
}

/* `changed` is called after a click has sorted the table. */
function makeSortable(table, changed) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = element('button', {
      type: 'button', text: head.textContent,
      onclick: () => {
        const before = sortedTables.get(table.id);
        const numbers = table.tBodies[0].rows[0] &&
          table.tBodies[0].rows[0].cells[column].dataset.v !== undefined;
        const down = before && before.column === column ? !before.down : Boolean(numbers);
        sortTable(table, column, down);
        changed();
      },
    });
    head.replaceChildren(button);
  });
}

/* ---- the address -------------------------------------------------------- */

/* Sorts tables as the address requests. */
function restoreTables(parts) {
  for (const table of document.querySelectorAll('table.sortable')) {
    const sort = /^(\d+)([-+ ])$/.exec(parts.get(`s.${table.id}`) || '');
    if (sort && Number(sort[1]) < table.tHead.rows[0].cells.length)
      sortTable(table, Number(sort[1]), sort[2] === '-');
  }
}

function rememberTables(parts) {
  for (const [id, {column, down}] of sortedTables) parts.set(`s.${id}`, orderText(column, down));
}

const orderText = (column, down) => `${column}${down ? '-' : '+'}`;

/* Those of the names in the address that are `known`; any other text is no name. */
function namesOf(text, known) {
  try {
    const names = JSON.parse(text);
    return Array.isArray(names) ? names.filter((name) => known.has(name)) : [];
  } catch (error) {
    return [];
  }
}

/* Replaces the state of the page in its address. */
function setAddress(parts) {
  const text = parts.toString();
  try {
    history.replaceState(null, '', text ? `#${text}` : location.pathname + location.search);
  } catch (error) { // a frame of a notebook has no address
  }
}

/* Browsers refuse hundreds of changes of the address in half a minute. */
let soon = 0;
function rememberSoon() {
  clearTimeout(soon);
  soon = setTimeout(remember, 200);
}

/* Links to parts of the page only scroll, so the address keeps the view. */
function keepAddress() {
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    link.addEventListener('click', (event) => {
      event.preventDefault();
      const target = document.getElementById(link.hash.slice(1));
      if (target) target.scrollIntoView();
    });
  }
}

/* ---- light and dark ------------------------------------------------------ */

const DARK = /prefers-color-scheme:\s*dark/;
const darkRules = [];
for (const sheet of document.styleSheets)
  for (const rule of sheet.cssRules)
    if (rule.media && DARK.test(rule.media.mediaText)) darkRules.push(rule);

let theme = ''; // '' = the setting of the system

const chosenTheme = () => theme;

function setTheme(name) {
  theme = name;
  for (const rule of darkRules) {
    rule.media.mediaText = name === 'dark' ? 'screen'
      : name === 'light' ? 'not all' : '(prefers-color-scheme: dark)';
  }
  document.documentElement.style.colorScheme = name || '';
}

function isDark() {
  return theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}
