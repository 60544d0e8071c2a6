//! Numbers and names that have to agree with each other do, and would be found if not.

use super::checked::{Checked, changed, shipped};
use super::pods::Scene;
use super::{containers, objects};

fn all(checked: &Checked) -> Vec<String> {
    let mut all = objects::faults(&checked.base, &checked.adapter);
    all.extend(objects::faults(&checked.nats, &checked.adapter));
    all.extend(containers::faults(&Scene::compose(&checked.compose)));
    all.extend(containers::faults(&Scene::compose(&checked.compose_nats)));
    all
}

#[test]
fn numbers_and_names_agree() {
    assert_eq!(all(shipped()), Vec::<String>::new());
}

/// A file, what is changed in it, and what has to be said of that.
type Change = (&'static str, &'static str, &'static str, &'static str);

#[test]
fn what_does_not_agree_is_found() {
    let (engine, frontend) = (
        "kubernetes/base/engine.yaml",
        "kubernetes/base/frontend.yaml",
    );
    let scaling = "kubernetes/base/autoscaling.yaml";
    let cases: &[Change] = &[
        (
            engine,
            "Seconds: 150",
            "Seconds: 120",
            "ends after 120 s and needs 120.5 s",
        ),
        (
            engine,
            "Seconds: 150",
            "Seconds: 125",
            "leaves its engine 5 s to end",
        ),
        (
            frontend,
            "Seconds: 140",
            "Seconds: 125",
            "ends after 125 s and needs 125.5 s",
        ),
        (
            engine,
            "          restartPolicy: Always\n",
            "",
            "is stopped while its worker drains",
        ),
        (
            engine,
            "--host=127.0.0.1",
            "--host=0.0.0.0",
            "without the gate",
        ),
        (
            engine,
            "--max-num-seqs=256",
            "--max-num-seqs=128",
            "is not its engine's",
        ),
        (
            engine,
            "--port=8000",
            "--port=8001",
            "nobody is at http://127.0.0.1:8000",
        ),
        (
            engine,
            "timeoutSeconds: 3\n",
            "timeoutSeconds: 2\n",
            "given up before it is known",
        ),
        (
            engine,
            "memory: 512Mi}",
            "memory: 128Mi}",
            "engine/worker: may use",
        ),
        (
            engine,
            "configMap: {name: policy}",
            "configMap: {name: polici}",
            "no file of --policy",
        ),
        (
            engine,
            "readOnlyRootFilesystem: true",
            "readOnlyRootFilesystem: false",
            "readOnlyRootFilesystem",
        ),
        (
            engine,
            "targetPort: http",
            "targetPort: htpp",
            "no pod has the port",
        ),
        (
            engine,
            "selector: {app.kubernetes.io/name: engine}",
            "selector: {app.kubernetes.io/name: engin}",
            "selects no pods",
        ),
        (
            frontend,
            "engine-3.engine",
            "engine-6.engine",
            "nobody is at http://engine-6.engine:8100",
        ),
        (
            frontend,
            "            - --worker=http://engine-5.engine:8100\n",
            "",
            "names 5 engines of 6",
        ),
        (
            frontend,
            "memory: 1Gi}",
            "memory: 512Mi}",
            "frontend/frontend: may use",
        ),
        (
            scaling,
            "averageValue: 700m",
            "averageValue: 950m",
            "begins at 1.045",
        ),
        (
            scaling,
            "name: tidegate_pressure",
            "name: tidegate_presure",
            "no rule of the adapter",
        ),
        (
            scaling,
            "minReplicas: 2",
            "minReplicas: 1",
            "may go at once",
        ),
        (
            scaling,
            "kind: StatefulSet, name: engine",
            "kind: StatefulSet, name: engin",
            "nothing to scale",
        ),
        (
            "kubernetes/base/network-policy.yaml",
            "port: admin",
            "port: admim",
            "no pod has the port",
        ),
        (
            "kubernetes/nats/worker.yaml",
            "name: POD_NAME",
            "name: POD_NAM",
            "nobody gives a value",
        ),
        (
            "kubernetes/nats/frontend.yaml",
            "*.engine:8100",
            "*.engines:8100",
            "does not allow",
        ),
        (
            "compose.yaml",
            "stop_grace_period: 40s",
            "stop_grace_period: 30s",
            "ends after 30 s",
        ),
        (
            "compose.yaml",
            "http://engine-1:8000",
            "http://engine-3:8000",
            "nobody is at http://engine-3:8000",
        ),
        (
            "compose.nats.yaml",
            "--announce-url=http://worker-1:8100",
            "--announce-url=http://worker-1:8101",
            "does not allow",
        ),
    ];
    let changes: Vec<_> = cases
        .iter()
        .map(|(file, from, to, _)| (*file, *from, *to))
        .collect();
    for (checked, (file, from, to, said)) in changed(&changes).iter().zip(cases) {
        let found = all(checked);
        assert!(
            found.iter().any(|fault| fault.contains(said)),
            "{file}, {from:?} as {to:?}: {found:#?} {:#?}",
            checked.faults
        );
    }
}
