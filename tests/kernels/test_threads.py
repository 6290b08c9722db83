import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from examples import patch_prior
from heatprior.kernels import threads
from heatprior.kernels.threads import for_each


@pytest.fixture
def use_threads(monkeypatch):
    """Sets the number of threads, also above the number of cores."""
    return lambda count: monkeypatch.setattr(threads, "get_num_threads", lambda: count)


def test_results_come_in_the_order_of_the_pieces():
    assert for_each(lambda piece: piece**2, range(50)) == [piece**2 for piece in range(50)]


def test_no_piece_gives_no_result():
    assert for_each(lambda piece: piece, []) == []


@pytest.mark.parametrize("pieces", [1, 2, 50])
def test_an_error_in_a_piece_reaches_the_caller(pieces):
    def fail(piece):
        raise ValueError(f"piece {piece}")

    with pytest.raises(ValueError, match="piece 0"):
        for_each(fail, range(pieces))


@pytest.mark.parametrize("pieces", [1, 3])
def test_products_have_one_thread_whichever_thread_begins(pieces, use_threads):
    use_threads(1)
    with threadpool_limits(2, user_api="blas"):
        in_main = for_each(lambda _: set(blas_threads()), range(pieces))
        with ThreadPoolExecutor(1) as other:
            in_other = other.submit(for_each, lambda _: set(blas_threads()), range(pieces)).result()
        assert in_main == in_other == [{1}] * pieces
        assert set(blas_threads()) == {2}  # as before, outside


def test_the_number_of_threads_is_numbas():
    assert threads.get_num_threads() == numba.get_num_threads()


def test_two_pieces_run_side_by_side(use_threads):
    use_threads(2)
    meeting = threading.Barrier(2, timeout=30)
    for_each(lambda _: meeting.wait(), range(2))


@pytest.mark.parametrize("rows", [1023, 1024, 1025, 5000])
def test_results_are_the_same_bits_with_one_thread_and_with_two(use_threads, rows):
    prior = patch_prior(3, 8, 125)
    y = prior.sample(rows, 0.1, rng=np.random.default_rng(0))
    sigma = np.random.default_rng(1).uniform(0.0, 1.0, rows)
    results = []
    for count in (1, 2):
        use_threads(count)
        results.append([prior.log_prob(y, sigma), prior.score(y, sigma), *prior.posterior(y, sigma)])
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_matrix_products_have_one_thread_inside_and_as_many_as_before_outside(use_threads):
    use_threads(2)
    with threadpool_limits(2, user_api="blas"):
        inside = for_each(lambda _: blas_threads(), range(4))
        assert all(threads == 1 for found in inside for threads in found)
        assert blas_threads() == [2] * len(inside[0])


