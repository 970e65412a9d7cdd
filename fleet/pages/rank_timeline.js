/* Timelines of one rank of a job, or of two, on one axis. The record of a rank has the highest levels
 * of equal parts of its time, without roles or call stacks: allocated memory is one layer. */

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const LEVELS = 4095;

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

/* Differences between neighbors, as in the data of the page of a run. */
const differences = (list) => list.map((each, at) => each - (at ? list[at - 1] : 0));

/* Steps of a rank: only some have a mark if there are many. */
function stepsOf(rank) {
  const steps = [];
  for (let at = 0; at < rank.steps.length; at += 2) {
    const isLast = at + 2 === rank.steps.length, first = rank.steps[at];
    const last = isLast ? rank.last : rank.steps[at + 2] - 1;
    steps.push({first, begin: rank.steps[at + 1], end: isLast ? rank.time : rank.steps[at + 3],
      name: last > first ? `steps ${first} to ${last}` : `step ${first}`});
  }
  return steps;
}

/* What a model reads (page_data.c), from the data of a rank. A column is a part of the time, and its
 * number stands for its event. */
function sourceOf(rank) {
  const bytes = (curve) => levelsOf(curve).map((level) => Math.round(rank.most * level / LEVELS));
  const allocated = bytes(rank.allocated), count = allocated.length, part = rank.time / count;
  const begin = allocated.map((_, at) => Math.round(at * part)), steps = stepsOf(rank);
  const columnOf = (ns) => Math.min(count - 1, Math.floor(ns / part));
  const columns = steps.map((step) => [columnOf(step.begin), columnOf(Math.max(step.begin, step.end - 1))]);
  const where = begin.map((ns) => 1 + steps.findLastIndex((step) => step.begin <= ns + part / 2));
  const limit = rank.limit || rank.device;
  return {
    unit: 1, by_event: 0, events: [0, count - 1], spans: [0, rank.time],
    begin: differences(begin), begin_event: begin.map((_, at) => (at ? 1 : 0)),
    t: begin.map(() => Math.round(part / 2)), event: begin.map(() => 0),
    reserved: differences(bytes(rank.reserved)), exact: [], where: where.flatMap((step) => [1, step]),
    strings: ['', ...steps.map((step) => step.name)],
    peak: [rank.when[0], columnOf(rank.when[0]), rank.peaks[1]], ooms: [],
    limit: limit <= rank.most * 1.5 ? limit : 0, // a limit far above the levels would flatten them
    steps: steps.flatMap((step, at) => [step.first, step.begin, step.end, ...columns[at]]),
    step_columns: columns.flat(), step_names: new Map(steps.map((step) => [step.first, step.name])),
    phases: [], phase_columns: [],
    groups: [-1, 0, 0, -1, 0, 1, 0, 0, 0], nodes: [], frames: [], // one group without a role
    changes: differences(allocated).map((change) => (change ? [0, change, 0] : [])),
  };
}

class RankModel extends RunModel {
  nameOf() { return 'allocated'; }

  stepName(step) { return this.source.step_names.get(step); }

  when(column) { return formatTime(this.t[column]); }

  top() { return Math.max(super.top(), this.source.limit * 1.06); }
}

class RankRuns extends LinkedRuns {
  constructor(ranks, figures, readout) {
    data.end = Math.max(...ranks.map((rank) => rank.time)); // decides the unit of times
    super(ranks.map(sourceOf), ranks.map((rank) => text(rank.name)), ranks.map(() => ''));
    this.readout = readout;
    this.draw(figures);
    this.show();
  }

  modelOf(source) { return new RankModel(source); }

  /* The column of the peak. If it begins with the peak, rounding may choose its neighbor. */
  startOf({model}) {
    const at = model.source.peak[1];
    return model.fullest(Math.max(0, at - 1), Math.min(at + 1, model.columnCount - 1));
  }

  axesOf(hasSteps) { return hasSteps ? ['time', 'step'] : ['time']; }

  show() {
    super.show();
    this.readout.textContent = this.sides.map(({model, at}, index) => [
      ...(index ? [this.labels[index]] : []), model.when(at), model.where[at],
      `allocated ${formatBytes(model.totals[at])}`, `reserved ${formatBytes(model.reserved[at])}`,
    ].filter(Boolean).join(' \u00b7 ')).join('; ');
  }
}
