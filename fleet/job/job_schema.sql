-- The tables of `memtrace export sqlite` for a job of many ranks. docs/sql.md describes them.
CREATE TABLE settings(name TEXT PRIMARY KEY, value) WITHOUT ROWID;

-- A device of a rank.
CREATE TABLE ranks(
    row INTEGER PRIMARY KEY,
    rank INTEGER, device INTEGER, host TEXT, local_rank INTEGER, restart INTEGER, trace TEXT,
    outcome TEXT, -- unknown, finished, oom, failed, killed, cut
    is_dry_run INTEGER, is_complete INTEGER, device_bytes INTEGER,
    requested_peak_bytes INTEGER, allocated_peak_bytes INTEGER, active_peak_bytes INTEGER,
    reserved_peak_bytes INTEGER, allocated_peak_event INTEGER, reserved_peak_event INTEGER,
    needed_bytes INTEGER, -- memory that a card must have
    needed_is_exact INTEGER,
    outside_bytes INTEGER, -- of the driver, outside of the framework, at the allocated peak
    growth_bytes_per_step INTEGER, ooms INTEGER, retries INTEGER, last_step INTEGER,
    death_wanted_bytes INTEGER, death_free_bytes INTEGER, death_ns INTEGER, death_site TEXT
);

-- What held the memory of a rank at its allocated peak; sums to it.
CREATE TABLE rank_holders(
    row INTEGER, role TEXT, site TEXT, bytes INTEGER, blocks INTEGER
);

CREATE TABLE rank_steps(
    row INTEGER, first_step INTEGER, last_step INTEGER, begin_ns INTEGER, end_ns INTEGER,
    allocated_peak_bytes INTEGER, reserved_peak_bytes INTEGER, end_allocated_bytes INTEGER
);

-- Memory outside of the framework by library.
CREATE TABLE rank_owners(row INTEGER, library TEXT, bytes INTEGER);

CREATE TABLE rank_findings(row INTEGER, finding TEXT, title TEXT, bytes INTEGER);
