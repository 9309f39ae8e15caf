"""HTML reports from templates that a package carries in its ``templates`` directory.

Every value is escaped, because names of links, topics and people are input, and secrets are hidden. Nothing else in the product builds HTML.
"""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from replicator.redaction import redact_known


def render_html(package: str, template: str, /, **values: Any) -> str:  # noqa: ANN401  a template's own
    """One page; the same values give the same text.

    Args:
        package: the package whose ``templates`` directory is meant.
        template: file name of the template.
        values: what the template shows; a name that it uses and that is missing is an error.
    """
    return redact_known(_environment(package).get_template(template).render(values))


@cache
def _environment(package: str) -> Environment:
    found = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters["whole"] = _whole
    return found


def _whole(number: int) -> str:
    """With separators of thousands."""
    return f"{number:,}"
