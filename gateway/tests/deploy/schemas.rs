//! Schemas and linters find nothing, and would find what is wrong.

use super::checked::{changed, shipped};

#[test]
fn every_file_is_valid() {
    assert_eq!(shipped().faults, Vec::<String>::new());
    let kinds = |documents: &[serde_json::Value]| -> Vec<String> {
        let kind = |one: &serde_json::Value| one["kind"].as_str().map(str::to_owned);
        documents.iter().filter_map(kind).collect()
    };
    for kind in [
        "ConfigMap",
        "StatefulSet",
        "Deployment",
        "Service",
        "PodDisruptionBudget",
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
    ] {
        assert!(kinds(&shipped().base).iter().any(|is| is == kind), "{kind}");
    }
    assert!(shipped().nats.len() > shipped().base.len());
}

/// A file, what is changed in it, and what has to be said of that.
type Change = (&'static str, &'static str, &'static str, &'static str);

#[test]
fn what_is_wrong_is_found_and_named() {
    let engine = "kubernetes/base/engine.yaml";
    let cases: &[Change] = &[
        // Unknown fields, at the top and deep inside.
        (
            engine,
            "clusterIP:",
            "clusterIp:",
            "'clusterIp' was unexpected",
        ),
        (
            engine,
            "readinessProbe:",
            "readynessProbe:",
            "'readynessProbe' was unexpected",
        ),
        (
            engine,
            "failureThreshold: 120",
            "failureTreshold: 120",
            "'failureTreshold' was unexpected",
        ),
        (
            "kubernetes/base/frontend.yaml",
            "{seconds: 5}",
            "{second: 5}",
            "'seconds' is a required property",
        ),
        (
            "kubernetes/base/autoscaling.yaml",
            "averageValue",
            "averageVal",
            "'averageVal' was unexpected",
        ),
        (
            "kubernetes/nats/nats.yaml",
            "strategy:",
            "strategie:",
            "'strategie' was unexpected",
        ),
        // Types, what is missing, kinds and versions.
        (
            engine,
            "port: 8100, targetPort",
            "port: \"x\", targetPort",
            "is not of type 'integer'",
        ),
        (
            engine,
            "  serviceName: engine\n  # No",
            "  # No",
            "'serviceName' is a required property",
        ),
        (
            "kubernetes/base/autoscaling.yaml",
            "autoscaling/v2",
            "autoscaling/v3",
            "autoscaling/v3",
        ),
        (
            "kubernetes/base/policy.yaml",
            "kind: ConfigMap",
            "kind: ConfigMop",
            "ConfigMop",
        ),
        // Keys that stand twice, of which YAML would take one.
        (
            engine,
            "restartPolicy: Always",
            "restartPolicy: Always\n          restartPolicy: Always",
            "twice: restartPolicy",
        ),
        // What kustomize is told.
        (
            "kubernetes/base/kustomization.yaml",
            "  - policy.yaml\n",
            "",
            "policy.yaml is not in it",
        ),
        (
            "kubernetes/nats/worker.yaml",
            "/containers/0/args/-",
            "/containers/7/args/-",
            "worker.yaml",
        ),
        (
            "kubernetes/nats/kustomization.yaml",
            "name: engine",
            "name: engin",
            "is not one object",
        ),
        (
            "kubernetes/nats/nats.yaml",
            "jetstream {",
            "jetstream [",
            "nats-server",
        ),
        (
            "kubernetes/nats/nats.yaml",
            "max_file_store: 256MB",
            "max_file_stores: 256MB",
            "max_file_stores",
        ),
        // Compose.
        (
            "compose.yaml",
            "mem_limit",
            "memlimit",
            "'memlimit' was unexpected",
        ),
        (
            "compose.yaml",
            "driver: nvidia",
            "drivers: nvidia",
            "'drivers' does not match",
        ),
        ("compose.nats.yaml", "--store_dir", "--storedir", "storedir"),
        (
            "compose.nats.yaml",
            "tmpfs",
            "tempfs",
            "'tempfs' was unexpected",
        ),
        // The image.
        ("Dockerfile", "USER 65532:65532", "USER root", "runs as"),
        ("Dockerfile", "rust:1.95-bookworm", "rust", "DL3006"),
        ("Dockerfile", "COPY . .", "COPI . .", "DL1000"),
    ];
    let changes: Vec<_> = cases
        .iter()
        .map(|(file, from, to, _)| (*file, *from, *to))
        .collect();
    for (checked, (file, from, to, said)) in changed(&changes).iter().zip(cases) {
        let found = checked.faults.iter().any(|fault| fault.contains(said));
        assert!(found, "{file}, {from:?} as {to:?}: {:#?}", checked.faults);
    }
}

/// The compiler in the image is the one that the workspace asks for.
#[test]
fn the_image_is_built_with_the_compiler_that_is_asked_for() {
    let workspace = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let workspace = std::fs::read_to_string(workspace).expect("a workspace");
    let asked = workspace
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = \""));
    let asked = asked.expect("a version").trim_end_matches('"');
    let dockerfile = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/Dockerfile");
    let dockerfile = std::fs::read_to_string(dockerfile).expect("a Dockerfile");
    assert!(
        dockerfile.contains(&format!("FROM rust:{asked}-")),
        "{asked}"
    );
}
