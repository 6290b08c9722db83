"""What the page may ask: open, show, estimate, denoise, restore and save pictures; see a prior."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from heatprior.app.jobs import QuickLooks, Work
from heatprior.app.pictures import BMP, OpenedPicture, Region, write_sample
from heatprior.app.prior_page import SHOWN, describe_filters, expert, likelihood, parse_sigma, potentials, samples
from heatprior.app.tabs import GoneError, Tab, Tabs, plain_name
from heatprior.app.views import Pace, ViewRequest, guess_noise, is_quick_look, render
from heatprior.app.words import describe_noise
from heatprior.app.work import MASK, Choice, Restoration, denoise_picture, estimate_picture, restore_picture
from heatprior.errors import HeatpriorError, InvalidInputError
from heatprior.files import make_folder, replacing
from heatprior.images import name_result, read_image, write_image

SAVED = "saved"
LONGEST_WAIT = 20.0  # seconds that a request for the status of a job may wait
MOST_WORDS = 100_000  # bytes of a request in JSON; those of the page have a few hundred


class TooLargeError(InvalidInputError):
    """A file beyond the limit."""


class ServerState(NamedTuple):
    """Shared by all answers: open tabs, the queue of quick looks, their two paces, and the largest file in bytes."""

    tabs: Tabs
    looks: QuickLooks
    pace: Pace
    restoring: Pace
    largest: int


def state_of(request: Request) -> ServerState:
    """Return what all answers share."""
    shared: ServerState = request.app.state.shared
    return shared


def tab_of(request: Request) -> Tab:
    """Return the tab that asks."""
    return state_of(request).tabs.find(request.path_params["tab"])


def picture_of(request: Request) -> OpenedPicture:
    """Return the picture that the tab asks about."""
    return tab_of(request).picture(request.path_params["picture"])


def parse_integer(value: Any, name: str) -> int:
    """Parse a whole number from a request."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInputError(f"{name} is {str(value)[:40]!r}; expected a whole number") from None


def _parse_frame(picture: OpenedPicture, asked: Mapping[str, Any]) -> int:
    """Parse the number of a frame; one beyond the ends is the nearest."""
    return min(max(parse_integer(asked.get("frame", 0), "frame"), 0), picture.frames - 1)


async def receive(request: Request, largest: int, too_large: str) -> AsyncIterator[bytes]:
    """The body of a request, piece by piece as it arrives; never more than the limit."""
    received = parse_integer(request.headers.get("content-length", 0), "content-length")
    if received > largest:
        raise TooLargeError(too_large)
    received = 0
    async for piece in request.stream():
        received += len(piece)
        if received > largest:
            raise TooLargeError(too_large)
        yield piece


