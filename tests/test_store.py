"""One prior, one file: what is saved comes back, and what is no prior is refused in one line that names the file."""

import json
import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from examples import patch_prior
from heatprior import PatchPrior, PriorFileError, files, load

PRIOR = patch_prior(3, 4, 9)
CARD = {"name": "test", "made": "by hand, σ² × 2", "steps": 3, "nested": {"sigma": [0.0, 0.4]}}


def header(**change):
    return {"heatprior": json.dumps({"version": 1, "kind": "patch", "card": {}} | change)}


HEADER = header()


def tensors():
    return {
        "filters": PRIOR.filters.matrix.reshape(4, 3, 3).astype(np.float32),
        "log_weights": PRIOR.experts.log_weights.astype(np.float32),
        "reach": np.array([PRIOR.experts.reach]),
    }


@pytest.fixture
def path(tmp_path):
    return tmp_path / "prior.safetensors"


def refusal(path):
    """The message of the one-line refusal, which names the file."""
    with pytest.raises(PriorFileError) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def others_when_renamed(monkeypatch, write):
    """What else lies in the folder from which the result is renamed, and beside the result."""
    seen, rename = [], Path.replace

    def looked_at(self, target):
        hidden = {one.name for one in self.parent.iterdir()} - {self.name, self.parent.name}
        seen.append(hidden | {one.name for one in target.parent.iterdir()} - {self.parent.name, target.name})
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", looked_at)
    write()
    return seen


def test_what_a_kill_would_leave_of_a_prior_has_the_name_that_the_next_run_looks_for(path, monkeypatch):
    """A writer that makes a hidden file of its own, and renames that, leaves one that nobody knows."""
    assert others_when_renamed(monkeypatch, lambda: PRIOR.save(path)) == [set()]

    def by_itself():
        with files.replacing(path) as temporary:
            temporary.write_bytes(b"")
            temporary.with_name(".tmp").write_bytes(b"")

    assert others_when_renamed(monkeypatch, by_itself) == [{".tmp"}]


