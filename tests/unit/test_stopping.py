"""How a signal stops a command: where it is, once it may, and at once when asked again."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from sealbook import stopping
from sealbook.stopping import Stopped, stoppable, uninterrupted
from tests.support.cli import interruptible

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@pytest.fixture(autouse=True)
def _spared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the signals of these tests not end the Java of other tests in this process."""
    monkeypatch.setattr(stopping, "_outliving", [])


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_stops_the_block(number: signal.Signals, code: int) -> None:
    before = signal.getsignal(number)
    with stoppable() as stop:
        assert stop.exit_code is None
        with pytest.raises(Stopped):
            signal.raise_signal(number)
        assert stop.exit_code == code
    assert signal.getsignal(number) is before


def test_what_must_not_be_left_half_done_is_done_first() -> None:
    done = []

    def work() -> None:
        with uninterrupted():
            with uninterrupted():
                signal.raise_signal(signal.SIGINT)
                done.append("inner")
            done.append("outer")
        done.append("too much")

    with stoppable() as stop:
        with pytest.raises(Stopped):
            work()
        assert stop.exit_code == 130
        with uninterrupted():  # it was stopped once: what is told of it then is told in peace
            done.append("told")
    assert done == ["inner", "outer", "told"]


def test_an_error_in_what_is_done_first_is_not_lost() -> None:
    def work() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGTERM)
            _ = 1 / 0

    with stoppable() as stop, pytest.raises(ZeroDivisionError):
        work()
    assert stop.exit_code == 143


def test_without_a_command_ctrl_c_is_as_everywhere() -> None:
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.default_int_handler(signal.SIGINT, None)


def test_another_thread_gets_no_signals_and_waits_for_none() -> None:
    entered = []

    def work() -> None:
        with stoppable() as stop, uninterrupted():
            entered.append(stop.exit_code)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert entered == [None]


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_asked_twice_it_waits_for_nothing(number: signal.Signals, code: int) -> None:
    program = """
from time import sleep
from sealbook.stopping import stoppable, uninterrupted
with stoppable() as stop, uninterrupted():
    print("at work", flush=True)
    while stop.exit_code is None:
        sleep(0.01)
    print("stopping", flush=True)
    sleep(600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, preexec_fn=interruptible
    ) as process:
        assert process.stdout is not None
        for said in ("at work", "stopping"):
            assert process.stdout.readline().strip() == said
            process.send_signal(number)
        assert process.wait(60) == code


LATE = """
import atexit, os, signal, sys
class Late:
    def __del__(self, kill=os.kill, process=os.getpid(), number={number}):
        kill(process, number)
{moment}
from sealbook.cli import main
sys.exit(main())
"""
MOMENTS = {
    "while the process ends": "atexit.register(Late().__del__)",
    "when Python handles signals no more": "late = Late()",
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("number", [each for each, _ in SIGNALS])
def test_a_signal_after_the_command_has_ended_changes_nothing(number: signal.Signals, moment: str) -> None:
    program = LATE.format(number=int(number), moment=MOMENTS[moment])
    ran = subprocess.run(
        [sys.executable, "-c", program, "--version"],
        capture_output=True, text=True, check=False, preexec_fn=interruptible,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("sealbook ")


def test_a_signal_while_an_object_is_cleaned_up_is_not_lost() -> None:
    class Cleaned:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)  # what is raised here, Python only reports

    def work() -> None:
        cleaned = Cleaned()
        del cleaned
        threading.Event().wait(60)

    with stoppable() as stop, pytest.raises(Stopped):
        work()
    assert stop.exit_code == 143
