"""The bodies of the commands: joins collecting, judging and telling, which do not know each other."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from perfdoctor import console, disk, limits, store
from perfdoctor.errors import CannotJudge, DiskFull, RunFolderError, UsageError
from perfdoctor.model import Diagnosis, LoadSummary, RequestRecord, Sample, SloTerm, Target
from perfdoctor.progress import Watch

if TYPE_CHECKING:
    from perfdoctor.reports._bundle import Bundle, Report
    from perfdoctor.stages import Orders

CROSSED = 1  # the exit code of a limit that is not met


def _judge(run: store.Run, requests: Sequence[RequestRecord], samples: Sequence[Sample]) -> Diagnosis:
    """Judge what was recorded and keep the result beside it."""
    from perfdoctor.diagnosis import pipeline
    from perfdoctor.reports import json

    diagnosis = pipeline.diagnose(run.facts, run.state, requests, samples)
    _keep(run, "diagnosis.json", json.encode(diagnosis))
    return diagnosis


def _keep(run: store.Run, name: str, text: str) -> Path | None:
    """Write what can be derived again; a full disk or somebody else's folder only costs the copy."""
    try:
        return run.write_derived(name, text.encode("utf-8", "replace"))
    except DiskFull as error:
        console.say(f"{name} is not kept: {error.what}")
        return None


def judge(path: str) -> Bundle:
    return load_bundle(store.open_run(path), diagnosed=True)


def load_bundle(
    run: store.Run, *, diagnosed: bool, slo: str | None = None, style: str | None = None
) -> Bundle:
    """Everything a report may show. Load tests are summarised; `diagnosed` adds the verdict."""
    from perfdoctor.loadgen.summary import summarise
    from perfdoctor.reports._bundle import Bundle

    requests, samples = run.read_requests(), run.read_samples()
    stacks = run.path / "stacks.folded"
    for name, count in run.damaged.items():
        if count:
            console.say(f"{name}: {count} damaged lines are left out")
    return Bundle(
        diagnosis=_judge(run, requests, samples) if diagnosed else None,
        summary=_styled(summarise(run.facts, run.state, requests, samples, slo), requests, style),
        facts=run.facts,
        requests=requests,
        samples=samples,
        stacks=stacks.read_text(errors="replace") if stacks.exists() else "",
    )


def run_and_judge(orders: Orders, quiet: bool) -> Bundle:
    """Make a run, judge it, and leave the HTML report in its folder."""
    from perfdoctor import session

    with Watch(quiet) as watch:
        run = store.open_run(session.conduct(orders, watch))
    try:
        bundle = load_bundle(run, diagnosed=True)
        html = _keep(run, "report.html", _render(bundle, "html"))
    except KeyboardInterrupt:
        watch.note(f"Stopped before the report was made. The run is kept: perfdoctor report {run.path}")
        raise
    watch.note(f"Report: {html}" if html else f"Run folder: {run.path}")
    return bundle


def load_test(orders: Orders, quiet: bool, style: str | None = None) -> LoadSummary:
    """Make a run without probes and summarise it; `style` adds another tool's table."""
    from perfdoctor import session
    from perfdoctor.loadgen.summary import summarise

    with Watch(quiet) as watch:
        run = store.open_run(session.conduct(orders, watch))
    watch.note(f"Run folder: {run.path}")
    requests = run.read_requests()
    return _styled(summarise(run.facts, run.state, requests, run.read_samples()), requests, style)


def _styled(summary: LoadSummary, requests: Sequence[RequestRecord], style: str | None) -> LoadSummary:
    """With another tool's table beside ours, where one was asked for."""
    if style is None:
        return summary
    from perfdoctor import registry

    rows = registry.load_member("perfdoctor.loadgen.styles", style, "STYLE")[0].rows(requests)
    return msgspec.structs.replace(summary, style=style, styled=rows)


def show(bundle: Bundle, *, as_json: bool) -> None:
    from perfdoctor.reports import terminal

    if as_json:
        _print_plain(_render(bundle, "json"))
        return
    with console.writing():
        terminal.print_diagnosis(console.out(), bundle)


def show_summary(summary: LoadSummary, *, as_json: bool, definitions: bool) -> None:
    from perfdoctor.reports import json, terminal

    if as_json:
        _print_plain(json.encode(summary))
        return
    with console.writing():
        terminal.print_summary(console.out(), summary, definitions)


def check_limits(text: str) -> None:
    """UsageError for what --slo and --fail-on do not understand, before anything is measured."""
    limits.parse(text)


def crossed(summary: LoadSummary, fail_on: str | None = None) -> bool:
    """Whether the run is a failure to whoever asked: an SLO missed, a --fail-on met, stopped for its errors.

    A limit that has no value here is not met; nobody may pass by measuring nothing. Says which it was, also
    to whom asked for no notes: an exit code alone explains nothing.
    """
    terms = [limits.test(limit, summary) for limit in limits.parse(fail_on)] if fail_on else []
    reasons = [f"--fail-on {term.text}: {_against(term)}" for term in terms if term.met is not False]
    if summary.slo is not None and summary.slo.met is not True:
        missed = [term for term in summary.slo.terms if term.met is not True]
        reasons += [f"the SLO is missed, {term.text}: {_against(term)}" for term in missed]
    reasons += [summary.stopped] if summary.stopped else []
    for reason in reasons:
        console.say(f"Exit 1: {reason}")
    return bool(reasons)


