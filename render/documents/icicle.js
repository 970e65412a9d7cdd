/* An icicle: cells below cells, as wide as their bytes. A click zooms into a cell. */

const MIN_SHARE = 0.0005, MIN_PIXELS = 1.5; // of the width: narrower cells are counted, not drawn
const ROW_HEIGHT = 24;

/* A subclass has the cells: root(), cellOf(node), below(node), pathOf(node); sizeOf(cell), which
 * is its width, and bytesOf(cell), which are counted if it is not drawn; addCell, crumb(node), and
 * showWords(shown, root) for what is around the cells. */
class Icicle {
  constructor(label) {
    this.focus = -1;
    this.crumbs = element('nav', {class: 'crumbs', 'aria-label': 'zoom of the icicle'});
    this.cells = element('div', {
      class: 'icicle', tabindex: '0', role: 'group', 'aria-label': label,
    });
    this.dropped = element('p', {class: 'small'});
    this.cells.addEventListener('click', (event) => {
      const cell = event.target.closest('[data-node]');
      if (cell) this.zoom(Number(cell.dataset.node));
    });
  }

  zoom(node) {
    this.focus = node;
    this.draw();
    remember();
  }

  draw() {
    const path = this.pathOf(this.focus), root = this.root();
    const shown = this.sizeOf(path.length ? this.cellOf(this.focus) : root);
    this.width = this.cells.clientWidth || 1000;
    this.narrow = {cells: 0, bytes: 0};
    this.depth = path.length;
    this.cells.replaceChildren();
    this.addCell(root, 0, 1, 0, path.length > 0);
    path.forEach((node, row) => this.addCell(this.cellOf(node), 0, 1, row + 1, node !== this.focus));
    if (shown) this.addBelow(shown, path.length + 1);
    this.cells.style.height = `${(this.depth + 1) * ROW_HEIGHT}px`;
    this.crumbs.replaceChildren(...[-1, ...path].map((node) => element('button', {
      type: 'button', text: this.crumb(node), onclick: () => this.zoom(node),
    })));
    this.crumbs.hidden = path.length === 0;
    this.showWords(shown, root);
  }

  /* The cells below the focus. Not recursive, because a file determines the depth of stacks. */
  addBelow(shown, row) {
    const waiting = [{node: this.focus, offset: 0, row}];
    const least = Math.max(MIN_SHARE, MIN_PIXELS / this.width);
    while (waiting.length) {
      const parent = waiting.pop();
      let left = parent.offset;
      for (const cell of this.below(parent.node)) {
        const size = this.sizeOf(cell);
        if (size / shown < least) {
          this.narrow.cells++;
          this.narrow.bytes += this.bytesOf(cell);
        } else {
          this.addCell(cell, left / shown, size / shown, parent.row, false);
          this.depth = Math.max(this.depth, parent.row);
          if (cell.node >= 0) waiting.push({node: cell.node, offset: left, row: parent.row + 1});
        }
        left += size;
      }
    }
  }

  narrowWords(facts) {
    const {cells} = this.narrow;
    return cells ? `${formatCount(cells)} ${cells === 1 ? 'cell' : 'cells'} too narrow to draw ` +
      `(${facts})` : '';
  }

  textWidth(text) {
    this.pen = this.pen || document.createElement('canvas').getContext('2d');
    this.pen.font = `12.5px ${getComputedStyle(this.cells).fontFamily}`;
    return this.pen.measureText(text).width;
  }
}
