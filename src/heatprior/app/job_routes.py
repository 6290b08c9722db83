"""What the page may ask to be done: estimate, denoise, restore; news of it, cancel, save. One short function each."""

from __future__ import annotations

import asyncio
import shutil
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from heatprior.app.choices import Choice, target_name
from heatprior.app.long_jobs import Work
from heatprior.app.opened import OpenedPicture
from heatprior.app.picture_routes import desk_of, picture_of, receive, tab_of, whole_number
from heatprior.app.restoring import MASK, Restoration
from heatprior.app.scratch import plain_name
from heatprior.app.work import denoise_whole, estimate, restore_whole
from heatprior.errors import HeatpriorError, InvalidInputError
from heatprior.images import read_image, write_image

SAVED = "saved"
LONGEST_WAIT = 20.0  # seconds that a question for news of a job may stay open


def _estimate(picture: OpenedPicture, asked: Mapping[str, Any]) -> Work:
    return partial(estimate, picture, min(max(whole_number(asked.get("frame", 0), "frame"), 0), picture.frames - 1))


JOBS: dict[str, Callable[[OpenedPicture, Mapping[str, Any]], Work]] = {
    "estimate": _estimate,
    "denoise": lambda picture, asked: partial(denoise_whole, picture, Choice.read(asked)),
    "restore": lambda picture, asked: partial(restore_whole, picture, Restoration.read(asked)),
}


async def begin_job(request: Request) -> Response:
    """Estimate the noise of a frame, denoise all, or restore all."""
    tab, picture = tab_of(request), picture_of(request)
    asked: dict[str, Any] = await request.json()
    kind = str(asked.get("kind"))
    if kind not in JOBS:
        raise InvalidInputError(f"{kind[:40]!r} is no job; expected {', '.join(JOBS)}")
    return JSONResponse(tab.begin(JOBS[kind](picture, asked), picture).status())


async def give_mask(request: Request) -> Response:
    """What was painted over a picture, as a PNG of its size: white is filled in."""
    picture = picture_of(request)
    path = picture.path.parent / f".{MASK}"
    await receive(request, path, desk_of(request).largest)
    await run_in_threadpool(_check_mask, picture, path)
    return JSONResponse({})


async def job_news(request: Request) -> Response:
    """How a job stands; waits a little for something new if asked to."""
    job = tab_of(request).job(request.path_params["job"])
    wait, seen = whole_number(request.query_params.get("wait", "0"), "wait"), request.query_params.get("seen", "")
    for _ in range(int(min(wait, LONGEST_WAIT) / 0.1)):
        if job.is_finished or f"{job.status()['state']} {job.fraction:.2f}" != seen:
            break
        await asyncio.sleep(0.1)
    return JSONResponse(job.status())


async def cancel_job(request: Request) -> Response:
    """Nobody wants it any more."""
    job = tab_of(request).job(request.path_params["job"])
    job.cancel()
    return JSONResponse(job.status())


async def save(request: Request) -> Response:
    """A result as a file of the type and with the metadata of what was given."""
    picture, asked = picture_of(request), request.query_params
    name = plain_name(asked.get("name") or target_name(picture.name))
    path = picture.path.parent / SAVED / name
    await run_in_threadpool(_write, picture, asked.get("result", ""), path)
    return FileResponse(path, filename=name, media_type="application/octet-stream")


async def keep(request: Request) -> Response:
    """Put a result among those of the queue, under its place in the folder that it came from."""
    tab, picture = tab_of(request), picture_of(request)
    asked = await request.json()
    parts = [plain_name(part) for part in PurePosixPath(str(asked.get("place", picture.name))).parts]
    path = tab.folder / SAVED / Path(*parts)
    await run_in_threadpool(_write, picture, str(asked.get("result", "")), path)
    return JSONResponse({"place": "/".join(parts)})


async def save_all(request: Request) -> Response:
    """All results of the queue in one archive."""
    tab = tab_of(request)
    path = tab.folder / "denoised.zip"
    await run_in_threadpool(_pack, tab.folder / SAVED, path)
    return FileResponse(path, filename="denoised.zip", media_type="application/zip")


async def drop_saved(request: Request) -> Response:
    """The queue was cleared: its results go."""
    await run_in_threadpool(shutil.rmtree, tab_of(request).folder / SAVED, ignore_errors=True)
    return JSONResponse({})


ROUTES = [
    Route("/tabs/{tab}/saved.zip", save_all, methods=["GET"]),
    Route("/tabs/{tab}/saved.zip", drop_saved, methods=["DELETE"]),
    Route("/tabs/{tab}/jobs/{job}", job_news, methods=["GET"]),
    Route("/tabs/{tab}/jobs/{job}/cancel", cancel_job, methods=["POST"]),
    Route("/tabs/{tab}/pictures/{picture}/jobs", begin_job, methods=["POST"]),
    Route("/tabs/{tab}/pictures/{picture}/mask", give_mask, methods=["PUT"]),
    Route("/tabs/{tab}/pictures/{picture}/save", save, methods=["GET"]),
    Route("/tabs/{tab}/pictures/{picture}/keep", keep, methods=["POST"]),
]


def _check_mask(picture: OpenedPicture, path: Path) -> None:
    try:
        mask = read_image(path)
        if mask.pixels.shape[:2] != picture.frame_shape[:2]:
            raise InvalidInputError(
                f"the mask has {mask.pixels.shape[:2]} pixels but the picture {picture.frame_shape[:2]}; paint it again"
            )
    except HeatpriorError as error:
        path.unlink(missing_ok=True)
        raise type(error)(str(error).replace(str(path), MASK)) from error


def _write(picture: OpenedPicture, result: str, path: Path) -> None:
    """As `heatprior denoise` writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        kept = picture.result(result)
        write_image(path, kept.load(), like=kept.like)
    except HeatpriorError as error:
        raise type(error)(str(error).replace(str(path), path.name)) from error


def _pack(folder: Path, path: Path) -> None:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    if not files:
        raise InvalidInputError("nothing has been denoised yet; start the queue first")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:  # images are packed already
        for file in files:
            archive.write(file, file.relative_to(folder).as_posix())
