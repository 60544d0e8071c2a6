//! Numbers and names that have to agree with each other.

use serde_json::Value;

use super::checked::{Checked, changed, shipped};
use super::pods::{Container, Scene, list, most, named, of_kind, selects, text, workloads};
use super::program;

/// Seconds that a worker takes for its last answers once the time to drain is up.
const LAST_ANSWERS: f64 = 0.5;
/// Seconds that an engine may need to end, after its worker.
const ENGINE_ENDS: f64 = 10.0;
/// Most that a stream and a queued client cost (README), and the program itself.
const STREAM: u64 = 96 << 10;
const QUEUED: u64 = 32 << 10;
const ITSELF: u64 = 64 << 20;
/// Tenths by which Kubernetes lets a metric be off before it does something.
const TOLERANCE: f64 = 1.1;

/// The limits that the program makes of a worker's flags, and of what a simulated engine
/// tells: running, waiting, queued.
fn limits(worker: &Container, engine: Option<&Container>) -> [u64; 3] {
    let mut arguments = vec!["config".to_owned(), "--json".to_owned()];
    let told = engine.filter(|engine| engine.is_tidegate());
    let told = told.and_then(|engine| engine.flag("--max-num-seqs"));
    if let (None, Some(size)) = (worker.flag("--max-num-seqs"), told) {
        arguments.push(format!("--max-num-seqs={size}"));
    }
    for flag in [
        "--max-num-seqs",
        "--dp-ranks",
        "--engine-request-limit",
        "--engine-request-waiting-limit",
        "--request-queue-limit",
    ] {
        arguments.extend(worker.flag(flag).map(|value| format!("{flag}={value}")));
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = program::output(&arguments);
    let shown: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    [
        "engine_request_limit",
        "engine_request_waiting_limit",
        "request_queue_limit",
    ]
    .map(|key| shown["settings"][key]["worker"].as_u64().expect("a limit"))
}

/// What is wrong with containers, wherever they run.
fn faults(scene: &Scene) -> Vec<String> {
    let mut faults = Vec::new();
    for container in &scene.containers {
        let name = format!("{}/{}", container.pod, container.name);
        for arg in container.args.iter().filter(|arg| arg.contains("$(")) {
            faults.push(format!("{name}: nobody gives a value to {arg}"));
        }
        for mount in list(&container.spec["volumeMounts"]) {
            let path = text(&mount["mountPath"]);
            let file = container
                .flag("--policy")
                .is_some_and(|file| file.starts_with(&path));
            if file
                && !container
                    .files
                    .contains_key(container.flag("--policy").unwrap_or(""))
            {
                faults.push(format!("{name}: there is no file of --policy"));
            }
        }
        if container.runs("worker") || container.runs("frontend") {
            let drain = container.number("--drain-timeout", 30.0);
            let needs = container.pause + drain + LAST_ANSWERS;
            if container.grace <= needs {
                let grace = container.grace;
                faults.push(format!("{name}: ends after {grace} s and needs {needs} s"));
            }
        }
        if container.runs("worker") {
            worker_faults(scene, container, &name, &mut faults);
        }
        if container.runs("frontend") {
            for url in container.flags("--worker") {
                let at = url.strip_prefix("http://").unwrap_or(url);
                if scene.find(container, at).is_none() {
                    faults.push(format!("{name}: nobody is at {url}"));
                }
            }
            let announced: Vec<&str> = scene
                .containers
                .iter()
                .filter_map(|one| one.flag("--announce-url"))
                .collect();
            for url in announced {
                let at = url.strip_prefix("http://").unwrap_or(url);
                if scene.find(container, at).is_none() {
                    faults.push(format!("{name}: nobody is at {url}, which is announced"));
                }
                let allowed = container.flags("--allow-workers").join(",");
                let allows = |one: &str| {
                    at == one || one.strip_prefix('*').is_some_and(|end| at.ends_with(end))
                };
                if !allowed.split(',').any(allows) {
                    faults.push(format!("{name}: does not allow {url}"));
                }
            }
            let bodies = (container.number("--buffer-budget", 512.0) as u64) << 20;
            let workers = scene.containers.iter().filter(|one| one.runs("worker"));
            let streams = workers.map(|worker| {
                let [running, _, queued] = limits(worker, engine(scene, worker));
                (running + queued) * worker.copies
            });
            let streams: u64 = streams.sum();
            memory(container, &name, bodies + streams * STREAM, &mut faults);
        }
        if container.spec["resources"]["limits"]["memory"].is_null() && container.around.is_object()
        {
            faults.push(format!("{name}: has no limit of memory"));
        }
    }
    faults
}

fn memory(container: &Container, name: &str, uses: u64, faults: &mut Vec<String>) {
    let (uses, most) = (uses + ITSELF, container.memory.unwrap_or(0));
    if uses > most {
        faults.push(format!("{name}: may use {uses} bytes and has {most}"));
    }
}

/// The engine before which a worker stands.
fn engine<'a>(scene: &'a Scene, worker: &Container) -> Option<&'a Container> {
    let url = worker.flag("--engine-url")?;
    let (pod, port) = scene.find(worker, url.strip_prefix("http://")?)?;
    let listens = |one: &&Container| {
        let at = one.flag("--listen").and_then(|at| at.rsplit_once(':'));
        let listens = one.flag("--port").or(at.map(|(_, port)| port));
        one.pod == pod && !one.runs("worker") && listens == Some(&port.to_string())
    };
    scene.containers.iter().find(listens)
}

