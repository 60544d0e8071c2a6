"""Reads folders like `gateway/deploy`, checks their files against schemas, and prints
what is in them as JSON, a list of one object a folder:

    faults      what is wrong, a sentence each
    base, nats  Kubernetes' objects, without and with NATS
    compose, compose_nats   Compose's model, without and with NATS
    adapter     the values of prometheus-adapter

Schemas come with the packages of requirements.txt; nothing is asked of the network.
"""

import functools
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import check_jsonschema.builtin_schemas
import dockerfile_parse
import jsonpatch
import jsonschema
import kubernetes_validate
import yaml

# The oldest Kubernetes that has all that the manifests use, and a new one.
KUBERNETES = ["1.30", "1.34"]
BIN = pathlib.Path(sys.executable).parent
# Passwords as the comment in nats/kustomization.yaml makes them.
PASSWORDS = ["p0", "p12345678", "p1e5"]


class Strict(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """YAML in which a key that stands twice is an error."""

    def construct_mapping(self, node, deep=False):
        # `<<` may hold keys again: it comes before them.
        keys = [self.construct_object(key, deep=True) for key, _ in node.value
                if key.tag != "tag:yaml.org,2002:merge"]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.constructor.ConstructorError(
                None, None, f"twice: {', '.join(map(str, twice))}", node.start_mark)
        return super().construct_mapping(node, deep)


def load(file):
    return [one for one in yaml.load_all(file.read_text(), Strict) if one is not None]


def name(document):
    return f"{document['kind']} {document['metadata']['name']}"


def where(error):
    """An error's place, and those of the branches that it had to choose from."""
    path = ".".join(map(str, error.absolute_path))
    inner = "".join(f"; {where(one)}" for one in error.context or [])
    return f"{path}: {error.message}{inner}"


def kustomized(folder, faults):
    """What `kubectl kustomize` makes of a folder, of what is used here."""
    (described,) = load(folder / "kustomization.yaml")
    for key in described.keys() - {"apiVersion", "kind", "resources", "patches"}:
        faults.append(f"{folder.name}/kustomization.yaml: {key} is not known to this check")
    documents = []
    for resource in described["resources"]:
        path = folder / resource
        if not path.exists():
            faults.append(f"{folder.name}/kustomization.yaml: there is no {resource}")
        elif path.is_dir():
            documents += kustomized(path, faults)
        else:
            documents += load(path)
    patches = described.get("patches", [])
    for patch in patches:
        (operations,) = load(folder / patch["path"])
        target = patch["target"]
        chosen = [index for index, one in enumerate(documents)
                  if name(one) == f"{target['kind']} {target['name']}"]
        if len(chosen) != 1 or len(target) != 2:
            faults.append(f"{folder.name}/{patch['path']}: {target} is not one object")
            continue
        try:
            documents[chosen[0]] = jsonpatch.apply_patch(documents[chosen[0]], operations)
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
            faults.append(f"{folder.name}/{patch['path']}: {error}")
    used = {"kustomization.yaml", *described["resources"], *(one["path"] for one in patches)}
    for file in folder.glob("*.yaml"):
        if file.name not in used:
            faults.append(f"{folder.name}/kustomization.yaml: {file.name} is not in it")
    return documents


@functools.cache
def invalid(document, version):
    """What a schema has against an object."""
    try:
        kubernetes_validate.validate(json.loads(document), version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"
    except kubernetes_validate.SchemaNotFoundError as error:
        return error.message


def check_kubernetes(documents, faults):
    names = [name(document) for document in documents]
    for twice in {one for one in names if names.count(one) > 1}:
        faults.append(f"{twice} is there twice")
    for document in documents:
        for version in KUBERNETES:
            said = invalid(json.dumps(document), version)
            if said:
                faults.append(f"{name(document)}, Kubernetes {version}: {said}")


def agree_with_kubectl(folder, documents, faults):
    """Where kubectl is installed, its kustomize says what was made of the folder."""
    if not shutil.which("kubectl"):
        print("kubectl is missing: its kustomize is not compared", file=sys.stderr)
        return
    said = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True)
    if said.returncode != 0:
        faults.append(f"kubectl kustomize {folder.name}: {said.stderr}")
        return
    theirs = {name(one): one for one in yaml.load_all(said.stdout, Strict)}
    if theirs != {name(one): one for one in documents}:
        faults.append(f"kubectl kustomize {folder.name}: other than what is checked here")


def check_compose(model, file, faults):
    schema = check_jsonschema.builtin_schemas.get_builtin_schema("vendor.compose-spec")
    for error in jsonschema.Draft202012Validator(schema).iter_errors(model):
        faults.append(f"{file}: {where(error)}")


def merged(base, override, faults):
    """What Compose makes of the two: commands replaced, services added."""
    services = dict(base["services"])
    for key in override.keys() - {"services"}:
        faults.append(f"compose.nats.yaml: {key} is not known to this check")
    for service, changes in override["services"].items():
        if service in services and changes.keys() != {"command"}:
            faults.append(f"compose.nats.yaml: of {service} more than its command changes")
        services[service] = {**services.get(service, {}), **changes}
    return {**base, "services": services}


def check_dockerfile(folder, faults):
    file = folder / "Dockerfile"
    found, trouble = hadolint(file.read_text())
    if trouble:
        faults.append(f"hadolint: {trouble}")
    for one in json.loads(found or "[]"):
        faults.append(f"Dockerfile:{one['line']}: {one['code']}: {one['message']}")
    with tempfile.TemporaryDirectory() as scratch:
        parser = dockerfile_parse.DockerfileParser(path=scratch)
        parser.content = file.read_text()
        steps = [(one["instruction"], one["value"]) for one in parser.structure]
    last = max(index for index, step in enumerate(steps) if step[0] == "FROM")
    users = [value for what, value in steps[last:] if what == "USER"]
    if not users or not all(part.isdigit() and int(part) for part in users[-1].split(":")):
        faults.append(f"Dockerfile: runs as {users[-1:]}, and not as a number other than 0")
    built = [value for what, value in steps if what == "RUN" and "cargo build" in value]
    if len(built) != 1 or "--locked" not in built[0]:
        faults.append("Dockerfile: no cargo build with --locked")


def check_nats(documents, model, faults):
    """What the server itself says to its configuration."""
    conf = next(one for one in documents if name(one) == "ConfigMap nats")["data"]["nats.conf"]
    runs = [(conf, [], {"NATS_PASSWORD": password}) for password in PASSWORDS]
    # Without a file it would not end, but serve.
    runs.append(("port: 4222\n", model["services"]["nats"]["command"], {}))
    for conf, arguments, environment in runs:
        said = nats_says(conf, tuple(arguments), tuple(environment.items()))
        if said:
            faults.append(f"nats-server {arguments}: {said}")


@functools.cache
def nats_says(conf, arguments, environment):
    """What is wrong, as the server sees it."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(conf)
        file.flush()
        said = subprocess.run(
            [BIN / "nats-server", *arguments, "--config=" + file.name, "-t"],
            env=dict(environment), capture_output=True, text=True)
    said = said.stderr + said.stdout
    # A flag that it does not know is no failure to it.
    return None if "is valid" in said else said


@functools.cache
def hadolint(dockerfile):
    said = subprocess.run([BIN / "hadolint", "--format", "json", "-"], input=dockerfile,
                          capture_output=True, text=True)
    return said.stdout, said.stderr


def checked(folder, alone):
    faults, all = [], {}
    try:
        for overlay in ["base", "nats"]:
            path = folder / "kubernetes" / overlay
            all[overlay] = kustomized(path, faults)
            check_kubernetes(all[overlay], faults)
            if alone:
                agree_with_kubectl(path, all[overlay], faults)
        (all["compose"],) = load(folder / "compose.yaml")
        (override,) = load(folder / "compose.nats.yaml")
        all["compose_nats"] = merged(all["compose"], override, faults)
        check_compose(all["compose"], "compose.yaml", faults)
        check_compose(override, "compose.nats.yaml", faults)
        (all["adapter"],) = load(folder / "kubernetes" / "prometheus-adapter" / "values.yaml")
        check_nats(all["nats"], override, faults)
        check_dockerfile(folder, faults)
    except (yaml.YAMLError, KeyError, StopIteration, TypeError, ValueError) as error:
        faults.append(f"{folder} could not be read: {type(error).__name__}: {error}")
    return {"faults": faults, **all}


folders = [pathlib.Path(folder) for folder in sys.argv[1:]]
# kubectl is slow to start: many folders do without it.
print(json.dumps([checked(folder, len(folders) == 1) for folder in folders]))
