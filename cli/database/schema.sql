-- The tables of `memtrace export sqlite`, version 2. docs/sql.md describes them.
-- Bytes are bytes, events are sequence numbers of the trace, *_ns are Unix time in nanoseconds.

-- Facts about the recording and the analysis, by name.
CREATE TABLE settings(name TEXT PRIMARY KEY, value);

CREATE TABLE devices(
    device INTEGER PRIMARY KEY,
    name TEXT,
    total_memory_bytes INTEGER,
    first_event INTEGER, last_event INTEGER, -- of the recorded history; earlier ones are its start
    events INTEGER, allocations INTEGER, frees INTEGER, ooms INTEGER, retries INTEGER,
    is_complete INTEGER, -- 1: the trace begins with an empty allocator and nothing was dropped
    is_exact INTEGER,    -- 1: the replay equals the recording
    card_bytes INTEGER,  -- memory that a card must have for the run; NULL: unknown
    card_allocator_bytes INTEGER, card_libraries_bytes INTEGER, card_cuda_bytes INTEGER,
    card_doubt TEXT      -- why it may be more; NULL: it is not
);

-- The four peaks of each device, and the state at each of them.
CREATE TABLE peaks(
    device INTEGER, size TEXT, -- requested, allocated, active, reserved
    bytes INTEGER, event INTEGER, t_ns INTEGER, phase INTEGER, step INTEGER,
    requested_bytes INTEGER, allocated_bytes INTEGER, active_bytes INTEGER, reserved_bytes INTEGER
);

-- Instants of interest: kind is peak_allocated, peak_reserved, oom, phase_peak, phase_end,
-- step_peak or end.
CREATE TABLE instants(
    instant INTEGER PRIMARY KEY,
    device INTEGER, kind TEXT, event INTEGER, t_ns INTEGER, phase INTEGER, step INTEGER,
    requested_bytes INTEGER, allocated_bytes INTEGER, active_bytes INTEGER, reserved_bytes INTEGER
);

-- The four sizes over time: the state at the fullest instant of each of at most 16384 pieces of
-- equally many events, with the largest reserved size in the piece, and the state at each peak.
CREATE TABLE levels(
    device INTEGER, event INTEGER, t_ns INTEGER,
    requested_bytes INTEGER, allocated_bytes INTEGER, active_bytes INTEGER,
    reserved_max_bytes INTEGER,
    allocated_min_bytes INTEGER
);

CREATE TABLE phases(
    phase INTEGER PRIMARY KEY,
    parent INTEGER, depth INTEGER, name TEXT, path TEXT, step INTEGER,
    is_step INTEGER, is_framework INTEGER,
    source TEXT, -- annotation, scopes, stacks, threads, period
    thread INTEGER, begin_event INTEGER, end_event INTEGER, begin_ns INTEGER, end_ns INTEGER
);

-- A phase on a device.
CREATE TABLE phase_memory(
    device INTEGER, phase INTEGER,
    enter_allocated_bytes INTEGER, exit_allocated_bytes INTEGER,
    peak_requested_bytes INTEGER, peak_allocated_bytes INTEGER, peak_active_bytes INTEGER,
    peak_reserved_bytes INTEGER, peak_event INTEGER,
    allocations INTEGER, frees INTEGER
);

CREATE TABLE steps(
    device INTEGER, step INTEGER, loop TEXT, phase INTEGER,
    begin_event INTEGER, end_event INTEGER, begin_ns INTEGER, end_ns INTEGER,
    enter_allocated_bytes INTEGER, exit_allocated_bytes INTEGER,
    peak_requested_bytes INTEGER, peak_allocated_bytes INTEGER, peak_active_bytes INTEGER,
    peak_reserved_bytes INTEGER, peak_event INTEGER, peak_ns INTEGER
);

CREATE TABLE frames(frame INTEGER PRIMARY KEY, function TEXT, file TEXT, line INTEGER);

-- A stack is a path in a tree: frame is its innermost, parent is the stack that called it.
CREATE TABLE stacks(
    stack INTEGER PRIMARY KEY, parent INTEGER, frame INTEGER, depth INTEGER, site TEXT
);

CREATE TABLE streams(stream INTEGER PRIMARY KEY, handle INTEGER);
CREATE TABLE pools(
    pool INTEGER PRIMARY KEY, id_a INTEGER, id_b INTEGER,
    kind TEXT -- default, graph, private
);

-- What blocks have in common. The view `blocks` joins it.
CREATE TABLE origins(
    origin INTEGER PRIMARY KEY,
    role TEXT,
    role_source TEXT, -- recorded, inferred, guess, unknown
    site TEXT,        -- as in `memtrace live`
    operation TEXT,   -- that made the blocks; NULL: the site names it
    phase_name TEXT, tag TEXT,
    stack INTEGER, owner_stack INTEGER,
    owner TEXT,       -- what a block without a stack belongs to: nothing, parameter, forward_site, ...
    stream INTEGER, pool INTEGER,
    heap TEXT,         -- of a recording without a framework: the driver's kind of memory
    is_initial INTEGER -- 1: its blocks are older than the recorded history
);

