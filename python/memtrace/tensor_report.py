"""memtrace.report: every tensor that is alive, by name, and what the allocator holds beyond them."""
from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Any, Optional

from . import tensors
from .frames import frame
from .pages import ShownAsText
from .units import text_of_bytes

_WIDTH = 79
_ROWS = 20


@dataclass(frozen=True)
class TensorRow:
    """A storage and the tensors that show it. Bytes are those of the storage; `block_bytes` those of
    the allocator's block, None if the allocator is not PyTorch's for CUDA."""

    name: str
    kind: str
    device: str
    shape: tuple[int, ...]
    dtype: str
    size_bytes: int
    block_bytes: Optional[int]
    views: tuple[str, ...]


@dataclass(frozen=True)
class DeviceTotal:
    """One device. `allocated_bytes`: what PyTorch's allocator counts as allocated, None where there
    is none. `beyond_bytes`: the part of it in blocks that no tensor of the rows uses."""

    device: str
    size_bytes: int
    by_kind: dict[str, int]
    allocated_bytes: Optional[int]
    beyond_bytes: Optional[int]
    beyond_blocks: Optional[int]


@dataclass(frozen=True, repr=False)
class TensorReport(ShownAsText):
    """The result of memtrace.report. Rows are sorted by device, then by size, largest first."""

    rows: tuple[TensorRow, ...]
    devices: tuple[DeviceTotal, ...]
    verbose: bool = False

    def to_frame(self) -> Any:
        """Returns the rows as a pandas frame. Raises ImportError without pandas."""
        return frame([row.__dict__ for row in self.rows])

    def __str__(self) -> str:
        lines: list[str] = []
        for device in self.devices:
            rows = [row for row in self.rows if row.device == device.device]
            lines += _device_lines(device, rows, len(rows) if self.verbose else _ROWS)
        return "\n".join(lines)


# ---- the text ---------------------------------------------------------------


def _row_lines(row: TensorRow) -> list[str]:
    left = f"{row.name}"
    right = f"{str(list(row.shape)):>18} {row.dtype:>9} {text_of_bytes(row.size_bytes):>10}"
    space = _WIDTH - len(right) - 3
    lines = [f"  {left:<{space}} {right}"] if len(left) <= space else [f"  {left}", f"  {'':<{space}} {right}"]
    return lines + [f"    = {name}" for name in row.views]


def _device_lines(device: DeviceTotal, rows: list[TensorRow], limit: int) -> list[str]:
    lines = [f"{device.device}: {text_of_bytes(device.size_bytes)} in {len(rows)} storages"]
    for kind in tensors.KINDS:
        if device.by_kind.get(kind):
            lines.append(f"  {text_of_bytes(device.by_kind[kind]):>10} {kind}")
    if device.allocated_bytes is not None and device.beyond_bytes is not None:
        lines.append(f"  {text_of_bytes(device.allocated_bytes):>10} allocated by PyTorch")
        lines.append(f"  {text_of_bytes(device.beyond_bytes):>10} of it in {device.beyond_blocks} blocks "
                     "that no tensor here uses")
        if device.beyond_bytes:
            lines.append("             (saved for backward, workspaces, tensors that only C++ holds)")
    lines.append("")
    for row in rows[:limit]:
        lines += _row_lines(row)
    if len(rows) > limit:
        rest = sum(row.size_bytes for row in rows[limit:])
        lines.append(f"  {len(rows) - limit} more storages, {text_of_bytes(rest)}; verbose=True shows them")
    return lines + [""]


# ---- the blocks of the allocator --------------------------------------------


class _Blocks:
    """The allocated blocks of PyTorch's CUDA allocator, by address."""

    def __init__(self) -> None:
        self._starts: dict[str, list[int]] = {}
        self._blocks: dict[str, list[tuple[int, int]]] = {}
        for device, address, block in tensors.blocks():
            self._blocks.setdefault(device, []).append((address, int(block["size"])))
        for device, blocks in self._blocks.items():
            blocks.sort()
            self._starts[device] = [start for start, _ in blocks]

    def find(self, device: str, address: int) -> Optional[tuple[int, int]]:
        """Returns address and size of the block that holds an address, or None."""
        starts = self._starts.get(device, [])
        index = bisect.bisect_right(starts, address) - 1
        if index < 0:
            return None
        start, size = self._blocks[device][index]
        return (start, size) if address < start + size else None

    def total(self, device: str) -> Optional[int]:
        if not device.startswith("cuda"):
            return None
        return sum(size for _, size in self._blocks.get(device, ()))

    def count(self, device: str) -> int:
        return len(self._blocks.get(device, ()))


