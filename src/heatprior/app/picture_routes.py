"""What the page may ask about pictures: give one, look at it, denoise it, cancel, save. One short function each."""

from __future__ import annotations

import asyncio
import zipfile
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from heatprior.app.choices import Choice, target_name
from heatprior.app.layers import Wanted, is_quick_look, show
from heatprior.app.opened import OpenedPicture
from heatprior.app.plain_words import noise_in_words
from heatprior.app.quick import Pace, first_noise
from heatprior.app.sample_pictures import write_sample
from heatprior.app.scratch import plain_name
from heatprior.app.screen import Region
from heatprior.app.tabs import Tab, Tabs
from heatprior.app.turns import QuickLooks
from heatprior.app.work import denoise_whole, estimate
from heatprior.errors import HeatpriorError, InvalidInputError
from heatprior.images import write_image

SAVED = "saved"
LONGEST_WAIT = 20.0  # seconds that a question for news of a job may stay open


class TooLargeError(InvalidInputError):
    """A file beyond the limit."""


class Desk(NamedTuple):
    """What the answers need: the open pages, who looks next, how fast that goes, and the largest file in bytes."""

    tabs: Tabs
    looks: QuickLooks
    pace: Pace
    largest: int


async def open_tab(request: Request) -> Response:
    """A page has been opened."""
    return JSONResponse({"tab": desk_of(request).tabs.open().number})


async def heartbeat(request: Request) -> Response:
    """A page is still there."""
    return JSONResponse({"tab": tab_of(request).number})


async def close_tab(request: Request) -> Response:
    """A page goes."""
    await run_in_threadpool(desk_of(request).tabs.close, request.path_params["tab"])
    return JSONResponse({})


async def give_picture(request: Request) -> Response:
    """The bytes of a file, under its name; answers with what it is."""
    tab, name = tab_of(request), request.query_params.get("name", "")
    number, path = tab.place_for(name)
    try:
        await _receive(request, path, desk_of(request).largest)
    except BaseException:
        tab.discard(number)
        raise
    return await _opened(tab, number, path)


async def give_sample(request: Request) -> Response:
    """One of the pictures that come with scikit-image, with noise added."""
    tab = tab_of(request)
    number, path = tab.place_for("astronaut.png")
    await run_in_threadpool(write_sample, path)
    return await _opened(tab, number, path)


async def drop_picture(request: Request) -> Response:
    """Forget a picture."""
    await run_in_threadpool(tab_of(request).discard, request.path_params["picture"])
    return JSONResponse({})


async def look(request: Request) -> Response:
    """A part of a layer, as PNG."""
    desk, tab, picture = desk_of(request), tab_of(request), picture_of(request)
    asked = request.query_params
    numbers = [whole_number(asked.get(name), name) for name in ("x", "y", "w", "h", "step")]
    frame = min(max(whole_number(asked.get("frame", "0"), "frame"), 0), picture.frames - 1)
    wanted = Wanted(
        asked.get("layer", "noisy"),
        frame,
        Region.within(picture.frame_shape, *numbers),
        Choice.read(asked),
        asked.get("result") or None,
        asked.get("exact") == "1",
    )
    work = partial(show, picture, wanted, desk.pace)
    shown = await (desk.looks.run(tab.number, work) if is_quick_look(wanted) else run_in_threadpool(work))
    headers = {
        "x-region": ",".join(map(str, shown.region)),
        "x-ends": f"{shown.black:.6g},{shown.white:.6g}",
    }
    return Response(shown.png, media_type="image/png", headers=headers)


async def noise_at_once(request: Request) -> Response:
    """What the middle of a frame tells of its noise, or what is known already."""
    desk, tab, picture = desk_of(request), tab_of(request), picture_of(request)
    frame = whole_number(request.query_params.get("frame", "0"), "frame")
    if frame not in picture.noise:
        found = await desk.looks.run(f"{tab.number} noise", partial(first_noise, picture, frame))
        picture.noise.setdefault(frame, found)
    return JSONResponse(noise_in_words(picture.noise[frame]))


