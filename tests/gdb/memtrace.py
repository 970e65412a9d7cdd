"""gdb: a batch of events, and the blocks of a simulated allocator, as tables.

    gdb -x tests/gdb/memtrace.py --args build/dev/memtrace analyze FILE
    (gdb) mt-events *batch            the first 20 events of a struct mt_event_batch
    (gdb) mt-events *batch 100 5      five, from the 100th
    (gdb) mt-blocks *store            the blocks of a struct mt_block_store, by segment and address
"""
import gdb


def enum_names(name, prefix):
    """Value -> constant of an enum, without its prefix."""
    return {field.enumval: field.name.removeprefix(prefix) for field in gdb.lookup_type(f"enum {name}").fields()}


class Events(gdb.Command):
    """mt-events BATCH [FIRST [COUNT]]: events of a struct mt_event_batch."""

    def __init__(self):
        super().__init__("mt-events", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, _from_tty):
        words = gdb.string_to_argv(argument)
        if not words:
            raise gdb.GdbError("mt-events: which batch? mt-events BATCH [FIRST [COUNT]]")
        batch, kinds = gdb.parse_and_eval(words[0]), enum_names("mt_event_kind", "MT_EVENT_")
        first, most = (int(word) for word in (words[1:] + ["0", "20"][len(words) - 1:])[:2])
        count = int(batch["count"])
        print(f"{count} events")
        print(f"{'seq':>10} {'kind':16} {'addr':>14} {'size_bytes':>14} dev heap pool stream stack")
        for i in range(first, min(count, first + most)):
            event = batch["events"][i]
            print(f"{int(event['seq']):10} {kinds.get(int(event['kind']), '?'):16} {int(event['addr']):14x} {int(event['size_bytes']):14} "
                  f"{int(event['device']):3} {int(event['heap']):4} {int(event['pool']):4} {int(event['stream']):6} {int(event['stack'])}")


class Blocks(gdb.Command):
    """mt-blocks STORE: blocks of a struct mt_block_store, neighbors together."""

    def __init__(self):
        super().__init__("mt-blocks", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, _from_tty):
        store, states = gdb.parse_and_eval(argument), enum_names("mt_block_state", "MT_BLOCK_")
        blocks = [store["blocks"][i] for i in range(int(store["count"]))]
        print(f"{int(store['live'])} blocks")
        for i, block in enumerate(blocks):
            if states.get(int(block["state"])) == "UNUSED" or int(block["previous"]) != 0xFFFFFFFF:
                continue
            print(f"segment, pool {int(block['pool'])}, stream {int(block['stream'])}")
            at, seen = i, 0
            while at < len(blocks) and seen <= len(blocks):  # a damaged list must end
                print(f"  {at:6} {int(blocks[at]['addr']):14x} {int(blocks[at]['size_bytes']):14} {states.get(int(blocks[at]['state']), '?'):9}"
                      f" requested {int(blocks[at]['requested_bytes'])}")
                at, seen = int(blocks[at]["next"]), seen + 1


Events()
Blocks()
