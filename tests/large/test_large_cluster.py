"""A cluster of worker processes on this machine: one is killed, one comes later, the client is killed. Same bits."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import zarr

from heatprior.large import files
from heatprior.large.files import denoise_store, pool_of
from heatprior.restoration.denoising import Settings

ENVIRONMENT = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "None"}
PATIENCE = 120  # seconds


def worker(address, folder):
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny",
               "--no-dashboard", "--local-directory", str(folder)]  # fmt: skip
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture
def scheduler(tmp_path):
    """The address of a scheduler that runs in a process of its own."""
    told = tmp_path / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
               "--no-dashboard", "--scheduler-file", str(told)]  # fmt: skip
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    began = time.monotonic()
    while not told.exists() or not told.read_text().strip():
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.2)
    import json

    yield json.loads(told.read_text())["address"]
    process.kill()
    process.wait()


@pytest.fixture
def store(tmp_path, rng):
    noisy = np.clip(rng.normal(20000, 2000, (640, 512)), 0, 65535).astype(np.uint16)
    zarr.create_array(tmp_path / "a.zarr", shape=noisy.shape, dtype=noisy.dtype, chunks=(32, 32))[...] = noisy
    return tmp_path / "a.zarr"


def values(path):
    return zarr.open_array(path, mode="r")[...]


def test_a_lost_worker_costs_its_blocks_only_and_a_new_one_helps(tmp_path, prior, store, scheduler, monkeypatch):
    monkeypatch.setattr(files, "AREA", 32 * 64)
    monkeypatch.setattr(files, "WIDEST", 64)
    settings = Settings(prior=prior, steps=1)
    denoise_store(store, tmp_path / "alone.zarr", settings, 900.0)
    workers = [worker(scheduler, tmp_path / f"w{n}") for n in range(3)]
    try:

        def told(done, total):
            if done == total // 3 and workers[0].poll() is None:
                workers[0].kill()
                workers.append(worker(scheduler, tmp_path / "later"))

        done = denoise_store(store, tmp_path / "b.zarr", settings, 900.0, scheduler=scheduler, report=told)
    finally:
        for process in workers:
            process.kill()
            process.wait()
    assert done.blocks == 160
    np.testing.assert_array_equal(values(tmp_path / "b.zarr"), values(tmp_path / "alone.zarr"))


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_killed_client_is_resumed_with_the_same_bits(tmp_path, prior, store, monkeypatch):
    settings = Settings(prior=prior, steps=1)
    monkeypatch.setattr(files, "AREA", 32 * 64)
    monkeypatch.setattr(files, "WIDEST", 64)
    denoise_store(store, tmp_path / "alone.zarr", settings, 900.0)
    script = f"""
import os, signal
from pathlib import Path
from heatprior.large import files
files.AREA, files.WIDEST = 32 * 64, 64
def told(done, total):
    if done == 20:
        os.kill(os.getpid(), signal.SIGKILL)
settings = files.Settings(prior={prior!r}, steps=1)
files.denoise_store(Path({str(store)!r}), Path({str(tmp_path / "b.zarr")!r}), settings, 900.0, report=told)
"""
    killed = subprocess.run([sys.executable, "-c", script], check=False, timeout=PATIENCE)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "b.zarr").exists()
    done = denoise_store(store, tmp_path / "b.zarr", settings, 900.0)
    assert 19 <= done.found <= 21
    np.testing.assert_array_equal(values(tmp_path / "b.zarr"), values(tmp_path / "alone.zarr"))


def threads_of_codecs():
    return zarr.config.get("threading.max_workers")


def test_a_worker_is_one_core_codecs_included():
    with pool_of(None, 1, lambda: None) as pool:
        assert pool.submit(threads_of_codecs).result() == 1
    assert threads_of_codecs() != 1  # here, where there is no other worker
