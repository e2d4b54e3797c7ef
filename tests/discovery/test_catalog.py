"""How a name finds its resource among all that a server serves."""

from __future__ import annotations

import pytest

from dyninformer.discovery.catalog import Catalog, carried_over
from dyninformer.discovery.resources import ResolvedResource, ServedVersion
from dyninformer.errors import AmbiguousResourceError
from dyninformer.resource import GroupVersionResource


def served(group: str, version: str, *resources: tuple[str, str, str]) -> ServedVersion:
    """A version with resources of ``plural, kind, short names``."""
    return ServedVersion(
        group,
        version,
        tuple(
            ResolvedResource(
                GroupVersionResource(group, version, plural),
                kind,
                True,
                kind.lower(),
                short_names=tuple(short.split()),
                verbs=("list", "watch"),
            )
            for plural, kind, short in resources
        ),
    )


CATALOG = Catalog(
    [
        served(
            "",
            "v1",
            ("pods", "Pod", "po"),
            ("services", "Service", "svc"),
            ("events", "Event", "ev"),
        ),
        served("apps", "v1", ("deployments", "Deployment", "deploy")),
        served("events.k8s.io", "v1", ("events", "Event", "ev")),
        served("networking.k8s.io", "v1", ("ingresses", "Ingress", "ing")),
        served(
            "cert-manager.io",
            "v1",
            ("certificates", "Certificate", "cert certs"),
            ("issuers", "Issuer", ""),
        ),
        served(
            "cert-manager.io",
            "v1alpha2",
            ("certificates", "Certificate", "cert certs"),
            ("bundles", "Bundle", ""),
        ),
        served(
            "networking.internal.knative.dev",
            "v1",
            ("ingresses", "Ingress", "king"),
            ("certificates", "Certificate", "kcert"),
        ),
        served("serving.knative.dev", "v1", ("services", "Service", "kservice ksvc")),
        served("pods.example.com", "v1", ("oddities", "Pods", "pods")),
    ]
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pods", "pods.v1"),
        ("pod", "pods.v1"),
        ("Pod", "pods.v1"),
        ("POD", "pods.v1"),
        ("po", "pods.v1"),
        ("pods.v1", "pods.v1"),
        ("pods.v1.", "pods.v1"),
        ("v1/pods", "pods.v1"),
        ("v1/Pod", "pods.v1"),
        ("issuers", "issuers.v1.cert-manager.io"),
        ("Issuer", "issuers.v1.cert-manager.io"),
        ("cert", "certificates.v1.cert-manager.io"),
        ("certificates.cert-manager.io", "certificates.v1.cert-manager.io"),
        ("Certificate.cert-manager.io", "certificates.v1.cert-manager.io"),
        ("cert.cert-manager.io", "certificates.v1.cert-manager.io"),
        ("certificates.Cert-Manager.io", "certificates.v1.cert-manager.io"),
        ("certificates.v1alpha2.cert-manager.io", "certificates.v1alpha2.cert-manager.io"),
        ("cert-manager.io/v1alpha2/certificates", "certificates.v1alpha2.cert-manager.io"),
        ("cert-manager.io/v1alpha2/Certificate", "certificates.v1alpha2.cert-manager.io"),
        ("cert-manager.io/certificates", "certificates.v1.cert-manager.io"),
        ("bundles", "bundles.v1alpha2.cert-manager.io"),
        ("deployments", "deployments.v1.apps"),
        ("kservice", "services.v1.serving.knative.dev"),
    ],
)
def test_every_spelling_finds_its_resource(text: str, found: str) -> None:
    """Plural, singular, kind and short name, alone or with group and version in any form."""
    resource = CATALOG.find(text)
    assert resource is not None
    assert str(resource.gvr) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("services", "services.v1"),
        ("Service", "services.v1"),
        ("events", "events.v1"),
        ("ev", "events.v1"),
        ("ingresses", "ingresses.v1.networking.k8s.io"),
    ],
)
def test_kubernetes_own_resources_go_before_others(text: str, found: str) -> None:
    """As in kubectl: the core group first, then the groups of Kubernetes itself."""
    resource = CATALOG.find(text)
    assert resource is not None
    assert str(resource.gvr) == found