async def begin_job(request: Request) -> Response:
    """Estimate the noise of a frame, or denoise all."""
    tab, picture = tab_of(request), picture_of(request)
    asked: dict[str, Any] = await request.json()
    if asked.get("kind") == "estimate":
        frame = min(max(whole_number(asked.get("frame", 0), "frame"), 0), picture.frames - 1)
        return JSONResponse(tab.begin(partial(estimate, picture, frame), picture).status())
    return JSONResponse(tab.begin(partial(denoise_whole, picture, Choice.read(asked)), picture).status())


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


ROUTES = [
    Route("/tabs", open_tab, methods=["POST"]),
    Route("/tabs/{tab}", heartbeat, methods=["GET"]),
    Route("/tabs/{tab}/close", close_tab, methods=["POST"]),
    Route("/tabs/{tab}/pictures", give_picture, methods=["PUT"]),
    Route("/tabs/{tab}/sample", give_sample, methods=["POST"]),
    Route("/tabs/{tab}/saved.zip", save_all, methods=["GET"]),
    Route("/tabs/{tab}/jobs/{job}", job_news, methods=["GET"]),
    Route("/tabs/{tab}/jobs/{job}/cancel", cancel_job, methods=["POST"]),
    Route("/tabs/{tab}/pictures/{picture}", drop_picture, methods=["DELETE"]),
    Route("/tabs/{tab}/pictures/{picture}/view", look, methods=["GET"]),
    Route("/tabs/{tab}/pictures/{picture}/noise", noise_at_once, methods=["GET"]),
    Route("/tabs/{tab}/pictures/{picture}/jobs", begin_job, methods=["POST"]),
    Route("/tabs/{tab}/pictures/{picture}/save", save, methods=["GET"]),
    Route("/tabs/{tab}/pictures/{picture}/keep", keep, methods=["POST"]),
]


def desk_of(request: Request) -> Desk:
    """What all answers share."""
    desk: Desk = request.app.state.desk
    return desk


def tab_of(request: Request) -> Tab:
    """The page that asks."""
    return desk_of(request).tabs.find(request.path_params["tab"])


def picture_of(request: Request) -> OpenedPicture:
    """The picture that it asks about."""
    return tab_of(request).picture(request.path_params["picture"])


def whole_number(value: Any, name: str) -> int:
    """A whole number from what was sent."""
    try:
        return int(value)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{name} is {str(value)[:40]!r}; expected a whole number") from None


async def _receive(request: Request, path: Path, largest: int) -> None:
    """Write the body to a file, as it comes; never more than the limit."""
    too_large = TooLargeError(
        f"{path.name} is larger than {largest / 1e6:.0f} MB, the limit of this server; start it with --largest, or use "
        "heatprior denoise"
    )
    if int(request.headers.get("content-length", 0)) > largest:
        raise too_large
    received = 0
    with path.open("wb") as file:
        async for piece in request.stream():
            received += len(piece)
            if received > largest:
                raise too_large
            file.write(piece)


async def _opened(tab: Tab, number: str, path: Path) -> Response:
    try:
        picture = await run_in_threadpool(tab.open, number, path)
    except HeatpriorError as error:  # it names the file by where it lies here
        raise type(error)(str(error).replace(str(path), path.name)) from error
    height, width = picture.frame_shape[:2]
    return JSONResponse(
        {
            "picture": number,
            "name": picture.name,
            "description": picture.image.describe(),
            "width": width,
            "height": height,
            "colour": picture.image.colour,
            "frames": picture.frames,
            "values": int(picture.values.size),
            "target": target_name(picture.name),
        }
    )


def _write(picture: OpenedPicture, result: str, path: Path) -> None:
    """As `heatprior denoise` writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_image(path, picture.result(result).load(), like=picture.image)
    except HeatpriorError as error:
        raise type(error)(str(error).replace(str(path), path.name)) from error


def _pack(folder: Path, path: Path) -> None:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    if not files:
        raise InvalidInputError("nothing has been denoised yet; start the queue first")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:  # images are packed already
        for file in files:
            archive.write(file, file.relative_to(folder).as_posix())
