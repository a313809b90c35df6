"""release-provisioning: a ProjectHelmChart becomes a release namespace, a HelmChart and a HelmRelease."""

NAME = "release-provisioning"