# ---- the rows ---------------------------------------------------------------


class _Storage:
    """One storage, while tensors are collected."""

    def __init__(self, name: str, kind: str, tensor: Any, storage: Any) -> None:
        self.names = [name]
        self.kind, self.shape = kind, tensors.shape_of(tensor)
        self.dtype = str(tensor.dtype).replace("torch.", "")
        self.device = str(storage.device)
        self.address, self.size_bytes = int(storage.data_ptr()), int(storage.nbytes())

    def add(self, name: str) -> None:
        if name not in self.names:
            self.names.append(name)


def _collect(items: list[tensors.Named]) -> list[_Storage]:
    """Folds tensors that share a storage: the first one names it."""
    found: dict[tuple[str, int], _Storage] = {}
    for item in items:
        for suffix, part in tensors.parts(item.tensor):
            storage = tensors.storage_of(part)
            # Storages of the device "meta" have a size and no memory.
            if storage is None or storage.nbytes() == 0 or storage.device.type == "meta":
                continue
            key = tensors.key_of(storage)
            if key in found:
                found[key].add(item.name + suffix)
            else:
                found[key] = _Storage(item.name + suffix, item.kind, part, storage)
    return list(found.values())


def _others(known: list[tensors.Named]) -> list[tensors.Named]:
    """The tensors that are alive and have no name in a model or an optimizer."""
    named = {id(item.tensor) for item in known}
    others: list[tensors.Named] = []
    for tensor in tensors.alive():
        if id(tensor) not in named:
            others.append(tensors.Named(f"{type(tensor).__name__} {len(others)}", tensors.KINDS[-1], tensor))
    return others


def _total(device: str, storages: list[_Storage], blocks: _Blocks) -> DeviceTotal:
    by_kind: dict[str, int] = {}
    held: dict[int, int] = {}
    for storage in storages:
        by_kind[storage.kind] = by_kind.get(storage.kind, 0) + storage.size_bytes
        block = blocks.find(device, storage.address)
        if block is not None:
            held[block[0]] = block[1]
    allocated = blocks.total(device)
    beyond = None if allocated is None else allocated - sum(held.values())
    count = None if allocated is None else blocks.count(device) - len(held)
    return DeviceTotal(device, sum(by_kind.values()), by_kind, allocated, beyond, count)


def _row(storage: _Storage, blocks: _Blocks) -> TensorRow:
    block = blocks.find(storage.device, storage.address)
    return TensorRow(storage.names[0], storage.kind, storage.device, storage.shape, storage.dtype,
                     storage.size_bytes, None if block is None else block[1], tuple(storage.names[1:]))


def report(model: Any = None, optimizer: Any = None, *, verbose: bool = False) -> TensorReport:
    """Lists every tensor that is alive in this process. `model` and `optimizer`, each one or a list,
    name parameters, gradients, buffers and state; other tensors get a number. Tensors that share a
    storage are one row, and the bytes count once."""
    with tensors.without_overrides():
        known = tensors.named(_as_list(model), _as_list(optimizer))
        return _report(_collect(known + _others(known)), verbose)


def _report(storages: list[_Storage], verbose: bool) -> TensorReport:
    blocks = _Blocks()
    devices = sorted({storage.device for storage in storages}, key=lambda name: (name == "cpu", name))
    totals = [_total(device, [s for s in storages if s.device == device], blocks) for device in devices]
    order = {device: number for number, device in enumerate(devices)}
    storages.sort(key=lambda s: (order[s.device], -s.size_bytes, s.names[0]))
    return TensorReport(tuple(_row(s, blocks) for s in storages), tuple(totals), verbose)


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]
