"""What the page may ask about priors; each answer is a question to the prior."""

from __future__ import annotations

from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from heatprior.app.picture_routes import desk_of, picture_of, tab_of, whole_number
from heatprior.app.prior_numbers import SHOWN, checked_sigma, description, expert, likelihood, potentials, samples
from heatprior.app.screen import BMP


async def list_priors(_: Request) -> Response:
    """Their names."""
    return JSONResponse({"names": SHOWN})


async def describe_prior(request: Request) -> Response:
    """Filters and facts."""
    return JSONResponse(await run_in_threadpool(description, request.path_params["name"]))


async def show_potentials(request: Request) -> Response:
    """Of all filters at one noise level."""
    sigma = checked_sigma(request.query_params.get("sigma", "0"))
    return JSONResponse(await run_in_threadpool(potentials, request.path_params["name"], sigma))


async def show_expert(request: Request) -> Response:
    """Potential and score of one filter at one noise level."""
    asked = request.query_params
    place, sigma = whole_number(asked.get("filter", "0"), "filter"), checked_sigma(asked.get("sigma", "0"))
    return JSONResponse(await run_in_threadpool(expert, request.path_params["name"], place, sigma))


async def draw_samples(request: Request) -> Response:
    """A picture of noisy patches."""
    asked = request.query_params
    sigma, seed = checked_sigma(asked.get("sigma", "0")), abs(whole_number(asked.get("seed", "0"), "seed"))
    bmp = await run_in_threadpool(samples, request.path_params["name"], sigma, seed)
    return Response(bmp, media_type=BMP)


async def show_likelihood(request: Request) -> Response:
    """Over the noise level, of the picture at hand."""
    desk, tab, picture, asked = desk_of(request), tab_of(request), picture_of(request), request.query_params
    frame = whole_number(asked.get("frame", "0"), "frame")
    work = partial(likelihood, asked.get("prior", "patch7"), picture, frame)
    return JSONResponse(await desk.looks.run(f"{tab.number} likelihood", lambda _: work()))


ROUTES = [
    Route("/priors", list_priors, methods=["GET"]),
    Route("/priors/{name}", describe_prior, methods=["GET"]),
    Route("/priors/{name}/potentials", show_potentials, methods=["GET"]),
    Route("/priors/{name}/expert", show_expert, methods=["GET"]),
    Route("/priors/{name}/samples", draw_samples, methods=["GET"]),
    Route("/tabs/{tab}/pictures/{picture}/likelihood", show_likelihood, methods=["GET"]),
]