CREATE TABLE block_rows(
    block INTEGER PRIMARY KEY,
    device INTEGER, address INTEGER, bytes INTEGER, requested_bytes INTEGER,
    birth_event INTEGER, birth_ns INTEGER,
    free_event INTEGER, free_ns INTEGER,           -- the request; NULL: live at the end
    completed_event INTEGER, completed_ns INTEGER, -- the address may be reused; NULL: never
    origin INTEGER, phase INTEGER
);

-- Every block of the run.
CREATE VIEW blocks AS
SELECT b.block, b.device, b.address, b.bytes, b.requested_bytes, b.birth_event, b.birth_ns,
    b.free_event, b.free_ns, b.completed_event, b.completed_ns,
    o.role, o.role_source, o.site, o.operation, o.tag, o.phase_name, p.path AS phase_path, p.step,
    o.stack, o.owner_stack, o.owner, o.stream, o.pool, o.heap, o.is_initial, b.origin, b.phase
FROM block_rows b JOIN origins o USING(origin) LEFT JOIN phases p USING(phase);

-- Memory that the allocator took from the driver. A part that is unmapped earlier has its own row.
CREATE TABLE segments(
    segment INTEGER PRIMARY KEY,
    device INTEGER, address INTEGER, bytes INTEGER, is_expandable INTEGER,
    birth_event INTEGER, birth_ns INTEGER,
    free_event INTEGER, free_ns INTEGER, -- NULL: it exists at the end
    stream INTEGER, pool INTEGER, stack INTEGER
);

-- With --events: every event of the allocator, and the four sizes after it.
CREATE TABLE events(
    event INTEGER PRIMARY KEY,
    device INTEGER, t_ns INTEGER, kind TEXT, address INTEGER, bytes INTEGER,
    stream INTEGER, pool INTEGER, stack INTEGER, phase INTEGER,
    requested_bytes INTEGER, allocated_bytes INTEGER, active_bytes INTEGER, reserved_bytes INTEGER
);

-- The numbers of the views block_N and trace_entry_N (device N), which have the names and columns
-- of pt-snap's databases. trace_entry_N exists if `events` is filled.
CREATE TABLE dictionary("table" TEXT, "column" TEXT, "key" TEXT, "value" TEXT);

-- Layers and other modules at the allocated peak; they sum to it, by role.
CREATE TABLE modules(
    device INTEGER, module TEXT, kind TEXT, layer INTEGER, role TEXT,
    bytes INTEGER, requested_bytes INTEGER
);

CREATE TABLE findings(
    device INTEGER, finding TEXT, severity TEXT, bytes INTEGER, bytes_per_step INTEGER,
    title TEXT, advice TEXT, cost TEXT,
    saving TEXT, -- exact, at least, at most, estimated; NULL: unknown
    saves_bytes INTEGER, proved_by TEXT, evidence TEXT
);

CREATE TABLE ooms(
    device INTEGER, event INTEGER, t_ns INTEGER, request_bytes INTEGER, device_free_bytes INTEGER,
    is_fatal INTEGER, phase INTEGER, step INTEGER, stack INTEGER,
    requested_bytes INTEGER, allocated_bytes INTEGER, active_bytes INTEGER, reserved_bytes INTEGER
);

-- Driver memory outside of the framework at the allocated peak, by owner.
CREATE TABLE driver(
    device INTEGER, library TEXT, what TEXT, call TEXT, site TEXT, communicator INTEGER,
    bytes INTEGER, blocks INTEGER
);

-- Blocks that are live at an instant of the table `instants`. CROSS JOIN makes SQLite search the
-- blocks of each instant by their index, whatever it estimates.
CREATE VIEW live AS
SELECT i.instant, i.kind, i.event, b.*
FROM instants i CROSS JOIN blocks b WHERE b.device = i.device AND b.birth_event <= i.event
    AND (b.free_event IS NULL OR b.free_event > i.event);

-- The allocated peak of each device by site and role: its bytes sum to the peak.
CREATE VIEW live_at_peak AS
SELECT device, site, role, sum(bytes) AS bytes, sum(requested_bytes) AS requested_bytes,
    count(*) AS blocks
FROM live WHERE kind = 'peak_allocated' GROUP BY device, site, role;

-- The frames of each stack; 0 is the innermost.
CREATE VIEW stack_frames AS
WITH RECURSIVE path(stack, caller, level) AS (
    SELECT stack, stack, 0 FROM stacks
    UNION ALL
    SELECT path.stack, stacks.parent, level + 1 FROM path JOIN stacks ON stacks.stack = path.caller
    WHERE stacks.parent IS NOT NULL)
SELECT path.stack, path.level, f.frame, f.function, f.file, f.line
FROM path JOIN stacks ON stacks.stack = path.caller JOIN frames f USING(frame);
