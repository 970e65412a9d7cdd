/* Single blocks: their facts, and the panel below a chart. */

const MAX_FOUND = 100; // blocks of one address that are listed
const MAX_SHARERS = 3; // of its addresses, before and after a block
const MAX_TWINS = 8; // of other steps
const NO_BLOCKS = 'This page has no room for single blocks.';

const KIND = 8; // numbers per kind of blocks
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/* The single blocks of a device; none until the page has read them. */
function blocksOf(model) {
  return [...(blockMaps[data.devices.indexOf(model.source)] || new Map()).values()];
}

/* Whether the page lists every block of the device. */
function hasAllBlocks(model) {
  return blocksOf(model).length === model.source.blocks_in_all;
}

/* "all 8,850 blocks of the run". With little room, the page has the largest, or none of a device. */
function listed(count, sources) {
  const all = sources.reduce((sum, source) => sum + source.blocks_in_all, 0);
  return count === all ? `all ${formatCount(all)} blocks of the run`
    : `${formatCount(count)} blocks of this page (the other ${formatCount(all - count)} of the run are not on it)`;
}

/* The numbers of a text in base 64 (add_digits of page_blocks.c). Only addresses exceed 2^53. */
class Digits {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  isAtEnd() {
    return this.at >= this.text.length;
  }

  big() {
    let value = 0n, shift = 0n, digit;
    do {
      digit = BigInt(DIGITS.indexOf(this.text[this.at++]));
      value |= (digit & 31n) << shift;
      shift += 5n;
    } while (digit & 32n);
    return value;
  }

  next() {
    let value = 0, unit = 1, digit;
    do {
      digit = DIGITS.indexOf(this.text[this.at++]);
      value += (digit & 31) * unit;
      unit *= 32;
    } while (digit & 32);
    return value;
  }

  /* The lowest bit is the sign. */
  bigDifference() {
    const value = this.big();
    return value & 1n ? -(value >> 1n) - 1n : value >> 1n;
  }

  difference() {
    const value = this.next();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }
}

/* The blocks of a device, by key. */
function readBlocks(model) {
  const {source} = model, digits = new Digits(source.blocks), blocks = new Map();
  const kinds = [];
  for (let at = 0; at < source.kinds.length; at += KIND)
    kinds.push({facts: source.kinds.slice(at, at + KIND), address: 0n});
  const now = {where: 0, event: 0, t: 0};
  while (!digits.isAtEnd()) {
    const kind = kinds[digits.next()];
    kind.address = BigInt.asUintN(64, kind.address + digits.bigDifference());
    for (const name of ['where', 'event', 't']) now[name] += digits.difference();
    const block = new Block(kind, now, model);
    block.readEnd(digits, now);
    blocks.set(block.key, block);
  }
  return blocks;
}

/* The facts about a block; a group is the one of the history that counts it. */
class Block {
  constructor(kind, {where, event, t}, model) {
    const [bytes, requested, role, site, operation, node, group, isOlder] = kind.facts;
    Object.assign(this, {bytes, requested, role, node, group, event, model});
    this.address = kind.address * BigInt(model.source.address_unit);
    this.key = `${this.address.toString(16)}.${event}`;
    this.birth = isOlder ? -1 : t * model.source.time_unit;
    this.where = model.strings[where];
    this.site = model.strings[site];
    this.operation = operation < 0 ? '' : model.strings[operation];
  }

  /* Its end is the request to free it. Other streams may use it until `completed`. */
  readEnd(digits, {event, t}) {
    const life = digits.next(), {time_unit: unit} = this.model.source;
    this.endEvent = life ? event + life : -1;
    this.end = life ? (t + digits.difference()) * unit : -1;
    const wait = life ? digits.next() : 0;
    this.waits = wait > 0;
    this.completedEvent = wait > 1 ? this.endEvent + wait : -1;
    this.completed = wait > 1 ? this.end + digits.difference() * unit : -1;
  }

