"""The settings of `forensics lint`: `[tool.forensics]` in pyproject.toml, or forensics.toml."""

import difflib
import tomllib
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatch
from pathlib import Path

from forensics.catalog.versions import Generation
from forensics.ci_formats.interface import SEVERITIES, Severity
from forensics.errors import ConfigError
from forensics.runbooks.target import parse_span

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for a run, before a document says otherwise.

    Attributes:
        vllm_version: release or range; None for the newest known.
        engine: V0 or V1 where the release leaves the choice.
        scrape_interval_s: seconds between scrapes; Prometheus' usual 15 s unless set.
        gpu / model / context / tp: the deployment; None where not stated.
        disable: ids or names of checks not to run.
        exclude: glob patterns of paths not to read.
        known_metrics: glob patterns of metric names that exist though no vLLM release has them.
        fail_on: mildest severity that fails the run; None for none.
        baseline: path of the baseline file; None for none.
        overrides: settings for some paths, later ones win.
    """

    vllm_version: str | None = None
    engine: Generation | None = None
    scrape_interval_s: float = 15.0
    gpu: str | None = None
    model: str | None = None
    context: int | None = None
    tp: int | None = None
    disable: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    known_metrics: tuple[str, ...] = ()
    fail_on: Severity | None = "warning"
    baseline: str | None = None
    overrides: tuple["Override", ...] = ()

    def for_path(self, path: str) -> "Settings":
        """Return the settings that hold for one file."""
        settings = self
        for override in self.overrides:
            if any(matches(path, pattern) for pattern in override.paths):
                settings = settings.with_values(override.values, f"override for {path}")
        return settings

    def with_values(self, values: tuple[tuple[str, object], ...], where: str) -> "Settings":
        """Return these settings with some set anew; names as in the files, with hyphens.

        Raises:
            ConfigError: when a name or a value is not one.
        """
        changes = dict(_setting(key, value, where) for key, value in values)
        return replace(self, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Override:
    """Settings for the paths that match one of some glob patterns."""

    paths: tuple[str, ...]
    values: tuple[tuple[str, object], ...]


def matches(path: str, pattern: str) -> bool:
    """Tell whether a path or its end matches a glob pattern; ``**/`` may match nothing."""
    path = path.removeprefix("./")
    return any(
        fnmatch(path, candidate) or fnmatch(path, f"*/{candidate}")
        for candidate in {pattern, pattern.replace("**/", "")}
    )


def find(start: Path) -> Path | None:
    """Return the nearest settings file at or above a directory; forensics.toml comes first."""
    for directory in (start, *start.parents):
        own = directory / "forensics.toml"
        if own.is_file():
            return own
        project = directory / "pyproject.toml"
        if project.is_file() and "forensics" in _read(project).get("tool", {}):  # type: ignore[operator]
            return project
    return None


def load(path: Path | None) -> Settings:
    """Read a settings file; None gives the defaults.

    Raises:
        ConfigError: when it cannot be read or holds something that is no setting.
    """
    if path is None:
        return Settings()
    document = _read(path)
    if path.name != "forensics.toml":
        tool = document.get("tool", {})
        section = tool.get("forensics", {}) if isinstance(tool, dict) else {}
        document = section if isinstance(section, dict) else {}
    overrides = document.pop("overrides", [])
    settings = Settings().with_values(tuple(document.items()), str(path))
    if not isinstance(overrides, list):
        raise ConfigError(f"{path}: overrides is an array of tables, each with paths")
    found = []
    for entry in overrides:
        paths = entry.pop("paths", None) if isinstance(entry, dict) else None
        if not isinstance(paths, list) or not all(isinstance(item, str) for item in paths):
            raise ConfigError(f"{path}: each override needs paths, a list of glob patterns")
        override = Override(tuple(paths), tuple(entry.items()))
        settings.with_values(override.values, str(path))  # complain now, not at the first match
        found.append(override)
    return replace(settings, overrides=tuple(found))


def _read(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: not a settings file that can be read: {error}") from error


def _setting(key: str, value: object, where: str) -> tuple[str, object]:
    """Check one setting; return its field and value."""
    names = [field.name for field in fields(Settings) if field.name != "overrides"]
    name = key.replace("-", "_")
    if name == "scrape_interval":
        return "scrape_interval_s", seconds(value, where)
    if name not in names:
        near = difflib.get_close_matches(name, names, 1)
        hint = f"; did you mean {near[0].replace('_', '-')}?" if near else ""
        raise ConfigError(f"{where}: {key!r} is no setting of forensics{hint}")
    if name == "vllm_version" and isinstance(value, str):
        parse_span(value)
        return name, value
    if name == "vllm_version" and isinstance(value, float):
        raise ConfigError(f"{where}: write {key} in quotes, since 0.10 as a number is 0.1")
    if name == "engine" and isinstance(value, str) and value.upper() in ("V0", "V1"):
        return name, value.upper()
    if name == "fail_on" and value in (*SEVERITIES, "never"):
        return name, None if value == "never" else value
    if name in ("gpu", "model", "baseline") and isinstance(value, str):
        return name, value
    if name in ("context", "tp"):
        number = int(value) if isinstance(value, str) and value.isdecimal() else value
        if isinstance(number, int) and not isinstance(number, bool) and number > 0:
            return name, number
    if (
        name in ("disable", "exclude", "known_metrics")
        and isinstance(value, list)
        and all(isinstance(item, str) for item in value)
    ):
        return name, tuple(value)
    if name == "scrape_interval_s":
        return name, seconds(value, where)
    raise ConfigError(f"{where}: {value!r} is no value for {key}")


def seconds(value: object, where: str) -> float:
    """Read a duration: a number of seconds, or text such as ``30s``."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value)
    if isinstance(value, str):
        for unit, factor in _UNITS.items():
            number = value.removesuffix(unit)
            if number != value and number.replace(".", "", 1).isdecimal():
                return float(number) * factor
    raise ConfigError(f"{where}: {value!r} is no duration; write 15s or 1m")
