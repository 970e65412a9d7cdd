"""A slow model of PyTorch's caching allocator: what one device writes into a memory snapshot, and what it counts.

Written from the rules of c10/cuda/CUDACachingAllocator.cpp, without memtrace's code: best fit by (stream, size,
address); segments of 2 MiB, 20 MiB or the request; expandable segments, mapped in pages; private pools; frees that
wait for other streams; garbage collection, release of oversize blocks, and the flush of a retry. Only the flush, and
the program's own empty_cache(), complete frees that wait. All lists are searched from the start: nothing is fast.

`device.trace` has the entries, `device.trail` the counters after each of them, `device.segments()` the final state."""
import copy
import random

MIB = 1 << 20
SMALL_LIMIT, SMALL_SEGMENT, LARGE_SEGMENT = MIB, 2 * MIB, 20 * MIB
UNLIMITED = 1 << 62
DEFAULT_POOL = (0, 0)


class OutOfMemory(Exception):
    pass


class Options:
    """The allocator's settings, and how a snapshot spells them."""

    def __init__(self, max_split=UNLIMITED, gc_threshold=0.0, expandable=False, divisions=0):
        self.max_split, self.gc_threshold = max_split, gc_threshold
        self.expandable, self.divisions = expandable, divisions

    def text(self):
        words = [f"max_split_size_mb:{self.max_split // MIB}"] if self.max_split != UNLIMITED else []
        words += [f"garbage_collection_threshold:{self.gc_threshold}"] if self.gc_threshold else []
        words += ["expandable_segments:True"] if self.expandable else []
        words += [f"roundup_power2_divisions:{self.divisions}"] if self.divisions else []
        return ",".join(words)

    def settings(self):
        return {"PYTORCH_CUDA_ALLOC_CONF": self.text(), "expandable_segments": self.expandable,
                "max_split_size": -1 if self.max_split == UNLIMITED else self.max_split,
                "garbage_collection_threshold": self.gc_threshold,
                "roundup_power2_divisions": {str(1 << i): self.divisions for i in range(16)}}

    def round(self, size):
        if size < 512:
            return 512
        if self.divisions > 1 and size > 512 * self.divisions:
            floor = 1 << (size.bit_length() - 1)
            step = floor // self.divisions
            return 2 * floor if not step else -(-size // step) * step
        return -(-size // 512) * 512


class Block:
    def __init__(self, addr, size, pool, stream, reservation=None):
        self.addr, self.size, self.pool, self.stream, self.reservation = addr, size, pool, stream, reservation
        self.requested, self.allocated, self.waits_for, self.mapped = 0, False, set(), True
        self.previous = self.next = None
        self.gc_base = 0

    def is_free(self):
        return not self.allocated and not self.waits_for

    def is_split(self):
        return self.previous is not None or self.next is not None

    def key(self):
        return self.size, self.addr


class Pool:
    """Free blocks of one size class of one owner; `unmapped`: rests of expandable reservations."""

    def __init__(self, owner, is_small):
        self.owner, self.is_small, self.free, self.unmapped, self.clock = owner, is_small, [], [], 0
        self.page = SMALL_SEGMENT if is_small else LARGE_SEGMENT

    def of(self, stream):
        return sorted((block for block in self.free if block.stream == stream), key=Block.key)

    def add(self, block):
        block.gc_base = self.clock
        self.free.append(block)


class Device:
    def __init__(self, number, dice, options, limit=None):
        self.number, self.dice, self.options, self.limit = number, dice, options, limit
        self.pools = {DEFAULT_POOL: (Pool(DEFAULT_POOL, True), Pool(DEFAULT_POOL, False))}
        self.deleted_pools, self.in_pool = [], DEFAULT_POOL
        self.active, self.waiting, self.deferred = [], [], []
        self.levels = {"requested": 0, "allocated": 0, "active": 0, "reserved": 0}
        self.counts = {"retries": 0, "ooms": 0}
        self.trace, self.trail, self.t_us = [], [], 1_000_000
        self.completes = 0.08  # the share of waiting frees that a request completes
        self.next_addr, self.free_ranges = 0x7F0000000000 + (number << 50), []

    # -- what a snapshot records ------------------------------------------------------------------

    def note(self, action, addr, size, stream, pool=DEFAULT_POOL, **levels):
        for name, by in levels.items():
            self.levels[name] += by
        self.t_us += self.dice.choice([0, 0, 1, 3, 50])
        entry = {"action": action, "size": size, "stream": stream, "time_us": self.t_us,
                 "frames": [{"filename": "train.py", "line": self.dice.randrange(1, 9), "name": f"f{self.dice.randrange(4)}"}]}
        entry["device_free" if action == "oom" else "addr"] = addr
        self.trace.append((entry, pool))
        self.trail.append({**self.levels, **self.counts})

    # -- the driver -------------------------------------------------------------------------------

    def take_address(self, size):
        """An address that was free before, or a new one."""
        for i, (addr, room) in enumerate(self.free_ranges):
            if room == size and self.dice.random() < 0.5:
                del self.free_ranges[i]
                return addr
        addr = self.next_addr
        self.next_addr += -(-size // (2 * MIB)) * 2 * MIB + self.dice.choice([0, 2 * MIB])
        return addr

    # -- requests ---------------------------------------------------------------------------------

    def malloc(self, size, stream):
        if self.in_pool == DEFAULT_POOL:
            self.process_events()
        rounded = self.options.round(size)
        pool = self.pools[self.in_pool][rounded > SMALL_LIMIT]
        block = self.take_free(pool, stream, rounded) or self.take_new(pool, stream, rounded)
        if block is None:
            self.counts["ooms"] += 1
            self.note("oom", (self.limit or 0) - self.levels["reserved"], self.segment_size(rounded), stream)
            raise OutOfMemory
        if self.splits(block, rounded):
            rest = Block(block.addr + rounded, block.size - rounded, pool, stream, block.reservation)
            rest.previous, rest.next = block, block.next
            if rest.next:
                rest.next.previous = rest
            block.next, block.size = rest, rounded
            pool.add(rest)
        block.allocated, block.requested = True, size
        self.active.append(block)
        self.note("alloc", block.addr, size, stream, pool.owner, requested=size, allocated=block.size, active=block.size)
        return block

    def segment_size(self, rounded):
        if rounded <= SMALL_LIMIT:
            return SMALL_SEGMENT
        return LARGE_SEGMENT if rounded < 10 * MIB else -(-rounded // (2 * MIB)) * 2 * MIB

    def splits(self, block, rounded):
        rest = block.size - rounded
        if block.pool.is_small or self.options.expandable:
            return rest >= 512
        return rounded < self.options.max_split and rest > SMALL_LIMIT

    def take_free(self, pool, stream, rounded):
        if self.limit and self.options.gc_threshold:
            pool.clock += 1
        fitting = [block for block in pool.of(stream) if block.size >= rounded]
        if not fitting:
            return None
        at = 0
        if self.options.expandable:  # a block at the growing end counts as larger than it is
            def reach(block):
                return block.size + (block.next.size if block.next and not block.next.mapped else 0)
            while at + 1 < len(fitting) and reach(fitting[at + 1]) < reach(fitting[at]):
                at += 1
        found = fitting[at]
        most = self.options.max_split
        if (rounded < most <= found.size) or (rounded >= most and found.size >= rounded + LARGE_SEGMENT):
            return None
        pool.free.remove(found)
        return found

    def take_new(self, pool, stream, rounded):
        if self.limit and self.options.gc_threshold:
            self.collect_garbage()
        block = self.take_from_driver(pool, stream, rounded)
        if block is None and self.release_available(pool, stream, rounded):
            block = self.take_from_driver(pool, stream, rounded)
        if block is None and self.in_pool == DEFAULT_POOL:
            self.flush()
            self.counts["retries"] += 1
            block = self.take_from_driver(pool, stream, rounded)
        return block

    def take_from_driver(self, pool, stream, rounded):
        size = self.segment_size(rounded)
        if self.limit and self.levels["reserved"] + size > self.limit:
            return None
        if self.options.expandable:
            return self.expand(pool, stream, rounded)
        block = Block(self.take_address(size), size, pool, stream)
        self.note("segment_alloc", block.addr, size, stream, pool.owner, reserved=size)
        return block

    # -- expandable segments ----------------------------------------------------------------------

    def expand(self, pool, stream, rounded):
        block = self.find_expandable(pool, stream, rounded)
        if not block.mapped:
            self.map(block, min(block.size, rounded))
        while block.size < rounded:
            rest = block.next
            self.map(rest, min(rounded - block.size, rest.size))
            block = rest
        pool.free.remove(block)
        return block

    def find_expandable(self, pool, stream, rounded):
        for block in sorted((one for one in pool.unmapped if one.stream == stream), key=lambda one: one.addr):
            if block.previous and block.previous.is_free():
                block = block.previous
            room, at = 0, block
            while room < rounded and at and at.is_free():
                room, at = room + at.size, at.next
            if room >= rounded:
                return block
        size = LARGE_SEGMENT << 20  # whole pages of both kinds
        block = Block(self.next_addr, size, pool, stream, reservation=self.next_addr)
        self.next_addr += size
        block.mapped = False
        pool.unmapped.append(block)
        return block

    def map(self, block, size):
        """Maps whole pages from the start of an unmapped block."""
        pool = block.pool
        end = block.reservation + -(-(block.addr + size - block.reservation) // pool.page) * pool.page
        size = end - block.addr
        pool.unmapped.remove(block)
        block.mapped = True
        if size < block.size:
            rest = Block(end, block.size - size, pool, block.stream, block.reservation)
            rest.mapped = False
            rest.previous, rest.next = block, block.next
            if rest.next:
                rest.next.previous = rest
            block.next, block.size = rest, size
            pool.unmapped.append(rest)
        at = block.addr
        self.merge(block, block.previous)
        self.merge(block, block.next)
        pool.add(block)
        self.note("segment_map", at, size, block.stream, pool.owner, reserved=size)

    def unmap(self, block):
        """Unmaps the whole pages of a free block."""
        pool, base = block.pool, block.reservation
        begin = base + -(-(block.addr - base) // pool.page) * pool.page
        end = base + (block.addr + block.size - base) // pool.page * pool.page
        if end <= begin:
            return
        pool.free.remove(block)
        for addr, size in ((block.addr, begin - block.addr), (end, block.addr + block.size - end)):
            if not size:
                continue
            part = Block(addr, size, pool, block.stream, base)
            below, above = (block.previous, block) if addr < begin else (block, block.next)
            part.previous, part.next = below, above
            if below:
                below.next = part
            if above:
                above.previous = part
            pool.add(part)
        block.addr, block.size, block.mapped = begin, end - begin, False
        self.merge(block, block.previous)
        self.merge(block, block.next)
        pool.unmapped.append(block)
        self.note("segment_unmap", begin, end - begin, block.stream, pool.owner, reserved=begin - end)

    # -- frees ------------------------------------------------------------------------------------

    def free(self, block, other_streams=()):
        """`other_streams`: those that use the block (record_stream)."""
        block.allocated = False
        self.note("free_requested", block.addr, block.requested, block.stream, block.pool.owner, allocated=-block.size)
        block.waits_for = {stream for stream in other_streams if stream != block.stream}
        if not block.waits_for:
            self.complete(block)
        else:
            (self.deferred if self.in_pool != DEFAULT_POOL else self.waiting).append(block)

    def process_events(self, all_of_them=False):
        """Completes the frees whose streams have reached them; here the dice decide."""
        self.waiting += self.deferred
        self.deferred = []
        for block in [one for one in self.waiting if all_of_them or self.dice.random() < self.completes]:
            self.waiting.remove(block)
            block.waits_for = set()
            self.complete(block)

    def complete(self, block):
        self.note("free_completed", block.addr, block.requested, block.stream, block.pool.owner,
                  active=-block.size, requested=-block.requested)
        block.requested = 0
        self.active.remove(block)
        self.merge(block, block.previous)
        self.merge(block, block.next)
        block.pool.add(block)

    def merge(self, block, other):
        if other is None or not other.is_free() or other.mapped != block.mapped:
            return
        if block.previous is other:
            block.addr, block.previous = other.addr, other.previous
            if other.previous:
                other.previous.next = block
        else:
            block.next = other.next
            if other.next:
                other.next.previous = block
        block.size += other.size
        (block.pool.free if other.mapped else block.pool.unmapped).remove(other)

    # -- releases ---------------------------------------------------------------------------------

    def release(self, block):
        block.pool.free.remove(block)
        self.free_ranges.append((block.addr, block.size))
        self.note("segment_free", block.addr, block.size, block.stream, block.pool.owner, reserved=-block.size)

    def release_pool(self, pool):
        blocks = sorted(pool.free, key=lambda block: (block.stream, block.size, block.addr))
        for block in blocks:
            if block.reservation is None and not block.is_split():
                self.release(block)
        for block in blocks:
            if block.reservation is not None:
                self.unmap(block)
                if not block.mapped and not block.is_split():
                    pool.unmapped.remove(block)

    def collect_garbage(self):
        """Releases old segments of the default pool. Completes nothing."""
        threshold = int(self.options.gc_threshold * self.limit)
        if self.levels["reserved"] <= threshold:
            return
        target, reclaimed, pool = self.levels["reserved"] - threshold, 0, self.pools[DEFAULT_POOL][1]
        whole = [block for block in pool.free if not block.is_split()]
        age, count, released = sum(pool.clock - block.gc_base for block in whole), len(whole), True
        while reclaimed < target and released and count:
            limit, released = age / count, False
            for block in sorted(pool.free, key=lambda block: (block.stream, block.size, block.addr)):
                if not block.is_split() and pool.clock - block.gc_base >= limit:
                    released, reclaimed = True, reclaimed + block.size
                    age, count = age - (pool.clock - block.gc_base), count - 1
                    self.release(block)

    def release_available(self, pool, stream, rounded):
        """Releases oversize blocks until the request fits. Completes nothing."""
        if self.options.max_split == UNLIMITED:
            return False
        wanted, released = max(rounded, self.options.max_split), 0
        blocks = pool.of(stream)
        for block in blocks:
            if block.size >= wanted:
                self.release(block)
                return True
        for block in reversed(blocks):
            if released >= wanted or block.size < self.options.max_split:
                break
            released += block.size
            self.release(block)
        return released >= wanted

    def flush(self):
        """A retry and empty_cache() wait for all frees, then release what they can. In a private pool they release only
        pools that were deleted."""
        if self.in_pool == DEFAULT_POOL:
            self.process_events(all_of_them=True)
            self.release_pool(self.pools[DEFAULT_POOL][1])
            self.release_pool(self.pools[DEFAULT_POOL][0])
        for owner in self.deleted_pools:
            for pool in self.pools[owner]:
                self.release_pool(pool)

    # -- private pools ----------------------------------------------------------------------------

    def use_pool(self, owner):
        """Until the next call, requests go to this pool; nothing waits for streams in a private one."""
        self.in_pool = owner
        self.pools.setdefault(owner, (Pool(owner, True), Pool(owner, False)))

    def delete_pool(self, owner):
        self.deleted_pools.append(owner)

    # -- the end ----------------------------------------------------------------------------------

    def segments(self):
        """As `segments` of a snapshot: a mapped range of an expandable segment counts as one."""
        blocks = self.active + [block for pair in self.pools.values() for pool in pair for block in pool.free]
        heads = [block for block in blocks if not (block.previous and block.previous.mapped)]
        return [self.segment(head) for head in sorted(heads, key=lambda block: block.addr)]

    def segment(self, head):
        parts, at = [], head
        while at and at.mapped:
            state = "active_allocated" if at.allocated else "active_pending_free" if at.waits_for else "inactive"
            parts.append({"address": at.addr, "size": at.size, "requested_size": at.requested, "state": state, "frames": []})
            at = at.next
        active = [part for part in parts if part["state"] != "inactive"]
        return {"device": self.number, "address": head.addr, "total_size": sum(part["size"] for part in parts),
                "allocated_size": sum(part["size"] for part in parts if part["state"] == "active_allocated"),
                "active_size": sum(part["size"] for part in active),
                "requested_size": sum(part["requested_size"] for part in active),
                "stream": head.stream, "segment_type": "small" if head.pool.is_small else "large",
                "segment_pool_id": head.pool.owner, "is_expandable": head.reservation is not None, "frames": [],
                "blocks": parts}


# -- random programs ------------------------------------------------------------------------------

SIZES = ([1, 511, 512, 513, 4000, 300_000], [MIB - 1, MIB, MIB + 1, 512], [512, 3 * MIB, 10 * MIB, 10 * MIB - 1, 19 * MIB, 30 * MIB + 7],
         [1 << 41, (1 << 43) + 5, 512], [0, 1, MIB, 2 * MIB, 3584], [100, 5000, 700_000, 1_500_000, 6 * MIB, 11 * MIB, 25 * MIB, 47 * MIB])


class Program:
    """A random program on one or more devices. `cut[d]`: entries of device d that are missing at the start."""

    def __init__(self, seed):
        dice = self.dice = random.Random(seed)
        self.sizes = dice.choice(SIZES)
        small = max(self.sizes) < 1 << 40
        limit = dice.choice([None, None, 64 * MIB, 120 * MIB, 300 * MIB]) if small else None
        self.options = Options(
            max_split=dice.choice([UNLIMITED, UNLIMITED, 20 * MIB, 25 * MIB]), expandable=dice.random() < 0.3,
            gc_threshold=dice.choice([0.0, 0.0, 0.5, 0.8]) if limit else 0.0,
            divisions=dice.choice([0, 0, 0, 0, 4, 8]))
        if self.options.expandable:
            self.options.gc_threshold, self.options.max_split = 0.0, UNLIMITED
        self.devices = [Device(i, dice, self.options, limit) for i in range(dice.choice([1, 1, 1, 2, 4]))]
        self.streams = [0] + [dice.randrange(1, 1 << 40) for _ in range(dice.randrange(3))]
        self.waits = dice.choice([0, 0.1, 0.35])
        completes = dice.choice([0.08, 0.08, 0])  # 0: a busy stream, for which only a flush waits
        for device in self.devices:
            device.completes = completes
        self.has_pools = dice.random() < 0.35
        for _ in range(dice.randrange(5, 260)):
            self.act(dice.choice(self.devices))
        for device in self.devices:
            device.use_pool(DEFAULT_POOL)
        self.kind = dice.choice(["whole", "whole", "late", "ring"])
        self.cut = [0 if self.kind == "whole" else dice.randrange(len(device.trace) + 1) for device in self.devices]

    def act(self, device):
        dice, chance = self.dice, self.dice.random()
        if chance < 0.03 and self.has_pools:
            live = [owner for owner in device.pools if owner not in device.deleted_pools]
            owner = dice.choice(live + [DEFAULT_POOL, (0, len(device.pools)), (len(device.pools), 0)])
            device.use_pool(owner)
        elif chance < 0.04 and device.in_pool == DEFAULT_POOL and len(device.pools) > 1:
            owner = dice.choice([one for one in device.pools if one != DEFAULT_POOL])
            if owner not in device.deleted_pools:
                device.delete_pool(owner)
        elif chance < 0.07:
            device.flush()
        elif chance < 0.55:
            try:
                device.malloc(dice.choice(self.sizes), dice.choice(self.streams))
            except OutOfMemory:
                pass
        else:
            live = [block for block in device.active if block.allocated]
            if live:
                device.free(dice.choice(live), self.streams if dice.random() < self.waits else ())

    def snapshot(self):
        """The dictionary that PyTorch would dump."""
        has_times, names_pools = self.dice.random() < 0.85, self.dice.random() < 0.3
        traces = []
        for device, cut in zip(self.devices, self.cut):
            trace = []
            for entry, pool in device.trace[cut:]:
                entry = copy.copy(entry) | ({"segment_pool_id": pool} if names_pools and entry["action"] != "oom" else {})
                if not has_times:
                    del entry["time_us"]
                trace.append(entry)
            traces.append(trace)
        segments = [segment for device in self.devices for segment in device.segments()]
        return {"segments": segments, "device_traces": traces, "allocator_settings": self.options.settings()}

    def truth(self, number):
        """{counter: (peak since the window began, at the end)}, retries and OOMs in the window; None: no entries."""
        device, cut = self.devices[number], self.cut[number]
        trail = device.trail
        if cut == len(trail):
            return None
        start = trail[cut - 1] if cut else dict.fromkeys(trail[0], 0)
        found = {name: (max(row[name] for row in [start, *trail[cut:]]), trail[-1][name]) for name in device.levels}
        return found, {name: trail[-1][name] - start[name] for name in device.counts}


class Waiting(Program):
    """Frees wait from before the history, or are requested in it, until after its end: none completes in it."""

    def __init__(self, seed, expandable, is_requested_in_it):
        self.dice = random.Random(seed)
        self.options, self.streams, self.kind = Options(expandable=expandable), [0, 7], "late"
        device = Device(0, self.dice, self.options)
        self.devices, device.completes = [device], 0
        blocks = [device.malloc(size, 0) for size in (10 * MIB, 3 * MIB, 500_000)]
        begin = len(device.trace)
        for block in blocks:
            device.free(block, self.streams)
        self.cut = [begin if is_requested_in_it else len(device.trace)]
        for size in (39 * MIB, 400_000):
            device.malloc(size, 0)
