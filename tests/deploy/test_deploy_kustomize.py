"""The kustomizations list what exists, every file is listed, and what one object names another one defines."""

from __future__ import annotations

from typing import Any

import manifests
from manifests import Document, Kustomization, pod_templates

from tenantry.local.fences import fence_files

# What a stock installation of Knative brings. Kind, namespace, name.
STOCK = {
    ("ConfigMap", "knative-eventing", "config-br-default-channel"),
    ("ConfigMap", "knative-eventing", "kafka-broker-config"),
}
PARTS = {"crds", "base", "config", "dead-letters", "fences", "guards", "triggers", *manifests.services()}
LEFT_OUT = {"knative/overlays/without-guards": {"guards"}}
"""Of overlays that are there to leave a part out, which."""


def folder(path: str) -> list[Document]:
    return manifests.resolve(manifests.ROOT / path)


def test_listed_files_exist(kustomization: Kustomization) -> None:
    """Whatever a kustomization lists exists; a listed folder has a kustomization of its own."""
    assert kustomization.resources or kustomization.generated()
    for path in [*kustomization.resources, *kustomization.others]:
        assert path.exists(), path
        if path.is_dir():
            assert (path / "kustomization.yaml").is_file()
        else:
            # kustomize refuses files outside of the folder.
            assert path.is_relative_to(kustomization.path.parent), path


def test_every_file_is_listed() -> None:
    """No YAML file lies about that nothing installs, but fences: what is installed is made of them."""
    listed = {path for k in manifests.kustomizations() for path in [k.path, *k.resources, *k.others]}

    assert {path for path in manifests.files() if path not in listed} == set(fence_files().values())


def test_every_way_to_install_has_all_parts() -> None:
    """The default installation and each overlay include every part and every function, but for what one is there to leave out."""
    for root in manifests.WAYS:
        included = {path.name for path in manifests.read_kustomization(manifests.ROOT / root).resources if path.is_dir()}

        assert included == PARTS - LEFT_OUT.get(root, set()), root


def test_objects_are_defined_once(installation: list[Document]) -> None:
    """No object is defined twice in one installation."""
    keys = [(d.group, d.kind, d.namespace, d.name) for d in installation]

    assert len(keys) == len(set(keys))


def test_everything_lives_in_one_namespace(documents: list[Document]) -> None:
    """Every namespaced object names the namespace itself, so a file can be applied alone."""
    for document in documents:
        own = {"tenantry-system"}
        if document.kind in ("Role", "RoleBinding", "NetworkPolicy", "ResourceQuota", "LimitRange"):
            own |= {"cattle-helm-system"}  # what runs Helm lives where HelmCharts do
        if document.path.parent.name == "eventing-network":
            own = {"knative-eventing"}
        assert document.namespace in ({""} if document.kind in manifests.CLUSTER_SCOPED else own), str(document)


def references(body: Any, namespace: str) -> set[tuple[str, str, str]]:
    """Kind, namespace and name of what an object names: refs, brokers, service accounts, ConfigMaps, roles."""
    found: set[tuple[str, str, str]] = set()
    if isinstance(body, list):
        for item in body:
            found |= references(item, namespace)
    elif isinstance(body, dict):
        for key, value in body.items():
            if key in {"ref", "config", "roleRef"} and isinstance(value, dict) and "kind" in value:
                scope = value.get("namespace", namespace)
                if key == "roleRef":
                    scope = namespace if value["kind"] == "Role" else ""
                found.add((value["kind"], scope, value["name"]))
            elif key == "subjects":
                # Those of a FlowSchema are patterns.
                found |= {(s["kind"], s["namespace"], s["name"]) for s in value if "name" in s}
            elif key == "broker" and isinstance(value, str):
                found.add(("Broker", namespace, value))
            elif key == "serviceAccountName":
                found.add(("ServiceAccount", namespace, value))
            elif key == "configMap":
                found.add(("ConfigMap", namespace, value["name"]))
            else:
                found |= references(value, namespace)
    return found


def test_what_is_named_is_defined(installation: list[Document]) -> None:
    """Each subscriber, sink, broker, account, ConfigMap and role that is named is defined or comes with Knative."""
    defined = {(d.kind, d.namespace, d.name) for d in installation} | STOCK
    for document in (found for found in installation if found.kind != "CustomResourceDefinition"):
        assert references({"spec": document.body}, document.namespace) <= defined, str(document)


def test_references_are_found(installed: list[Document]) -> None:
    """The search for references sees a Trigger's broker, subscriber and dead-letter sink."""
    trigger = next(d for d in installed if d.kind == "Trigger" and d.name.startswith("namespace-registration-"))

    assert references(trigger.body, trigger.namespace) == {
        ("Broker", "tenantry-system", "tenantry"),
        ("Service", "tenantry-system", "namespace-registration"),
        ("Service", "tenantry-system", "dead-letters"),
    }


def test_images_are_named_once_and_tagged_by_kustomize(documents: list[Document], kustomize: list[str]) -> None:
    """Our images carry no tag in the files and get the same one from kustomize everywhere."""
    ours = [c["image"] for _, t in pod_templates(documents) for c in t["spec"]["containers"] if "tenantry" in c["image"]]
    for root in manifests.WAYS:
        rendered = manifests.render(manifests.ROOT / root, kustomize)
        images = {c["image"] for _, t in pod_templates(rendered) for c in t["spec"]["containers"] if "tenantry" in c["image"]}

        assert all(":" not in image for image in ours)
        assert {image.rpartition(":")[0] for image in images} == set(ours), root
        assert len({image.rpartition(":")[2] for image in images}) == 1, root


def test_kustomize_agrees_with_the_files(kustomize: list[str], installed: list[Document]) -> None:
    """What kustomize renders is what the files say, but for image tags and the hash in the configuration's name."""

    def key(document: Document) -> tuple[str, str, str]:
        name = "tenantry-config" if document.kind == "ConfigMap" else document.name
        return document.kind, document.namespace, name

    rendered = manifests.render(manifests.ROOT / "knative", kustomize)

    assert sorted(map(key, rendered)) == sorted(map(key, installed))


def test_a_new_configuration_makes_a_new_revision(kustomize: list[str]) -> None:
    """The name of the mounted ConfigMap depends on its content, in the default installation and in each overlay."""
    for root in manifests.WAYS:
        rendered = manifests.render(manifests.ROOT / root, kustomize)
        (config,) = [d.name for d in rendered if d.kind == "ConfigMap"]
        mounted = {
            volume["configMap"]["name"]
            for _, template in pod_templates(rendered)
            for volume in template["spec"].get("volumes", [])
            if "configMap" in volume
        }

        assert config.startswith("tenantry-config-")
        assert mounted == {config}, root