def test_a_prior_comes_back_in_single_precision_with_its_card(path):
    PatchPrior(PRIOR.filters, PRIOR.experts, CARD).save(path)
    loaded = load(path)
    np.testing.assert_array_equal(loaded.filters.matrix, PRIOR.filters.matrix.astype(np.float32))
    np.testing.assert_allclose(loaded.experts.log_weights, PRIOR.experts.log_weights, rtol=1e-6)
    assert loaded.experts.reach == PRIOR.experts.reach
    assert loaded.card == CARD
    y = PRIOR.sample(20, 0.1, rng=np.random.default_rng(0))
    # Parameters are rounded to 6e-8; the log-density is a sum of 4 terms of order ten.
    np.testing.assert_allclose(loaded.log_prob(y, 0.1), PRIOR.log_prob(y, 0.1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(loaded.score(y, 0.1), PRIOR.score(y, 0.1), rtol=1e-4, atol=1e-4)


def test_saving_what_was_loaded_gives_the_same_file(path, tmp_path):
    PatchPrior(PRIOR.filters, PRIOR.experts, CARD).save(path)
    load(path).save(tmp_path / "again.safetensors")
    np.testing.assert_array_equal(
        load(tmp_path / "again.safetensors").filters.matrix, load(path).filters.matrix, strict=True
    )
    again = load(tmp_path / "again.safetensors").experts.log_weights
    np.testing.assert_allclose(again, load(path).experts.log_weights, rtol=3e-7)  # one more rounding to float32


def test_a_path_may_be_a_string(path):
    PRIOR.save(str(path))
    assert load(str(path)).filters.count == 4


NO_PRIORS = {
    "text": b"This is not a prior.\nIt is a text of two lines.\n",
    "an empty file": b"",
    "zeros": bytes(1000),
    "a header that promises too much": struct.pack("<Q", 2**40) + b"{}",
    "a header that is not JSON": struct.pack("<Q", 8) + b"{]{]{]{]",
    "a header that is not UTF-8": struct.pack("<Q", 8) + b"\xff" * 8,
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(100),
}


@pytest.mark.parametrize("contents", NO_PRIORS.values(), ids=NO_PRIORS)
def test_what_is_no_prior_is_refused(path, contents):
    path.write_bytes(contents)
    assert "is not a prior, or is damaged or cut short" in refusal(path)


def test_a_prior_cut_short_anywhere_is_refused(path):
    PRIOR.save(path)
    whole = path.read_bytes()
    for length in sorted({*range(0, len(whole), 7), *range(16), len(whole) - 1}):
        path.write_bytes(whole[:length])
        assert "cut short" in refusal(path)
    path.write_bytes(whole)
    assert load(path).filters.count == 4


@settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_damaged_byte_gives_a_prior_or_a_refusal_and_nothing_else(path, position, change):
    PRIOR.save(path)
    damaged = bytearray(path.read_bytes())
    damaged[position % min(len(damaged), 700)] ^= change  # the header and the first filters
    path.write_bytes(damaged)
    with suppress(PriorFileError):
        load(path)


def test_missing_files_and_folders_are_refused(path, tmp_path):
    assert "there is no such file" in refusal(path)
    assert "it is a folder" in refusal(tmp_path)


BAD_HEADERS = {
    "another version": (header(version=2), "layout version 2 but this heatprior reads 1; update heatprior"),
    "no version": (header(version=None), "layout version None but this heatprior reads 1; update heatprior"),
    "another kind": (header(kind="unheard-of"), "unknown kind 'unheard-of'; update heatprior"),
    "another format": ({"other": "1"}, "not a prior of heatprior; make one with prior.save"),
    "a header that is not JSON": ({"heatprior": "{"}, "a header that is not JSON; get a fresh copy"),
    "a header that is no object": ({"heatprior": "[1]"}, "a header without a card; get a fresh copy"),
    "a card that is no object": (header(card=[1]), "a header without a card; get a fresh copy"),
}


def test_the_same_prior_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        PRIOR.save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("bad", BAD_HEADERS)
def test_files_with_a_wrong_header_are_refused(path, bad):
    metadata, message = BAD_HEADERS[bad]
    save_file(tensors(), path, metadata=metadata)
    assert message in refusal(path)


def test_a_safetensors_file_without_a_header_is_refused(path):
    save_file(tensors(), path)
    assert "is a safetensors file but not a prior of heatprior; make one with prior.save" in refusal(path)


@pytest.mark.parametrize("name", ["filters", "log_weights", "reach"])
def test_files_that_lack_an_array_are_refused(path, name):
    save_file({key: value for key, value in tensors().items() if key != name}, path, metadata=HEADER)
    assert f"lacks {name}" in refusal(path)


def tilted_filters():
    filters = tensors()["filters"]
    filters[0] += 0.05 * filters[1]
    return filters


BAD_ARRAYS = {
    "filters that are not orthogonal": ({"filters": tilted_filters()}, "are not orthogonal"),
    "filters with NaN": ({"filters": np.full((4, 3, 3), np.nan)}, "NaN"),
    "a zero filter": ({"filters": np.eye(9)[:4].reshape(4, 3, 3) * [[[1]], [[1]], [[0]], [[1]]]}, "filter 2 is zero"),
    "flat filters": ({"filters": np.eye(9)[:4]}, "are not (J, b, b), (J, L) and (1,)"),
    "filters that are not square": ({"filters": np.eye(16)[:4].reshape(4, 2, 8)}, "are not (J, b, b)"),
    "no filters": ({"filters": np.ones((0, 3, 3)), "log_weights": np.ones((0, 9))}, ""),
    "fewer experts than filters": ({"log_weights": tensors()["log_weights"][:3]}, "4 filters but 3 experts"),
    "weights off the simplex": ({"log_weights": tensors()["log_weights"] + 0.01}, "sum to 1.01005 instead of 1"),
    "weights just off the simplex": ({"log_weights": tensors()["log_weights"] + 2e-4}, "instead of 1"),
    "enormous weights": ({"log_weights": tensors()["log_weights"] + 1000}, "instead of 1"),
    "weights with NaN": ({"log_weights": np.full((4, 9), np.nan)}, "instead of 1"),
    "a weight of zero": ({"log_weights": np.array([[0.0, -np.inf]] * 4)}, "a weight of zero is not allowed"),
    "one component": ({"log_weights": np.zeros((4, 1))}, "logits have shape (4, 1)"),
    "no components": ({"log_weights": np.zeros((4, 0))}, "are not (J, b, b), (J, L) and (1,)"),
    "a reach of NaN": ({"reach": np.array([np.nan])}, "reach is nan"),
    "a negative reach": ({"reach": np.array([-1.0])}, "reach is -1.0"),
    "two reaches": ({"reach": np.ones(2)}, "are not (J, b, b), (J, L) and (1,)"),
}


@pytest.mark.parametrize("bad", BAD_ARRAYS)
def test_files_whose_arrays_are_no_density_are_refused(path, bad):
    change, message = BAD_ARRAYS[bad]
    save_file(tensors() | change, path, metadata=HEADER)
    assert message in refusal(path)


@pytest.mark.parametrize(("dtype", "size"), [("BF16", 2), ("F8_E4M3", 1)])
def test_arrays_of_types_that_numpy_lacks_are_refused(path, dtype, size):
    ends = np.cumsum([36 * size, 144, 8])
    shapes = {"filters": (dtype, [4, 3, 3]), "log_weights": ("F32", [4, 9]), "reach": ("F64", [1])}
    header = {"__metadata__": HEADER}
    for (name, (kind, shape)), begin, end in zip(shapes.items(), [0, *ends[:-1]], ends, strict=True):
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [int(begin), int(end)]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(int(ends[-1])))
    refusal(path)