fn worker_faults(scene: &Scene, worker: &Container, name: &str, faults: &mut Vec<String>) {
    let url = worker.flag("--engine-url").unwrap_or_default();
    let Some(engine) = engine(scene, worker) else {
        faults.push(format!("{name}: nobody is at {url}"));
        return;
    };
    // Simulated engines tell their size.
    let told = engine
        .is_tidegate()
        .then(|| engine.flag("--max-num-seqs"))
        .flatten();
    let believed = worker.flag("--max-num-seqs").or(told);
    if believed.is_none() || believed != engine.flag("--max-num-seqs") {
        faults.push(format!("{name}: --max-num-seqs is not its engine's"));
    }
    if engine.pod == worker.pod {
        let left = worker.grace - worker.pause - worker.number("--drain-timeout", 30.0);
        if left < ENGINE_ENDS {
            faults.push(format!("{name}: leaves its engine {left} s to end"));
        }
        if engine.flag("--host") != Some("127.0.0.1") {
            faults.push(format!("{}: can be reached without the gate", engine.name));
        }
        let sidecars = list(&worker.around["spec"]["initContainers"]);
        let sidecar = sidecars.iter().find(|one| one["name"] == *engine.name);
        if sidecar.is_none_or(|one| one["restartPolicy"] != "Always") {
            faults.push(format!(
                "{}: is stopped while its worker drains",
                engine.name
            ));
        }
        let answers = worker.spec["readinessProbe"]["timeoutSeconds"].as_f64();
        // As long as the worker itself waits for its engine.
        if answers.unwrap_or(1.0) <= 2.0 {
            faults.push(format!(
                "{name}: its readiness is given up before it is known"
            ));
        }
    }
    let [running, _, queued] = limits(worker, Some(engine));
    let bodies = (worker.number("--buffer-budget", 64.0) as u64) << 20;
    memory(
        worker,
        name,
        running * STREAM + queued * QUEUED + bodies,
        faults,
    );
}

/// What is wrong with Kubernetes' objects.
fn kubernetes_faults(documents: &[Value], adapter: &Value) -> Vec<String> {
    let scene = Scene::kubernetes(documents);
    let mut faults = faults(&scene);
    for container in &scene.containers {
        let name = format!("{}/{}", container.pod, container.name);
        let own = &container.spec["securityContext"];
        let all = &container.around["spec"]["securityContext"];
        for (is, what) in [
            (&all["runAsNonRoot"] == true, "runAsNonRoot"),
            (
                &own["readOnlyRootFilesystem"] == true,
                "readOnlyRootFilesystem",
            ),
            (
                &own["allowPrivilegeEscalation"] == false,
                "allowPrivilegeEscalation",
            ),
            (
                own["capabilities"]["drop"] == serde_json::json!(["ALL"]),
                "capabilities",
            ),
            (
                container.spec["resources"]["requests"]["cpu"].is_string(),
                "requests.cpu",
            ),
        ] {
            if !is {
                faults.push(format!("{name}: {what} is not what it should be"));
            }
        }
    }
    // Whatever selects pods selects some, and names ports that they have.
    for document in documents {
        let name = format!(
            "{} {}",
            text(&document["kind"]),
            text(&document["metadata"]["name"])
        );
        let spec = &document["spec"];
        let (selector, ports): (&Value, Vec<&Value>) = match document["kind"].as_str() {
            Some("Service") => {
                let ports = list(&spec["ports"]).iter().map(|port| &port["targetPort"]);
                (&spec["selector"], ports.collect())
            }
            Some("NetworkPolicy") => {
                let rules = list(&spec["ingress"])
                    .iter()
                    .flat_map(|rule| list(&rule["ports"]));
                (
                    &spec["podSelector"]["matchLabels"],
                    rules.map(|port| &port["port"]).collect(),
                )
            }
            Some("PodDisruptionBudget" | "Deployment" | "StatefulSet") => {
                (&spec["selector"]["matchLabels"], Vec::new())
            }
            _ => continue,
        };
        let chosen: Vec<&Container> = scene
            .containers
            .iter()
            .filter(|one| selects(selector, &one.around["metadata"]["labels"]))
            .collect();
        if chosen.is_empty() {
            faults.push(format!("{name}: selects no pods"));
        }
        for port in ports {
            let has = |one: &&Container| {
                port.as_str()
                    .is_some_and(|port| one.ports.contains_key(port))
            };
            if !chosen.iter().any(has) {
                faults.push(format!("{name}: no pod has the port {port}"));
            }
        }
    }
    for scaler in of_kind(documents, "HorizontalPodAutoscaler") {
        scaler_faults(documents, &scene, scaler, adapter, &mut faults);
    }
    // Every engine that may be started is named, and no other.
    for frontend in scene.containers.iter().filter(|one| one.runs("frontend")) {
        let named = frontend.flags("--worker");
        let most = most(documents, "engine") as usize;
        if !named.is_empty() && named.len() != most {
            faults.push(format!(
                "the frontend names {} engines of {most}",
                named.len()
            ));
        }
    }
    faults
}

