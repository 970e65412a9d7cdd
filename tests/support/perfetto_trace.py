"""Reads a trace of Perfetto. Numbers of fields are those of protos/perfetto/trace in
github.com/google/perfetto: trace_packet.proto, track_event/*.proto, profiling/profile_packet.proto."""
import collections

from support.protobuf import message, one

REALTIME, MONOTONIC_COARSE = 1, 4  # common/builtin_clock.proto
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4  # TrackEvent.Type
BYTES = 3  # CounterDescriptor.Unit
CLEARED, NEEDED = 1, 2  # TracePacket.SequenceFlags

Frame = collections.namedtuple("Frame", "function file line")
Event = collections.namedtuple("Event", "kind time name categories level facts stack")
Dump = collections.namedtuple("Dump", "writer pid heap time samples")


def text(found, number):
    return one(found, number, b"").decode()  # UTF-8


class Writer:
    """What the packets of one sequence refer to by number."""

    def __init__(self):
        self.names, self.functions, self.files, self.frames, self.stacks = {}, {0: ""}, {0: ""}, {}, {}
        self.clock = None

    def learn(self, data):
        found = message(data)
        for number, table in ((2, self.names), (5, self.functions), (18, self.files)):
            for entry in map(message, found.get(number, [])):
                assert one(entry, 1) > 0 and one(entry, 1) not in table
                table[one(entry, 1)] = text(entry, 2)
        for entry in map(message, found.get(6, [])):
            self.frames[one(entry, 1)] = Frame(self.functions[one(entry, 2)], self.files[one(entry, 5)], one(entry, 6))
        for entry in map(message, found.get(7, [])):
            assert one(entry, 1) not in self.stacks
            self.stacks[one(entry, 1)] = tuple(self.frames[each] for each in entry[2])


