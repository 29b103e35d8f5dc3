"""Executes runs, several in parallel; other processes may work on the same runs."""

import os
import time
from typing import Callable, List, Optional, Sequence

from ..console.durations import duration
from ..console.errors import RunError
from ..console.processes import signals_deferred
from ..console.progress import Line
from .job import Job, lock
from .runs import Run, with_predecessors

START, DECODING = 10.0, 15.0  # seconds, assumed when the remaining time is estimated


def run_all(
    runs: Sequence[Run], jobs: int, line: Line, finished: Callable[[Run], None] = lambda run: None, poll: float = 0.2
) -> List[Run]:
    """Complete all runs and those that they depend on, `jobs` in parallel.  Returns the runs that failed.

    finished: called after each run that was completed here.
    """
    return Scheduler(runs, jobs, line, finished).run(poll)


class Scheduler:
    """A run waits, is active, and then complete or failed.  A run that another process executes keeps waiting."""

    def __init__(self, runs: Sequence[Run], jobs: int, line: Line, finished: Callable[[Run], None]) -> None:
        self.jobs, self.line, self.finished = jobs, line, finished
        self.threads = None if jobs == 1 else max(1, cores() // jobs)
        self.runs = with_predecessors(runs)
        self.waiting = [run for run in self.runs if not run.is_complete()]
        self.active: List[Job] = []
        self.failed: List[Run] = []
        self.elsewhere: List[Run] = []  # those that another process executes
        self.durations: List[float] = []  # seconds per training that has ended

    def run(self, poll: float) -> List[Run]:
        before = len(self.runs) - len(self.waiting)
        if before:
            self.line.say(f"{before} of {len(self.runs)} runs were trained and decoded before")
        try:
            while self.active or any(map(is_ready, self.waiting)):
                with signals_deferred():
                    self._start_jobs()
                    self._end_jobs()
                self._show()
                if self.active or self.waiting:
                    time.sleep(poll)
        finally:
            self.line.clear()
            with signals_deferred():
                for job in self.active:
                    job.close()
        return self.failed + self.waiting  # those that still wait depend on a failed run

    def _start_jobs(self) -> None:
        self.elsewhere = []
        for run in list(self.waiting):
            if len(self.active) == self.jobs or not is_ready(run):
                continue
            held = lock(run)
            if held is None:
                self.elsewhere.append(run)
                continue
            self.waiting.remove(run)
            if run.is_complete():  # another process has just done it
                held.close()
            else:
                self.active.append(Job(run, held, self.threads))

    def _end_jobs(self) -> None:
        for job in list(self.active):
            try:
                if not job.poll():
                    continue
                self.line.say(f"{job.run.name}: complete after {duration(time.time() - job.started)}")
            except RunError as error:
                self.failed.append(job.run)
                self.line.say(str(error))
            job.close()
            self.active.remove(job)
            seconds = job.training_seconds()
            if seconds is not None:
                self.durations.append(seconds)
            if job.run not in self.failed:
                self.finished(job.run)

    def _show(self) -> None:
        done = f"{len(self.runs) - len(self.waiting) - len(self.active)} of {len(self.runs)} done"
        left = self._seconds_left()
        said = [job.describe() for job in self.active]
        said += [f"{run.name} is run by another process" for run in self.elsewhere]
        self.line.show([*said, done if left is None else f"{done}, {duration(left)} left"])

    def _seconds_left(self) -> Optional[float]:
        """The remaining time, estimated from the speed of the trainings so far; None if there is no estimate yet."""
        whole = [job.training_seconds() for job in self.active]
        known = [seconds for seconds in whole if seconds is not None] or self.durations[-self.jobs :]
        if not self.active or not known:
            return None
        mean = sum(known) / len(known)
        running = [
            job.share_left() * (mean if seconds is None else seconds) + DECODING + (START if seconds is None else 0.0)
            for job, seconds in zip(self.active, whole)
        ]
        queued = len(self.waiting) * (mean + START + DECODING)
        return max(max(running), (sum(running) + queued) / self.jobs)


def is_ready(run: Run) -> bool:
    return run.before is None or run.before.is_complete()


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
