"""The commands of ``tenantry`` that come with the kit: one machine, an installation, and single events."""

from __future__ import annotations

from tenantry.model.descriptor import Command

COMMANDS = (
    Command("up", "tenantry.kit.up", "Run everything on this machine, in the foreground."),
    Command("demo", "tenantry.kit.demo", "Act out the story of a project: each command, and what happened."),
    Command("console", "tenantry.kit.console", "The map as a page that follows the cluster, on this machine only."),
    Command("test", "tenantry.kit.test", "Run tests of a configuration, charts and policies, written in YAML."),
    Command("cluster", "tenantry.kit.cluster", "A Kubernetes control plane on this machine."),
    Command("invoke", "tenantry.kit.invoke", "Send one event to a function; show the verdict and the writes."),
    Command("guards", "tenantry.kit.guards", "Say whom the admission policies for everybody would refuse today."),
    Command("uninstall", "tenantry.kit.uninstall", "Take Tenantry out of a cluster; what people made stays."),
)