def test_callers_in_several_threads_leave_the_matrix_products_as_they_were(use_threads):
    use_threads(2)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        callers = [
            threading.Thread(target=for_each, args=(lambda _: time.sleep(0.001), range(5 + i))) for i in range(8)
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert blas_threads() == before


def test_after_an_error_no_further_piece_is_begun(use_threads):
    use_threads(2)
    begun = []

    def fail(piece):
        begun.append(piece)
        raise ValueError(f"piece {piece}")

    with pytest.raises(ValueError, match="piece 0"):
        for_each(fail, range(1000))
    assert len(begun) <= 2


def test_pieces_of_pieces_do_not_wait_for_each_other(use_threads):
    use_threads(2)
    results = for_each(lambda outer: for_each(lambda inner: 10 * outer + inner, range(4)), range(4))
    assert results == [[10 * outer + inner for inner in range(4)] for outer in range(4)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(use_threads):
    use_threads(2)
    for_each(str, range(4))
    child = os.fork()
    if child == 0:
        os._exit(0 if for_each(abs, range(4)) == [0, 1, 2, 3] else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_done_meanwhile_is_the_same_with_any_number_of_threads(count, use_threads):
    use_threads(count)
    begun = threading.Event()

    def work():
        begun.set()
        return for_each(lambda piece: 2 * piece, [1, 2, 3])

    result = threads.meanwhile(work)
    assert begun.wait(5.0 if count > 1 else 0.0) == (count > 1)  # with one thread nothing is begun yet
    assert result() == [2, 4, 6]


@pytest.mark.parametrize("count", [1, 2])
def test_an_error_meanwhile_is_raised_where_the_result_is_wanted(count, use_threads):
    use_threads(count)

    def fail():
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        threads.meanwhile(fail)()


def test_the_blas_of_numba_is_limited_though_it_is_loaded_later():
    """Else two pools of threads wait actively for each other: twenty times the time on a busy machine."""
    script = """
from heatprior.kernels.threads import products_in_one_thread
with products_in_one_thread():
    pass
import scipy.linalg.cython_blas  # as numba does when it links a product
from threadpoolctl import threadpool_info
with products_in_one_thread():
    threads = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
assert threads and set(threads) == {1}, threads
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_work_in_the_background_holds_up_no_other_work(use_threads):
    use_threads(2)
    gate, busy = threading.Event(), threading.Barrier(3, timeout=30)

    def hold(_):
        busy.wait()
        gate.wait(30)

    def behind():
        with threads.in_background():
            for_each(hold, range(2))

    background = threading.Thread(target=behind)
    background.start()
    busy.wait()  # both of its threads are taken
    assert for_each(lambda piece: piece, range(2)) == [0, 1]
    gate.set()
    background.join(30)
    assert not background.is_alive()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
def test_threads_in_the_background_step_back(use_threads):
    use_threads(2)
    meeting = threading.Barrier(2, timeout=30)

    def priority(_):
        meeting.wait()
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    usual = for_each(priority, range(2))
    with threads.in_background():
        stepped_back = for_each(priority, range(2))
    assert min(stepped_back) == min(19, max(usual) + threads.STEP_BACK)


def run_script(script, seconds=60):
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=seconds, check=False)
    assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stderr)
    return done.stdout


FORKS = """
import os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")
{setup}

def loop():
    while True:
        {others}

for _ in range(3):
    threading.Thread(target=loop, daemon=True).start()
time.sleep(0.2)
for number in range({forks}):
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # it is killed if it hangs
        {work}
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, f"the child of fork {{number}} hangs"
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    ("setup", "others", "work"),
    [
        (
            # with its lock held
            "from heatprior.kernels import threads; threads._controlled = lambda: time.sleep(0.01) or ()",
            "threads.for_each(abs, range(4))",
            "assert threads.for_each(abs, range(4)) == [0, 1, 2, 3]",
        ),
        (
            "from heatprior.locks import thread_lock; lock = thread_lock()",
            "lock.acquire(); time.sleep(0.01); lock.release()",
            "lock.acquire()",
        ),
        (
            # Python 3.11 has one for all instances of a class
            "from heatprior.locks import cached_property\n"
            "class Kept:\n"
            "    slow = cached_property(lambda self: time.sleep(0.01))",
            "Kept().slow",
            "Kept().slow",
        ),
        (
            "from heatprior.kernels import compiler; from numba.core.compiler_lock import global_compiler_lock as lock",
            "lock.acquire(); time.sleep(0.01); lock.release()",
            "lock.acquire()",
        ),
        (
            # as Python's own lock of a module is held while that is imported
            "from types import SimpleNamespace; import heatprior; importing = threading.Lock()\n"
            "def import_module(name):\n"
            "    with importing:\n"
            "        time.sleep(0.01)\n"
            "    return SimpleNamespace(load=None)\n"
            "heatprior.import_module = import_module",
            "heatprior.__dict__.pop('load', None); heatprior.load; time.sleep(0.05)",
            "importing.acquire()",
        ),
    ],
    ids=["pieces", "lock", "property", "compiler", "import"],
)
def test_a_fork_while_other_threads_work_leaves_a_child_that_can_work(setup, others, work):
    run_script(FORKS.format(setup=setup, others=others, work=work, forks=40), 120)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_plain_lock_would_hang():
    """The control of the test above."""
    script = FORKS.format(
        setup="lock = threading.Lock()",
        others="lock.acquire(); time.sleep(0.01); lock.release()",
        work="signal.alarm(1); lock.acquire()",
        forks=40,
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert "hangs" in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_has_the_limits_of_its_own_thread_only():
    run_script("""
import os, threading, warnings
warnings.simplefilter("ignore")
from threadpoolctl import threadpool_info, threadpool_limits
from heatprior.kernels.threads import _Limit, products_in_one_thread

def threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

def hold():
    with products_in_one_thread():
        inside.set()
        leave.wait(30)

inside, leave = threading.Event(), threading.Event()
with products_in_one_thread():
    pass
with threadpool_limits(2, user_api="blas"):
    other = threading.Thread(target=hold)
    other.start()
    inside.wait(30)
    if (child := os.fork()) == 0:
        os._exit(0 if threads() == {2} and _Limit.holders == 0 else 1)
    assert os.waitpid(child, 0)[1] == 0
    with products_in_one_thread():
        child = os.fork()
    if child == 0:
        os._exit(0 if threads() == {2} and _Limit.holders == 0 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert threads() == {1}
    leave.set()
    other.join()
    assert threads() == {2}
""")


@pytest.mark.parametrize("daemon", [True, False])
def test_a_thread_that_works_while_the_interpreter_ends_says_nothing(daemon):
    """The pools take no work any more; what is begun then is done where it is."""
    said = run_script(f"""
import sys, threading, time
from heatprior.kernels import threads

threads.get_num_threads = lambda: 2
threads.for_each(abs, range(4))
threads.meanwhile(int)()
main = threading.main_thread()

def work():
    while main.is_alive():
        time.sleep(0.001)
    time.sleep(0.1)
    assert threads.for_each(abs, range(-4, 0)) == [4, 3, 2, 1]
    assert threads.meanwhile(lambda: 7)() == 7
    print("done", flush=True)

threading.Thread(target=work, daemon={daemon}).start()
threading.Thread(target=time.sleep, args=(1.0,)).start()
""")
    assert said == "done\n"