  holds(address) {
    return address >= this.address && address < this.address + BigInt(this.bytes);
  }

  isOlder() {
    return this.birth < 0;
  }

  title() {
    return `${formatBytes(this.bytes)}, ${data.roles[this.role]}, ${this.site}`;
  }

  allocated() {
    if (this.isOlder()) return this.where;
    return `${this.where ? `${this.where}, ` : ''}at ${formatWhen(this.birth, this.event)}`;
  }

  freed() {
    if (this.endEvent < 0) return 'never: still allocated at the end';
    const life = this.isOlder() ? `at least ${formatDuration(this.end)}`
      : `after ${formatDuration(this.end - this.birth)}`;
    return `at ${formatWhen(this.end, this.endEvent)}${data.end ? `, ${life}` : ''}`;
  }

  /* How long its memory waited for other streams after the request to free it. */
  waited() {
    if (!this.waits) return '';
    if (this.completedEvent < 0) return 'to the end of the trace: another stream may use it';
    const time = data.end ? `${formatDuration(this.completed - this.end)}, ` : '';
    return `${time}to ${formatWhen(this.completed, this.completedEvent)}: another stream could use it`;
  }

  /* Blocks of the page that overlap its addresses, by birth; the block itself is one of them. */
  sharers() {
    return this.siblings().filter((other) => other.address < this.address + BigInt(this.bytes) &&
      this.address < other.address + BigInt(other.bytes))
      .sort((a, b) => a.birth - b.birth || a.event - b.event);
  }

  siblings() {
    return blocksOf(this.model);
  }

  /* The block with the same site and size in every other step: the third of a step for the third. */
  twins() {
    const steps = new Map(), own = this.isOlder() ? null : this.model.stepAt(this.event);
    const alike = !own ? [] : this.siblings().filter((other) => !other.isOlder() &&
      other.bytes === this.bytes && other.site === this.site).sort((a, b) => a.event - b.event);
    for (const other of alike) {
      const step = this.model.stepAt(other.event);
      if (!step) continue;
      if (!steps.has(step)) steps.set(step, []);
      steps.get(step).push(other);
    }
    const rank = own ? steps.get(own).indexOf(this) : 0;
    steps.delete(own);
    return [...steps].filter(([, blocks]) => blocks[rank])
      .map(([step, blocks]) => ({step, block: blocks[rank]}));
  }

  isAliveAt(event) {
    return (this.isOlder() || this.event <= event) && (this.endEvent < 0 || this.endEvent > event);
  }

  /* The nearest blocks of the page below and above, at its birth. */
  neighbors() {
    const alive = this.siblings().filter((other) => other !== this && other.isAliveAt(this.event));
    const nearest = (list, isNearer) => list.reduce((best, each) =>
      (!best || isNearer(each, best) ? each : best), null);
    return [
      nearest(alive.filter((each) => each.address < this.address), (a, b) => a.address > b.address),
      nearest(alive.filter((each) => each.address > this.address), (a, b) => a.address < b.address),
    ];
  }

  addresses() {
    const hex = (address) => `0x${address.toString(16)}`;
    return `${hex(this.address)} to ${hex(this.address + BigInt(this.bytes))}`;
  }

  /* Innermost frame first. */
  stack() {
    return this.node < 0 ? [] : this.model.pathOf(this.node).reverse()
      .map((node) => this.model.nodeName(node));
  }
}

/* Facts about the clicked shape, below its chart. */
class Panel {
  constructor() {
    this.box = element('div', {class: 'picked', 'aria-live': 'polite'});
    this.clear();
  }

  clear() {
    this.box.hidden = true;
    this.box.replaceChildren();
  }

  show(title, ...parts) {
    const close = element('button', {
      type: 'button', text: 'close', onclick: () => { unpick(); remember(); },
    });
    this.box.replaceChildren(element('div', {class: 'bar'}, element('strong', {text: title}), close),
      ...parts);
    this.box.hidden = false;
    this.box.firstChild.scrollIntoView({block: 'nearest'}); // its title
  }

