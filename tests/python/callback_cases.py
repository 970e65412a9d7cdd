"""callback_cases.py: the callbacks with the real libraries. check_libraries.py starts it in a dry
run; it also runs on a GPU."""
import os
import pathlib
import tempfile
import unittest
import warnings
import weakref

# The process must not look recorded: traces would be left to `memtrace dry-run`.
os.environ.pop("MEMTRACE_OUTPUT", None)
os.environ["TRANSFORMERS_VERBOSITY"] = os.environ["PL_DISABLE_FORK"] = "error"
warnings.filterwarnings("ignore")

import torch  # noqa: E402
from torch import nn  # noqa: E402

from memtrace.integrations.accelerate import watch  # noqa: E402
import memtrace  # noqa: E402

STEPS = 3
WIDTH = 4096


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 2 * STEPS

    def __getitem__(self, index):
        return {"x": torch.ones(64), "labels": torch.ones(64)}


class Model(nn.Module):
    """Runs out of memory in the forward pass number `fails_at`."""

    def __init__(self, fails_at=None):
        super().__init__()
        self.a, self.b = nn.Linear(64, WIDTH), nn.Linear(WIDTH, 64)
        self.fails_at = fails_at
        self.passes = 0

    def forward(self, x, labels=None):
        if self.passes == self.fails_at:
            torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
        self.passes += 1
        y = self.b(torch.relu(self.a(x)))
        return {"loss": ((y - labels) ** 2).mean(), "logits": y}


def batches():
    return torch.utils.data.DataLoader(Data(), batch_size=2)


class Callbacks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check_step(self, traces):
        """The one trace is that of step 1. It has two steps with an optimizer each."""
        self.assertEqual([pathlib.Path(path).name for path in traces],
                         [f"step1-pid{os.getpid()}.trace.zst"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = memtrace.analyze(traces[0])
        self.assertEqual([row.index for row in report.rows("steps")], [0, 1])
        phases = {row.path for row in report.rows("phases")}
        self.assertTrue(any("optimizer" in path for path in phases), phases)
        return phases

    def check_oom(self, traces):
        self.assertEqual([pathlib.Path(path).name for path in traces],
                         [f"oom-pid{os.getpid()}.trace.zst"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertEqual(len(memtrace.analyze(traces[0]).rows("ooms")), 1)

    def transformers(self, model, **options):
        from transformers import Trainer, TrainingArguments

        from memtrace.integrations.transformers import MemtraceCallback

        callback = MemtraceCallback(self.folder, **options)
        trainer = Trainer(model=model, train_dataset=Data(), args=TrainingArguments(
            str(self.folder / "out"), max_steps=STEPS, per_device_train_batch_size=2,
            logging_steps=1, report_to=[], save_strategy="no", disable_tqdm=True))
        return callback.attach(trainer), trainer

    def test_transformers(self):
        callback, trainer = self.transformers(Model(), steps=[1])
        trainer.train()
        self.check_step(callback.traces)
        for row in trainer.state.log_history[:STEPS]:
            self.assertGreater(row["memtrace/allocated_peak_gib"], 0)

    def test_transformers_twice(self):
        callback, trainer = self.transformers(Model(), steps=[1])
        callback.attach(trainer)
        for _ in range(2):
            trainer.train()
        self.assertEqual([pathlib.Path(path).name for path in callback.traces],
                         [f"step1-pid{os.getpid()}{again}.trace.zst" for again in ("", "-2")])

    def test_transformers_oom(self):
        callback, trainer = self.transformers(Model(fails_at=1), steps=[2])
        with self.assertRaises(torch.OutOfMemoryError), self.assertLogs("memtrace") as log:
            trainer.train()
        self.check_oom(callback.traces)
        self.assertIn("OUT OF MEMORY", log.output[0])

    def lightning(self, model, **options):
        import lightning.pytorch as pl

        from memtrace.integrations.lightning import MemtraceCallback

        class Module(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.model = model

            def training_step(self, batch, index):
                return self.model(**batch)["loss"]

            def validation_step(self, batch, index):
                self.model(**batch)

            def configure_optimizers(self):
                return torch.optim.Adam(self.parameters())

        callback = MemtraceCallback(self.folder, **options)
        trainer = pl.Trainer(max_steps=STEPS, callbacks=[callback], logger=False, devices=1,
                             accelerator="gpu", enable_checkpointing=False, num_sanity_val_steps=0,
                             enable_progress_bar=False, enable_model_summary=False)
        return callback, trainer, Module()

    def test_lightning(self):
        callback, trainer, module = self.lightning(Model(), steps=[1])
        trainer.fit(module, batches(), batches())
        phases = self.check_step(callback.traces)
        for name in ("forward", "backward"):
            self.assertTrue(any(name in path for path in phases), phases)
        self.assertGreater(trainer.callback_metrics["memtrace/allocated_peak_gib"], 0)

    def test_lightning_oom(self):
        callback, trainer, module = self.lightning(Model(fails_at=1))
        with self.assertRaises(torch.OutOfMemoryError), self.assertLogs("memtrace"):
            trainer.fit(module, batches())
        self.check_oom(callback.traces)

    def accelerate(self, model, **options):
        from accelerate import Accelerator

        accelerator = Accelerator()
        watched = watch(accelerator, self.folder, **options)
        model, optimizer, loader = accelerator.prepare(
            model, torch.optim.Adam(model.parameters()), batches())
        for batch in loader:
            accelerator.backward(model(**batch)["loss"])
            optimizer.step()
            optimizer.zero_grad()
        accelerator.end_training()
        return watched

    def test_accelerate(self):
        watched = self.accelerate(Model(), steps=[1])
        phases = self.check_step(watched.traces)
        self.assertTrue(any("backward" in path for path in phases), phases)

    def test_accelerate_frees_memory(self):
        from accelerate import Accelerator

        accelerator = Accelerator()
        watch(accelerator)
        for _ in range(2):  # as accelerate.utils.find_executable_batch_size does
            model = Model()
            model, optimizer = accelerator.prepare(model, torch.optim.Adam(model.parameters()))
            accelerator.backward(model(torch.ones(2, 64, device="cuda"), 0)["loss"])
            optimizer.step()
            freed = weakref.ref(optimizer)
            model, optimizer = accelerator.free_memory(model, optimizer)
            self.assertIsNone(freed())
        accelerator.end_training()
        accelerator.end_training()


if __name__ == "__main__":
    unittest.main()
