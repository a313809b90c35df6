"""Jobs: HelmChart and HelmChartConfig become a Job that runs Helm; the unit is the Helm controller of an installation.

Owner: ``chart/<namespace>/<name>``, a HelmChart of the system namespace.
"""