def test_a_plural_goes_before_a_short_name() -> None:
    """A CRD cannot take a name over by calling it its short name."""
    resource = CATALOG.find("pods")
    assert resource is not None
    assert resource.gvr.group == ""


def test_a_name_in_capitals_is_a_kind_first() -> None:
    """Though it is another resource's plural in lower case."""
    resource = CATALOG.find("Pods")
    assert resource is not None
    assert str(resource.gvr) == "oddities.v1.pods.example.com"


@pytest.mark.parametrize("text", ["certificates", "certificate", "Certificate", "CERTIFICATES"])
def test_a_name_of_several_groups_is_ambiguous(text: str) -> None:
    """The error names each full spelling."""
    with pytest.raises(AmbiguousResourceError) as caught:
        CATALOG.find(text)
    assert str(caught.value) == (
        f"{text!r} is the name of several resources: certificates.cert-manager.io and "
        "certificates.networking.internal.knative.dev. "
        "Say which, for example 'certificates.cert-manager.io'."
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("certifcates.cert-manager.io", "did you mean certificates.cert-manager.io?"),
        ("certificates.certmanager.io", "did you mean certificates.cert-manager.io"),
        ("issuer.v1", "did you mean issuers.cert-manager.io?"),
        ("isuer", "did you mean issuers.cert-manager.io?"),
        ("apps/v1/deploments", "did you mean deployments.apps?"),
        ("issuers.v2.cert-manager.io", "It serves issuers.v1.cert-manager.io."),
        ("cert-manager.io/v2/cert", "It serves certificates.v1.cert-manager.io and "),
        ("thing", "If its CRD is not installed yet"),
        ("gizmos.ex.io", "If its CRD is not installed yet, name it in full"),
        ("gizmos.v1.ex.io", "Its CRD may not be installed yet."),
        ("", "'' cannot be the name of a resource: expected a form like 'cert'"),
        ("a/b/c/d", "expected a form like"),
        ("//pods", "expected a form like"),
        (".", "expected a form like"),
    ],
)
def test_a_miss_says_what_is_close(text: str, said: str) -> None:
    """The same name elsewhere, what is spelt alike, or which versions there are."""
    assert CATALOG.find(text) is None
    assert said in CATALOG.miss(text)


def test_a_miss_shows_only_the_beginning_of_a_long_name() -> None:
    """And is not long in coming."""
    assert len(CATALOG.miss("x" * 1_000_000)) < 1_200


def test_a_miss_names_the_groups_that_could_not_be_asked() -> None:
    """Those of the group that was meant, or all if any could have it."""
    stale = ServedVersion("metrics.k8s.io", "v1beta1", problem="stale", known=False)
    catalog = Catalog([*CATALOG.served, stale])
    named = "These could not be asked, and may have it: metrics.k8s.io/v1beta1 (stale)."
    assert named in catalog.miss("gizmos")
    assert named in catalog.miss("nodes.metrics.k8s.io")
    assert "could not be asked" not in catalog.miss("gizmos.ex.io")


def test_each_resource_is_listed_once_in_its_preferred_version() -> None:
    """And with all its versions where those are asked for."""
    listed = [str(each.gvr) for each in CATALOG.resources() if each.gvr.group == "cert-manager.io"]
    assert listed == [
        "certificates.v1.cert-manager.io",
        "issuers.v1.cert-manager.io",
        "bundles.v1alpha2.cert-manager.io",
    ]
    everything = [str(each.gvr) for each in CATALOG.all_versions()]
    assert "certificates.v1alpha2.cert-manager.io" in everything


def test_what_was_known_of_a_broken_group_is_kept() -> None:
    """A version of which nothing can be learned now has the resources it had before."""
    broken = ServedVersion("apps", "v1", problem="it answers 503", known=False)
    unheard = ServedVersion("new.io", "v1", problem="it answers 503", known=False)
    catalog = Catalog(carried_over([broken, unheard], CATALOG))
    assert [str(each.gvr) for each in catalog.resources()] == ["deployments.v1.apps"]
    assert "apps/v1 (it answers 503)" in catalog.miss("gizmos")