def _against(term: SloTerm) -> str:
    from perfdoctor.reports import _load_words

    if term.value is None:
        return f"it has no value in this run: {term.missing}"
    return f"it is {_load_words.term_value(term)}"


def report(
    path: str,
    form: str | None,
    out: Path | None,
    *,
    force: bool = False,
    definitions: bool = False,
    slo: str | None = None,
    fail_on: str | None = None,
    style: str | None = None,
) -> int:
    """Render a run again; the exit code, as of the run itself where limits are asked about.

    HTML goes to a file, the others to stdout or `out`.
    """
    run = store.open_run(path)
    bundle = load_bundle(run, diagnosed=run.facts.command != "load-test", slo=slo, style=style)
    _tell(run, bundle, form, out, force=force, definitions=definitions)
    if bundle.summary is None or not (slo or fail_on):
        return 0
    trust = bundle.summary.trust
    if trust.status == "invalid":
        console.say(f"Exit 4: what cannot be trusted meets no limit: {'; '.join(trust.reasons)}")
        return CannotJudge.exit_code
    return CROSSED if crossed(bundle.summary, fail_on) else 0


def _tell(
    run: store.Run, bundle: Bundle, form: str | None, out: Path | None, *, force: bool, definitions: bool
) -> None:
    if form is None:
        if bundle.diagnosis is not None:
            show(bundle, as_json=False)
        elif bundle.summary is not None:
            show_summary(bundle.summary, as_json=False, definitions=definitions)
        return
    if form == "html" and out is None:
        console.say(f"Report: {run.write_derived('report.html', _render(bundle, form).encode())}")
    elif out is None:
        _print_pieces(_pieces(bundle, form))
    else:
        _write_new(out, _pieces(bundle, form), force)
        console.say(f"Report: {out}")


def check(target: Target, secret: str | None, *, as_json: bool) -> None:
    """What can be measured here, for a given server or, without an endpoint, for this machine alone."""
    from perfdoctor import preflight
    from perfdoctor.probes import _check, _host, _sampler
    from perfdoctor.reports import terminal

    subject = _sampler.Subject()
    if target.endpoint:
        facts = preflight.discover(target, secret)
        subject = _sampler.Subject(
            pid=facts.pid,
            url=facts.url,
            model_path=facts.model_path,
            remote=facts.remote,
            engine=facts.engine,
            transport=partial(preflight.transport, target.wire),
        )
    states = _check.check(subject)
    if as_json:
        _print_plain(msgspec.json.format(msgspec.json.encode(states), indent=2).decode())
        return
    with console.writing():
        terminal.print_check(console.out(), states, _host.host_facts())


def calibrate(quick: bool, *, as_json: bool, quiet: bool) -> None:
    """Measure the load generator itself."""
    from perfdoctor import calibration
    from perfdoctor.reports import _calibration, json

    with Watch(quiet) as watch:
        found = calibration.calibrate(watch, quick)
    if as_json:
        _print_plain(json.encode(found))
        return
    with console.writing():
        _calibration.print_calibration(console.out(), found)


def explain(name: str | None) -> None:
    from perfdoctor import pages
    from perfdoctor.reports import terminal

    page = pages.find_page(name) if name is not None else None
    with console.writing():
        if page is None:
            terminal.print_names(console.out(), pages.all_names())
        else:
            terminal.print_page(console.out(), page)


def _format(form: str) -> Report:
    from perfdoctor import registry

    found: Report = registry.load_member("perfdoctor.reports", form, "REPORT")[0]
    return found


def _render(bundle: Bundle, form: str) -> str:
    return _format(form).render(bundle)


def _pieces(bundle: Bundle, form: str) -> Iterator[str]:
    """The text bit by bit: that of a million requests is not held as one."""
    report = _format(form)
    return report.pieces(bundle) if report.pieces else iter((_ended(report.render(bundle)),))


def _ended(text: str) -> str:
    return text.rstrip("\n") + "\n"


def _print_plain(text: str) -> None:
    _print_pieces((_ended(text),))


def _print_pieces(pieces: Iterable[str]) -> None:
    """Straight to stdout, in UTF-8 whatever the terminal's encoding: no wrapping, no markup, no colour."""
    with console.writing():
        for piece in pieces:
            sys.stdout.buffer.write(piece.encode("utf-8", "replace"))


def _write_new(path: Path, pieces: Iterable[str], force: bool) -> None:
    with disk.disk_errors(path.parent):
        taken, folder, place = path.exists(), path.is_dir(), path.parent.is_dir()
    if folder:
        raise UsageError(f"{path} is a folder", "The report is one file.", f"-o {path}/report.html")
    if taken and not force:
        raise UsageError(f"{path} exists already", "Nothing is overwritten unasked.", "add --force")
    if not place:
        raise RunFolderError(f"there is no folder {path.parent}", "", f"mkdir -p {path.parent}")
    disk.write_atomically(path, (piece.encode("utf-8", "replace") for piece in pieces))
