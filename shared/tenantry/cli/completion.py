"""``tenantry completion``: the script that a shell reads, for names of commands, options, and what is in the cluster."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_TENANTRY_COMPLETE"
"""By which the script asks: click's own name for it."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    It completes commands, options, and names of owners and namespaces from the cluster of your kubeconfig.  It waits for the
    cluster for a second at most; where that cannot be asked there are no names, and nothing is said.

    \b
    Examples:
      tenantry completion bash > ~/.local/share/bash-completion/completions/tenantry
      tenantry completion zsh > "${fpath[1]}/_tenantry"
      tenantry completion fish > ~/.config/fish/completions/tenantry.fish
    """
    from tenantry.cli import main

    of_shell = get_completion_class(shell)
    assert of_shell is not None
    made = of_shell(main, {}, "tenantry", VARIABLE)
    click.echo(made.source_template % made.source_vars())  # not `source`: it asks the bash of this machine for its version
