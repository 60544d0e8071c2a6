//! What has to agree between Kubernetes' objects.

use serde_json::Value;

use super::containers;
use super::limits::limits;
use super::pods::{Container, Scene, list, most, named, of_kind, selects, text, workloads};

/// Tenths by which Kubernetes lets a metric be off before it does something.
const TOLERANCE: f64 = 1.1;

/// What is wrong with Kubernetes' objects.
pub fn faults(documents: &[Value], adapter: &Value) -> Vec<String> {
    let scene = Scene::kubernetes(documents);
    let mut faults = containers::faults(&scene);
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
    selected_faults(documents, &scene, &mut faults);
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

/// Whatever selects pods selects some, and names ports that they have.
fn selected_faults(documents: &[Value], scene: &Scene, faults: &mut Vec<String>) {
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
