"""Programs that a recorder must not harm. Each prints what must be the same with and without
memtrace, and writes files into FOLDER that must be the same byte for byte.

    harm.py train                 a short training
    harm.py closes FOLDER         closes what it did not open, reuses the numbers, trains on
    harm.py daemon FOLDER         closes 3 to 4095 and forks twice, then trains
    harm.py steady SECONDS        trains for a while"""
import os
import stat
import sys
import time

FILES, LIMIT = 8, 1024


def make_training():
    import torch  # pylint: disable=import-outside-toplevel

    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8))).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(size):
        optimizer.zero_grad()
        loss = model(torch.ones(size, 256, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        return f"{loss.item():.6f}"

    return step


def is_regular(number):
    try:
        return stat.S_ISREG(os.fstat(number).st_mode)
    except OSError:
        return False


def is_free(number):
    try:
        os.fstat(number)
    except OSError:
        return True
    return False


def close_strangers():
    """All regular files: the driver's devices, pipes and sockets are not ours to close."""
    for number in range(3, 4096):
        if is_regular(number):
            os.close(number)


def closes(folder):
    step = make_training()
    step(64)
    time.sleep(0.5)  # what is recorded so far is written
    close_strangers()
    files = [os.open(f"{folder}/own.{i}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) for i in range(FILES)]
    spare = os.open(f"{folder}/spare", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for number in range(3, LIMIT):  # every number is one of ours now
        if is_free(number):
            os.dup2(spare, number)
    for turn in range(50):
        loss = step(64 + turn)
        for i, file in enumerate(files):
            os.write(file, f"file {i} turn {turn} loss {loss}\n".encode())
        time.sleep(0.02)
    print("closed, loss", loss)


def daemon(folder):
    os.closerange(3, 4096)
    ready, done = os.pipe()
    if os.fork():
        os.close(done)
        sys.stdout.buffer.write(os.read(ready, 100))
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    step = make_training()
    with open(f"{folder}/log", "w", encoding="ascii") as log:
        for turn in range(20):
            log.write(f"turn {turn} loss {step(64 + turn)}\n")
    os.write(done, f"daemon, loss {step(64)}\n".encode())
    sys.stdout.flush()
    os._exit(0)


def steady(seconds):
    step, end, turns = make_training(), time.monotonic() + float(seconds), 0
    while time.monotonic() < end:
        loss = step(64 + turns % 7)
        turns += 1
        time.sleep(0.002)
    print("steady", loss != "nan")


def train():
    step = make_training()
    print("trained, loss", [step(64 + turn) for turn in range(10)][-1])


if __name__ == "__main__":
    {"train": train, "closes": closes, "daemon": daemon, "steady": steady}[sys.argv[1]](*sys.argv[2:])