  showLines(lines) {
    this.show(lines[0], ...lines.slice(1).map((text) => element('p', {text})));
  }

  showStack(title, frames, note) {
    const list = frames.map((text) => element('li', {text}));
    this.show(title, element('p', {class: 'small', text: note}),
      element('ol', {class: 'stack'}, ...list));
  }

  showBlock(block) {
    const exact = `${formatCount(block.bytes)} B` +
      (block.requested === block.bytes ? '' : `, requested ${formatCount(block.requested)} B`);
    const facts = [['size', exact], ['role', data.roles[block.role]], ['site', block.site],
      ['operation', block.operation], ['allocated', block.allocated()], ['freed', block.freed()],
      ['waited', block.waited()],
      ['addresses', block.addresses()]].filter(([, text]) => text);
    const device = data.devices.length > 1 ? ` --device ${block.model.source.device}` : '';
    const command = commandCode(`${data.live} --at ${block.event}${device}`);
    const frames = block.stack().map((text) => element('li', {text}));
    const sharers = block.sharers(), at = sharers.indexOf(block);
    const [below, above] = block.neighbors();
    const twins = block.twins(), near = nearest(twins, block);
    const same = twins.filter((twin) => twin.block.address === block.address).length;
    const places = [
      ...near.map((twin) => [twin.step.name, twin.block, `0x${twin.block.address.toString(16)}` +
        (twin.block.address === block.address ? ', the same address' : '')]),
      ...sharers.slice(Math.max(at - MAX_SHARERS, 0), at).map((other) => ['before it, here', other]),
      ...sharers.slice(at + 1, at + 1 + MAX_SHARERS).map((other) => ['after it, here', other]),
      ['next to it, below', below], ['next to it, above', above],
    ].filter(([, other]) => other);
    this.show(block.title(),
      element('dl', {}, ...facts.flatMap(([name, text]) =>
        [element('dt', {text: name}), element('dd', {text})]),
      ...places.flatMap(([name, other, text]) => [element('dt', {text: name}), element('dd', {}, element('button', {
        type: 'button', class: 'link', text: text || `${other.title()}: ${other.allocated()}`,
        onclick: () => { unpick(); pickBlock(other, null); remember(); },
      }))])),
      element('p', {class: 'small', text: `Of ${listed(block.siblings().length, [block.model.source])}, ` +
        `${formatCount(sharers.length)} had some of its addresses.`}),
      ...(twins.length ? [element('p', {class: 'small', text: `${formatCount(twins.length)} other steps ` +
        `have a block of this site and size, ${formatCount(same)} of them at this address` +
        (near.length < twins.length ? `; the nearest ${near.length} are listed.` : '.')})] : []),
      frames.length ? element('ol', {class: 'stack'}, ...frames)
        : element('p', {class: 'small', text: 'no stack recorded'}),
      element('p', {}, block.isOlder() ? 'alive when the history begins: '
        : 'alive when it was allocated: ', command, copyButton(command)));
  }
}

/* The twins in the steps closest to a block, in order. */
function nearest(twins, block) {
  return [...twins].sort((a, b) => Math.abs(a.block.event - block.event) - Math.abs(b.block.event - block.event))
    .slice(0, MAX_TWINS).sort((a, b) => a.block.event - b.block.event);
}

let picked = null; // the block that a panel shows

function unpick() {
  picked = null;
  for (const shape of document.querySelectorAll('.mt-picked')) shape.classList.remove('mt-picked');
  for (const picture of pictures) picture.panel.clear();
  search.panel.clear();
  drawAll();
}

/* Marks a block in all charts. Shows its facts below `picture`, or below the bar. */
function pickBlock(block, picture) {
  picked = block;
  for (const each of pictures) {
    if (each.blocks.get(block.key) === block)
      for (const shape of each.shapesOf(block)) shape.classList.add('mt-picked');
  }
  (picture ? picture.panel : search.panel).showBlock(block);
  drawAll();
}