class Trace:
    def __init__(self, data):
        self.tracks, self.events, self.dumps, self.clocks = {}, collections.defaultdict(list), [], []
        self.writers, self.packets, self.indices = {}, 0, collections.Counter()
        top = message(data)
        assert set(top) == {1}, set(top)
        for packet in map(message, top[1]):
            self.packet(packet)

    def packet(self, packet):
        self.packets += 1
        number, flags = one(packet, 10), one(packet, 13)
        assert number
        if flags & CLEARED:
            self.writers[number] = Writer()
        writer = self.writers[number]
        assert flags & NEEDED
        if 59 in packet:
            writer.clock = one(message(one(packet, 59)), 58)
        assert writer.clock == REALTIME
        if 12 in packet:
            writer.learn(one(packet, 12))
        time = one(packet, 8)
        if 60 in packet:
            self.track(message(one(packet, 60)))
        elif 11 in packet:
            self.event(message(one(packet, 11)), writer, time)
        elif 37 in packet:
            self.profile(message(one(packet, 37)), number, time)
        else:
            clocks = message(one(packet, 6))
            assert one(clocks, 2) == REALTIME
            self.clocks.append({one(each, 1): one(each, 2) for each in map(message, clocks[1])})

    def track(self, found):
        uuid = one(found, 1)
        assert uuid not in self.tracks
        parent, process = one(found, 5), message(one(found, 3, b""))
        assert not parent or parent in self.tracks
        self.tracks[uuid] = {"name": text(found, 2) or text(process, 6), "parent": parent, "pid": one(process, 1),
                             "description": text(found, 14), "rank": one(found, 12)}
        if 8 in found:
            counter = message(one(found, 8))
            assert one(counter, 3) == BYTES
            self.tracks[uuid]["axis"] = text(counter, 7)

    def event(self, found, writer, time):
        facts = {}
        for entry in map(message, found.get(4, [])):
            facts[text(entry, 10)] = text(entry, 6) if 6 in entry else one(entry, 3)
        track = one(found, 11)
        assert track in self.tracks and (30 in found) == ("axis" in self.tracks[track])
        name = writer.names[one(found, 10)] if 10 in found else None
        stack = writer.stacks[one(found, 56)] if 56 in found else None
        self.events[track].append(Event(one(found, 9), time, name, [each.decode() for each in found.get(22, [])],
                                        one(found, 30), facts, stack))

    def profile(self, found, number, time):
        assert one(found, 7) == self.indices[number]
        self.indices[number] += 1
        dump = message(one(found, 5))
        assert one(dump, 9) == time and one(dump, 12) == one(dump, 13) == 1
        stacks = self.writers[number].stacks
        samples = {}
        for sample in map(message, dump.get(2, [])):
            assert one(sample, 1) not in samples
            samples[one(sample, 1)] = (stacks[one(sample, 1)], [one(sample, each) for each in (2, 3, 5, 6)])
        self.dumps.append(Dump(number, one(dump, 1), text(dump, 11), time, samples))

    # ---- what Perfetto shows

    def processes(self):
        return {uuid: track for uuid, track in self.tracks.items() if track["pid"]}

    def process_of(self, uuid):
        while self.tracks[uuid]["parent"]:
            uuid = self.tracks[uuid]["parent"]
        return uuid

    def counter(self, process, name):
        """(time, level) of a counter, in order."""
        [uuid] = [uuid for uuid, track in self.tracks.items()
                  if track["name"] == name and "axis" in track and self.process_of(uuid) == process]
        points = [(event.time, event.level) for event in self.events[uuid]]
        assert points == sorted(points, key=lambda point: point[0]), name
        return points

    def roles(self, process):
        """The names of the counters below 'by role'."""
        [group] = [uuid for uuid, track in self.tracks.items()
                   if track["name"] == "by role" and track["parent"] == process]
        return [track["name"] for track in self.tracks.values() if track["parent"] == group]

    def instants(self, process, track_name):
        return [event for uuid, track in self.tracks.items() for event in self.events[uuid]
                if track["name"] == track_name and track["parent"] == process]

    def slices(self, process):
        """(name, begin, end, categories, depth, facts); ends match the innermost open slice of a track."""
        found = []
        for uuid, track in self.tracks.items():
            if track["parent"] != process or not track["name"].startswith("steps and phases"):
                continue
            opened, last = [], 0
            for event in self.events[uuid]:
                assert event.time >= last
                last = event.time
                if event.kind == BEGIN:
                    opened.append(event)
                else:
                    begin = opened.pop()
                    found.append((begin.name, begin.time, event.time, begin.categories, len(opened), begin.facts))
            assert not opened
        return found

    def allocations(self, pid, heap):
        """The table heap_profile_allocation: (time, stack, bytes, count), by the rules of AddAllocation in
        importers/proto/profile_packet_sequence_state.cc."""
        rows, before = [], collections.defaultdict(lambda: [0, 0, 0, 0])
        for dump in self.dumps:
            if (dump.pid, dump.heap) != (pid, heap):
                continue
            for number, (stack, totals) in dump.samples.items():
                allocated, freed, count, frees = (now - then for now, then in zip(totals, before[number]))
                assert min(allocated, freed, count, frees) >= 0, "Perfetto would drop it"
                before[number] = totals
                if allocated or count:
                    rows.append((dump.time, stack, allocated, count))
                if freed or frees:
                    rows.append((dump.time, stack, -freed, -frees))
        return rows

    def flame(self, pid, heap, time):
        """{stack: (bytes, count)} of the profile at that time. Newer versions of Perfetto select the rows after
        the profile before (heap_profile/intervals.sql, heap_profile_details_panel.ts), older ones all rows up to
        this one. Both see the same."""
        rows = self.allocations(pid, heap)
        start = max((each for each in {row[0] for row in rows} if each < time), default=0) + 1
        new, old = ({} for _ in range(2))
        for found, begin in ((new, start), (old, 0)):
            for when, stack, size, count in rows:
                if begin <= when <= time:
                    then = found.get(stack, (0, 0))
                    found[stack] = (then[0] + size, then[1] + count)
        assert all(count > 0 for _, count in new.values()), "Perfetto hides it"
        assert new == {stack: sums for stack, sums in old.items() if sums != (0, 0)}
        return new
