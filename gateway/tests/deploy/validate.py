"""Checks manifests against Kubernetes' own schemas and the compose file against its
specification, both of them bundled with their packages.

    validate.py kubernetes FILE...
    validate.py compose FILE
"""

import sys

import kubernetes_validate
import yaml
from compose_spec import ComposeSpecification, Service

# The newest of the bundled schemas is not what clusters run.
VERSION = "1.30"


def kubernetes(files):
    count = 0
    for file in files:
        with open(file) as text:
            for resource in yaml.safe_load_all(text):
                kubernetes_validate.validate(resource, VERSION, strict=True)
                count += 1
    return f"{count} resources"


def known(said, model, where):
    fields = model.model_fields.items()
    names = {name for field, of in fields for name in (field, of.alias)}
    unknown = [key for key in said if key not in names and not key.startswith("x-")]
    if unknown:
        sys.exit(f"{where}: {unknown} is not known")


def compose(files):
    for file in files:
        with open(file) as text:
            said = yaml.safe_load(text)
        ComposeSpecification.model_validate(said)
        # The model passes over what it does not know.
        known(said, ComposeSpecification, file)
        for name, service in said["services"].items():
            known(service, Service, name)
    return "a composition"


print({"kubernetes": kubernetes, "compose": compose}[sys.argv[1]](sys.argv[2:]))
