"""What the page may ask about pictures: give one, look at it, ask for its noise. One short function each."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from heatprior.app.choices import Choice, target_name
from heatprior.app.layers import Wanted, is_quick_look, show
from heatprior.app.opened import OpenedPicture
from heatprior.app.plain_words import noise_in_words
from heatprior.app.quick import Pace, first_noise
from heatprior.app.sample_pictures import write_sample
from heatprior.app.screen import BMP, Region
from heatprior.app.tabs import Tab, Tabs
from heatprior.app.turns import QuickLooks
from heatprior.errors import HeatpriorError, InvalidInputError


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
        await receive(request, path, desk_of(request).largest)
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
    """A part of a layer, as BMP."""
    desk, tab, picture = desk_of(request), tab_of(request), picture_of(request)
    asked = request.query_params
    numbers = [whole_number(asked.get(name), name) for name in ("x", "y", "w", "h", "step")]
    frame = min(max(whole_number(asked.get("frame", "0"), "frame"), 0), picture.frames - 1)
    result = asked.get("result") or None
    wanted = Wanted(
        asked.get("layer", "noisy"),
        frame,
        Region.within(picture.shape_of(result), *numbers),
        Choice.read(asked),
        result,
        asked.get("closeness", ""),
    )
    work = partial(show, picture, wanted, desk.pace)
    shown = await (desk.looks.run(tab.number, work) if is_quick_look(wanted) else run_in_threadpool(work))
    headers = {
        "x-region": ",".join(map(str, shown.region)),
        "x-ends": f"{shown.black:.6g},{shown.white:.6g}",
        "x-rough": str(int(shown.rough)),
    }
    return Response(shown.bmp, media_type=BMP, headers=headers)


async def noise_at_once(request: Request) -> Response:
    """What the middle of a frame tells of its noise, or what is known already."""
    desk, tab, picture = desk_of(request), tab_of(request), picture_of(request)
    frame = whole_number(request.query_params.get("frame", "0"), "frame")
    if frame not in picture.noise:
        found = await desk.looks.run(f"{tab.number} noise", lambda _: first_noise(picture, frame))
        picture.noise.setdefault(frame, found)
    return JSONResponse(noise_in_words(picture.noise[frame], picture.full_scale))


ROUTES = [
    Route("/tabs", open_tab, methods=["POST"]),
    Route("/tabs/{tab}", heartbeat, methods=["GET"]),
    Route("/tabs/{tab}/close", close_tab, methods=["POST"]),
    Route("/tabs/{tab}/pictures", give_picture, methods=["PUT"]),
    Route("/tabs/{tab}/sample", give_sample, methods=["POST"]),
    Route("/tabs/{tab}/pictures/{picture}", drop_picture, methods=["DELETE"]),
    Route("/tabs/{tab}/pictures/{picture}/view", look, methods=["GET"]),
    Route("/tabs/{tab}/pictures/{picture}/noise", noise_at_once, methods=["GET"]),
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


async def receive(request: Request, path: Path, largest: int) -> None:
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
