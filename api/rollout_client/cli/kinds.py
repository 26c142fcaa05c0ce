"""Kinds as people name them on the command line.

A copy of the names in `rollout_crds.resources` that costs no import of the models; a test keeps
the two equal.
"""

from dataclasses import dataclass

from rollout_client.cli.failure import INVALID, CliError


@dataclass(frozen=True)
class Kind:
    """Names of a kind."""

    kind: str
    plural: str
    short_name: str

    def path(self, name: str | None = None) -> str:
        """Path of the collection, or of one object, at the gateway."""
        return f"/v1/{self.plural}" if name is None else f"/v1/{self.plural}/{name}"


KINDS = (
    Kind("RolloutJob", "rolloutjobs", "rj"),
    Kind("RolloutPool", "rolloutpools", "rpool"),
    Kind("LLMPool", "llmpools", "llmp"),
    Kind("Pod", "pods", "po"),
)
JOB = KINDS[0]
_BY_NAME = {
    name: kind
    for kind in KINDS
    for name in (kind.plural, kind.plural.removesuffix("s"), kind.short_name)
}


def find_kind(word: str) -> Kind:
    """The kind that `word` names: its plural, singular or short name, in any case.

    Raises:
        CliError: There is none; the message lists the valid names.
    """
    kind = _BY_NAME.get(word.lower())
    if kind is None:
        valid = ", ".join(f"{k.plural} ({k.short_name})" for k in KINDS)
        msg = f"unknown kind {word!r}; valid kinds: {valid}"
        raise CliError(msg, INVALID)
    return kind


def parse_target(kind: str, name: str | None = None) -> tuple[Kind, str | None]:
    """Read `KIND NAME`, `KIND/NAME` or `KIND`.

    Raises:
        CliError: The kind is unknown, or a name is given twice.
    """
    word, slash, inner = kind.partition("/")
    if slash and name is not None:
        msg = f"{kind!r} already has a name; leave out {name!r}"
        raise CliError(msg, INVALID)
    return find_kind(word), (inner or None) if slash else name


def parse_object(kind: str, name: str | None = None) -> tuple[Kind, str]:
    """Read `KIND NAME` or `KIND/NAME`.

    Raises:
        CliError: The kind is unknown, or the name is missing.
    """
    found, object_name = parse_target(kind, name)
    if object_name is None:
        msg = f"a name is missing: {kind}/NAME"
        raise CliError(msg, INVALID)
    return found, object_name