async def read_settings(request: Request) -> dict[str, Any]:
    """Read the names and values that a request has as JSON."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise InvalidInputError("the request is not of the type application/json; reload the page")
    too_large = f"the request has more than {MOST_WORDS} bytes of JSON; reload the page"
    body = b"".join([piece async for piece in receive(request, MOST_WORDS, too_large)])
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidInputError("the request is no JSON; reload the page") from None
    if not isinstance(found, dict):
        raise InvalidInputError("the request has no names and values; reload the page")
    return found


async def receive_file(request: Request, path: Path) -> None:
    """Write the body of a request to a file, which is there once it is whole."""
    largest = state_of(request).largest
    too_large = (
        f"{path.name} is larger than {largest / 1e6:.0f} MB, the limit of this server; start it with --largest, or use "
        "heatprior denoise"
    )
    with replacing(path) as temporary, temporary.open("wb") as file:
        async for piece in receive(request, largest, too_large):
            file.write(piece)


async def open_tab(request: Request) -> Response:
    """Open a tab."""
    return JSONResponse({"tab": state_of(request).tabs.open().number})


async def heartbeat(request: Request) -> Response:
    """Keep a tab alive."""
    return JSONResponse({"tab": tab_of(request).number})


def close_tab(request: Request) -> Response:
    """Close a tab."""
    state_of(request).tabs.close(request.path_params["tab"])
    return JSONResponse({})


async def put_picture(request: Request) -> Response:
    """Receive the bytes of a file and open it; answers with what it is."""
    tab, name = tab_of(request), request.query_params.get("name", "")
    number, path = tab.place_for(name)
    try:
        await receive_file(request, path)
    except BaseException:
        tab.discard(number)
        raise
    return await run_in_threadpool(_open_picture, tab, number, path)


def open_sample(request: Request) -> Response:
    """Open a photograph that comes with the package, with noise added."""
    tab = tab_of(request)
    number, path = tab.place_for("photograph.png")
    write_sample(path)
    return _open_picture(tab, number, path)


def delete_picture(request: Request) -> Response:
    """Forget a picture."""
    tab_of(request).discard(request.path_params["picture"])
    return JSONResponse({})


async def look(request: Request) -> Response:
    """Render a part of a layer as BMP."""
    state, tab, picture = state_of(request), tab_of(request), picture_of(request)
    asked = request.query_params
    numbers = [parse_integer(asked.get(name), name) for name in ("x", "y", "w", "h", "step")]
    frame = _parse_frame(picture, asked)
    result = asked.get("result") or None
    region = Region.within(picture.shape_of(result), *numbers)
    choice = Restoration.read(asked) if "task" in asked else Choice.read(asked)
    wanted = ViewRequest(asked.get("layer", "noisy"), frame, region, choice, result, asked.get("closeness", ""))
    work = partial(render, picture, wanted, state.restoring if "task" in asked else state.pace)
    shown = await (state.looks.run(tab.number, work) if is_quick_look(wanted) else run_in_threadpool(work))
    headers = {"x-region": ",".join(map(str, shown.region)), "x-ends": f"{shown.black:.6g},{shown.white:.6g}"}
    return Response(shown.bmp, media_type=BMP, headers=headers)


async def get_noise(request: Request) -> Response:
    """The noise of a frame: a first guess from its middle, or the full estimate once that is known."""
    state, tab, picture = state_of(request), tab_of(request), picture_of(request)
    frame, kind = _parse_frame(picture, request.query_params), Choice.read(request.query_params).noise
    if (frame, kind) not in picture.noise:
        found = await state.looks.run(f"{tab.number} noise", lambda _: guess_noise(picture, frame, kind))
        picture.noise.setdefault((frame, kind), found)
    return JSONResponse(describe_noise(picture.noise[frame, kind], picture.ends(frame)))


def _open_picture(tab: Tab, number: str, path: Path) -> Response:
    """Open a file that has come, and say what it is."""
    with _name_files({str(path): path.name}):
        picture = tab.open(number, path)
    height, width = picture.frame_shape[:2]
    return JSONResponse(
        {
            "picture": number,
            "name": picture.name,
            "description": picture.image.describe(),
            "width": width,
            "height": height,
            "frames": picture.frames,
            "values": int(picture.values.size),
            "target": name_result(picture.name, "denoised"),
        }
    )


JOBS: dict[str, Callable[[OpenedPicture, Mapping[str, Any]], Work]] = {
    "estimate": lambda picture, asked: partial(
        estimate_picture, picture, _parse_frame(picture, asked), Choice.read(asked).noise
    ),
    "denoise": lambda picture, asked: partial(denoise_picture, picture, Choice.read(asked)),
    "restore": lambda picture, asked: partial(restore_picture, picture, Restoration.read(asked)),
}


async def begin_job(request: Request) -> Response:
    """Estimate the noise of a frame, denoise all, or restore all."""
    tab, picture = tab_of(request), picture_of(request)
    asked = await read_settings(request)
    kind = str(asked.get("kind"))
    if kind not in JOBS:
        raise InvalidInputError(f"{kind[:40]!r} is no job; expected {', '.join(JOBS)}")
    return JSONResponse(tab.begin(JOBS[kind](picture, asked), picture).status())


async def put_mask(request: Request) -> Response:
    """Receive the mask painted over a picture, a PNG of its size: white is filled in."""
    picture = picture_of(request)
    path = picture.path.parent / f".{MASK}"
    await receive_file(request, path)
    await run_in_threadpool(_check_mask, picture, path)
    return JSONResponse({})


async def get_job(request: Request) -> Response:
    """Answer with the status of a job, after a wait for a change if one is asked for."""
    job = tab_of(request).job(request.path_params["job"])
    wait, seen = parse_integer(request.query_params.get("wait", "0"), "wait"), request.query_params.get("seen", "")
    for _ in range(int(min(wait, LONGEST_WAIT) / 0.1)):
        if job.is_finished or f"{job.status()['state']} {job.fraction:.2f}" != seen:
            break
        await asyncio.sleep(0.1)
    return JSONResponse(job.status())


async def cancel_job(request: Request) -> Response:
    """Cancel a job."""
    job = tab_of(request).job(request.path_params["job"])
    job.cancel()
    return JSONResponse(job.status())


def save(request: Request) -> Response:
    """Send a result as a file of the type and with the metadata of the original."""
    picture, asked = picture_of(request), request.query_params
    name = plain_name(asked.get("name") or name_result(picture.name, "denoised"))
    path = _own_folder(picture.path.parent) / name
    _write(picture, asked.get("result", ""), path)
    return _send(path, "application/octet-stream")


async def keep(request: Request) -> Response:
    """Keep a result for the archive of the queue, under its path in the folder that it came from."""
    tab, picture = tab_of(request), picture_of(request)
    asked = await read_settings(request)
    parts = [plain_name(part) for part in PurePosixPath(str(asked.get("place", picture.name))).parts]
    if not parts:
        raise InvalidInputError("the result has no name; reload the page")
    result, path = str(asked.get("result", "")), tab.folder / SAVED / Path(*parts)
    await run_in_threadpool(tab.archive, _write, picture, result, path)
    return JSONResponse({"place": "/".join(parts)})


def save_all(request: Request) -> Response:
    """Send all results of the queue in one archive."""
    tab = tab_of(request)
    path = _own_folder(tab.folder) / "denoised.zip"
    tab.archive(_pack, tab.folder / SAVED, path)
    return _send(path, "application/zip")


def delete_saved(request: Request) -> Response:
    """Delete the results of the queue."""
    tab = tab_of(request)
    tab.archive(shutil.rmtree, tab.folder / SAVED, True)  # errors are ignored
    return JSONResponse({})


def _own_folder(parent: Path) -> Path:
    """A folder for what one request sends: another one, at the same time, must not write over it."""
    try:
        return Path(tempfile.mkdtemp(dir=parent))
    except FileNotFoundError:
        raise GoneError("this picture is no longer open; open it again") from None


def _send(path: Path, media_type: str) -> Response:
    """Send the file of one request, whose folder goes with the last byte."""
    tidy = BackgroundTask(shutil.rmtree, path.parent, ignore_errors=True)
    return FileResponse(path, filename=path.name, media_type=media_type, background=tidy)


@contextmanager
def _name_files(names: Mapping[str, str]) -> Iterator[None]:
    """Have errors name files as the page does, not by where they lie here."""
    try:
        yield
    except HeatpriorError as error:
        words = str(error)
        for place, name in names.items():
            words = words.replace(place, name)
        raise type(error)(words) from error


def _check_mask(picture: OpenedPicture, path: Path) -> None:
    shape = picture.frame_shape[:2]
    try:
        with _name_files({str(path): MASK}):
            mask = read_image(path).pixels
            if mask.shape[:2] != shape:
                raise InvalidInputError(f"the mask has {mask.shape[:2]} pixels but the picture {shape}; paint it again")
    except HeatpriorError:
        path.unlink(missing_ok=True)
        raise


def _write(picture: OpenedPicture, result: str, path: Path) -> None:
    """Write a result as `heatprior denoise` does."""
    with _name_files({str(path): path.name, f"{picture.path.parent.parent}{os.sep}": ""}):
        make_folder(path.parent)
        kept = picture.result(result)
        write_image(path, kept.load(), like=kept.like)


def _pack(folder: Path, path: Path) -> None:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    if not files:
        raise InvalidInputError("nothing has been denoised yet; start the queue first")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:  # images are packed already
        for file in files:
            archive.write(file, file.relative_to(folder).as_posix())


async def list_priors(_: Request) -> Response:
    """Name the priors that can be shown."""
    return JSONResponse({"names": SHOWN})


def describe_prior(request: Request) -> Response:
    """Describe a prior by its filters and facts."""
    return JSONResponse(describe_filters(request.path_params["name"]))


def show_prior(request: Request) -> Response:
    """One part of a prior at one noise level: all potentials, one expert, or a picture of samples."""
    name, part, asked = request.path_params["name"], request.path_params["part"], request.query_params
    sigma = parse_sigma(asked.get("sigma", "0"))
    if part == "samples":
        return Response(samples(name, sigma, abs(parse_integer(asked.get("seed", "0"), "seed"))), media_type=BMP)
    if part == "expert":
        return JSONResponse(expert(name, parse_integer(asked.get("filter", "0"), "filter"), sigma))
    if part == "potentials":
        return JSONResponse(potentials(name, sigma))
    raise HTTPException(404)


async def show_likelihood(request: Request) -> Response:
    """Compute the likelihood of a picture over the noise level."""
    state, tab, picture, asked = state_of(request), tab_of(request), picture_of(request), request.query_params
    name, frame = asked.get("prior", "patch7"), _parse_frame(picture, asked)
    found = await state.looks.run(f"{tab.number} likelihood", lambda _: likelihood(name, picture, frame))
    return JSONResponse(found)


TAB, PICTURE = "/tabs/{tab}", "/tabs/{tab}/pictures/{picture}"
ROUTES = [
    Route(path, answer, methods=[method])
    for method, path, answer in (
        ("POST", "/tabs", open_tab),
        ("GET", TAB, heartbeat),
        ("POST", f"{TAB}/close", close_tab),
        ("PUT", f"{TAB}/pictures", put_picture),
        ("POST", f"{TAB}/sample", open_sample),
        ("GET", f"{TAB}/jobs/{{job}}", get_job),
        ("POST", f"{TAB}/jobs/{{job}}/cancel", cancel_job),
        ("GET", f"{TAB}/saved.zip", save_all),
        ("DELETE", f"{TAB}/saved.zip", delete_saved),
        ("DELETE", PICTURE, delete_picture),
        ("GET", f"{PICTURE}/view", look),
        ("GET", f"{PICTURE}/noise", get_noise),
        ("GET", f"{PICTURE}/likelihood", show_likelihood),
        ("POST", f"{PICTURE}/jobs", begin_job),
        ("PUT", f"{PICTURE}/mask", put_mask),
        ("GET", f"{PICTURE}/save", save),
        ("POST", f"{PICTURE}/keep", keep),
        ("GET", "/priors", list_priors),
        ("GET", "/priors/{name}", describe_prior),
        ("GET", "/priors/{name}/{part}", show_prior),
    )
]
