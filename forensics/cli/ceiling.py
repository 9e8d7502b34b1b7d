"""`forensics ceiling`: the batch ceiling from GPU and model, recordings, or benchmark results."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forensics.errors import InputError, UsageError

if TYPE_CHECKING:
    from forensics.capacity.wanted import Wanted
    from forensics.catalog.model_geometry import ModelGeometry
    from forensics.ceiling.records import Ceiling, Sweep


_RESULTS = (".json", ".jsonl", ".csv")


class CeilingFormat(StrEnum):
    """Formats of the answer."""

    TEXT = "text"
    JSON = "json"


_WITH_PATHS = frozenset(
    ("paths", "gpu", "model", "config", "slo_itl", "slo_ttft", "vllm_version", "format_", "lang")
)
"""Options that say something beside recordings; the others describe a server that is not there."""


def ceiling(
    context_: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Logs, metrics or folders of a server; or result files of vllm bench, guidellm "
            "or aiperf. Without any, --gpu and --model are needed."
        ),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(help="GPU, in any spelling: A100-80GB, L4 …; auto asks the driver here."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model name, as in vllm serve; or a config.json.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="config.json of a model that is not in the table.")
    ] = None,
    context: Annotated[
        float, typer.Option(help="Prompt tokens of a request; all its tokens without --output.")
    ] = 2048.0,
    output: Annotated[float | None, typer.Option(help="Generated tokens of a request.")] = None,
    shared_prefix: Annotated[
        float | None, typer.Option(help="Tokens at the start that all requests share.")
    ] = None,
    prefixes: Annotated[int, typer.Option(help="How many such prefixes there are.", min=1)] = 1,
    turns: Annotated[float | None, typer.Option(help="Mean turns of a session.", min=1)] = None,
    think: Annotated[str | None, typer.Option(help="Mean pause between turns: 30s.")] = None,
    slo_itl: Annotated[str | None, typer.Option(help="Inter-token target: 50ms.")] = None,
    slo_ttft: Annotated[str | None, typer.Option(help="First-token target: 2s.")] = None,
    kv_dtype: Annotated[str | None, typer.Option(help="--kv-cache-dtype: fp8 …")] = None,
    dtype: Annotated[str | None, typer.Option(help="--dtype.")] = None,
    tp: Annotated[int, typer.Option("--tp", help="Tensor-parallel size.", min=1)] = 1,
    pp: Annotated[int, typer.Option("--pp", help="Pipeline-parallel size.", min=1)] = 1,
    utilization: Annotated[
        float | None, typer.Option(help="--gpu-memory-utilization.", min=0.05, max=1.0)
    ] = None,
    vllm_version: Annotated[
        str | None, typer.Option(help="Release whose rules and defaults apply: 0.33.")
    ] = None,
    block_size: Annotated[int, typer.Option(help="Tokens of a block.", min=1)] = 16,
    pool_tokens: Annotated[
        int | None, typer.Option(help='The log\'s "GPU KV cache size", when known.', min=1)
    ] = None,
    reserve_gib: Annotated[
        float | None, typer.Option(help="GiB the field's formula keeps for prefixes.", min=0)
    ] = None,
    draft_layers: Annotated[
        int, typer.Option(help="KV layers a speculative draft adds (EAGLE, MTP: 1).", min=0)
    ] = 0,
    keep_generations: Annotated[
        int, typer.Option(help="Generations of the shared prefix the formula keeps.", min=0)
    ] = 1,
    table: Annotated[
        bool, typer.Option("--table", help="Show a range of batches and changes.")
    ] = False,
    format_: Annotated[
        CeilingFormat, typer.Option("--format", help="text or json.")
    ] = CeilingFormat.TEXT,
    lang: Annotated[str, typer.Option("--lang", help="Language: en or ko.")] = "en",
) -> None:
    """Recommend max_num_seqs, and a limit on live sessions where hits matter.

    Every bound is shown with its arithmetic; the smallest one that applies is the answer.
    """
    from forensics.catalog.messages import LANGUAGES
    from forensics.cli.analyze import duration

    memory_gib = None

    if lang not in LANGUAGES:
        raise UsageError(f"--lang {lang}: choose one of {', '.join(LANGUAGES)}")
    itl = duration(slo_itl, "--slo-itl") if slo_itl else None
    ttft = duration(slo_ttft, "--slo-ttft") if slo_ttft else None
    if paths:
        _refuse_unused(context_)
        named = str(config) if config else model
        ceilings, sweep = _recorded(paths, gpu, named, vllm_version, (ttft, itl))
        _show(ceilings, sweep, None, format_, lang)
        return
    if gpu == "auto":
        from forensics.cli.live_gpu import gpu_here

        gpu, memory_gib = gpu_here()
    if gpu is None and pool_tokens is None:
        raise UsageError(
            "ceiling needs --gpu and --model (or --config, or --pool-tokens), or the logs and "
            "metrics of a server"
        )
    from forensics.capacity.wanted import Wanted
    from forensics.ceiling.planned import ceiling_of

    wanted = Wanted(
        gpu=gpu,
        model=_model(config, model),
        context=_positive(context, "--context"),
        output=None if output is None else _positive(output, "--output"),
        shared_prefix=_shared(shared_prefix, context),
        prefixes=prefixes,
        turns=turns,
        think_s=duration(think, "--think") if think else None,
        kv_dtype=kv_dtype,
        dtype=dtype,
        tensor_parallel=tp,
        pipeline_parallel=pp,
        utilization=utilization,
        version=_release(vllm_version),
        block_size=block_size,
        slo_itl_s=itl,
        slo_ttft_s=ttft,
        pool_tokens=pool_tokens,
        memory_gib=memory_gib,
        draft_layers=draft_layers,
        reserve_gib=reserve_gib,
        keep_generations=keep_generations,
    )
    _show([ceiling_of(wanted)], None, wanted if table else None, format_, lang)


def _recorded(
    paths: list[str],
    gpu: str | None,
    model: str | None,
    version: str | None,
    targets: tuple[float | None, float | None],
) -> "tuple[list[Ceiling], Sweep | None]":
    from forensics.ceiling.sweep import from_files
    from forensics.ceiling.sweep_compare import Targets

    named = [Path(path) for path in paths]
    if all(path.is_file() and path.suffix.lower() in _RESULTS for path in named):
        sweep = from_files(named, Targets(targets[0]))
        if sweep is not None:
            return [], sweep
    from forensics.config import Options
    from forensics.pipeline import analyze

    options = Options(
        gpu=gpu, model=model, vllm_version=version, slo_ttft_s=targets[0], slo_itl_s=targets[1]
    )
    try:
        found = analyze(paths, options)
    except InputError:
        # No server speaks in there; what a benchmark wrote, a folder per run, may.
        files = [file for path in named for file in sorted(path.rglob("*")) if file.is_file()]
        written = [file for file in files if file.suffix.lower() in _RESULTS]
        sweep = from_files(written, Targets(targets[0])) if written else None
        if sweep is None:
            raise
        return [], sweep
    return list(found.ceilings), found.sweep


def _refuse_unused(context: typer.Context) -> None:
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in _WITH_PATHS and source is not None and source.name == "COMMANDLINE":
            option = "--" + name.replace("_", "-")
            raise UsageError(
                f"{option} describes a server that is not there; with recordings it would do "
                f"nothing. Leave out either {option} or the paths"
            )


def _show(
    ceilings: "list[Ceiling]",
    sweep: "Sweep | None",
    wanted: "Wanted | None",
    format_: CeilingFormat,
    lang: str,
) -> None:
    from forensics.cli import ceiling_output

    if format_ is CeilingFormat.JSON:
        sys.stdout.write(ceiling_output.as_json(ceilings, sweep, wanted))
    else:
        sys.stdout.write(ceiling_output.as_text(ceilings, sweep, wanted, lang))


def _model(config: Path | None, name: str | None) -> "ModelGeometry | str | None":
    if config is None and name is not None and name.endswith(".json"):
        config = Path(name)
    if config is None:
        return name
    from forensics.catalog.model_config import geometry_from_config

    return geometry_from_config(config)


def _release(text: str | None) -> tuple[int, int, int] | None:
    if text is None:
        return None
    from forensics.catalog.versions import version

    return version(text).numbers


def _shared(value: float | None, context: float) -> float | None:
    if value is not None and not 0 <= value < context:
        raise UsageError(
            f"--shared-prefix {value:g}: it is a part of the {context:g} tokens of --context"
        )
    return value


def _positive(value: float, option: str) -> float:
    if not 0 < value < 1e9:
        raise UsageError(f"{option} {value:g}: give a number of tokens above 0")
    return value