fn scaler_faults(
    documents: &[Value],
    scene: &Scene,
    scaler: &Value,
    adapter: &Value,
    faults: &mut Vec<String>,
) {
    let (spec, target) = (&scaler["spec"], &scaler["spec"]["scaleTargetRef"]);
    let name = text(&target["name"]);
    let workload = workloads(documents)
        .find(|one| one["metadata"]["name"] == *name && one["kind"] == target["kind"]);
    match workload {
        None => faults.push(format!("nothing to scale is called {name}")),
        // Each apply would put the number back.
        Some(workload) if !workload["spec"]["replicas"].is_null() => {
            faults.push(format!(
                "{name} has a number of replicas beside its autoscaler"
            ));
        }
        Some(_) => {}
    }
    let (least, most) = (
        spec["minReplicas"].as_u64().unwrap_or(1),
        spec["maxReplicas"].as_u64().unwrap_or(0),
    );
    let budget = named(documents, "PodDisruptionBudget", &name);
    let gone = budget.and_then(|budget| budget["spec"]["maxUnavailable"].as_u64());
    if least > most || gone.is_none_or(|gone| gone >= least) {
        faults.push(format!(
            "{name}: {gone:?} of {least} to {most} may go at once"
        ));
    }
    for metric in list(&spec["metrics"])
        .iter()
        .filter(|metric| metric["type"] == "Pods")
    {
        let asked = &metric["pods"]["metric"]["name"];
        if !list(&adapter["rules"]["custom"])
            .iter()
            .any(|rule| rule["name"]["as"] == *asked)
        {
            faults.push(format!("no rule of the adapter makes {asked}"));
        }
        let begins = threshold(scaler) * TOLERANCE;
        for worker in scene.containers.iter().filter(|one| one.runs("worker")) {
            let [running, waiting, queued] = limits(worker, None);
            // A refusal needs a full queue, and one of the limits full: see pressure.rs.
            let refused = 1.0 + queued as f64 / running.max(waiting) as f64;
            if begins >= 1.0 || begins * 2.0 > refused {
                faults.push(format!(
                    "{name}: begins at {begins} and refuses from {refused}"
                ));
            }
        }
    }
}

/// The pressure from which engines are added, without the tolerance.
pub fn threshold(scaler: &Value) -> f64 {
    let target = &scaler["spec"]["metrics"][0]["pods"]["target"]["averageValue"];
    let text = target.as_str().expect("a quantity");
    match text.strip_suffix('m') {
        Some(thousandths) => thousandths.parse::<f64>().expect("digits") / 1000.0,
        None => text.parse().expect("digits"),
    }
}

fn all(checked: &Checked) -> Vec<String> {
    let mut all = kubernetes_faults(&checked.base, &checked.adapter);
    all.extend(kubernetes_faults(&checked.nats, &checked.adapter));
    all.extend(faults(&Scene::compose(&checked.compose)));
    all.extend(faults(&Scene::compose(&checked.compose_nats)));
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
