//! What has to agree in and between containers, wherever they run.

use super::limits::{engine, limits};
use super::pods::{Container, Scene, list};

/// Seconds that a worker takes for its last answers once the time to drain is up.
const LAST_ANSWERS: f64 = 0.5;
/// Seconds that an engine may need to end, after its worker.
const ENGINE_ENDS: f64 = 10.0;
/// Most that a stream and a queued client cost (README), and the program itself.
const STREAM: u64 = 96 << 10;
const QUEUED: u64 = 32 << 10;
const ITSELF: u64 = 64 << 20;
/// What is wrong with containers, wherever they run.
pub fn faults(scene: &Scene) -> Vec<String> {
    let mut faults = Vec::new();
    for container in &scene.containers {
        let name = format!("{}/{}", container.pod, container.name);
        for arg in container.args.iter().filter(|arg| arg.contains("$(")) {
            faults.push(format!("{name}: nobody gives a value to {arg}"));
        }
        let policy = container.flag("--policy");
        if policy.is_some_and(|file| !container.files.contains_key(file)) {
            faults.push(format!("{name}: there is no file of --policy"));
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
            frontend_faults(scene, container, &name, &mut faults);
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

fn frontend_faults(scene: &Scene, frontend: &Container, name: &str, faults: &mut Vec<String>) {
    for url in frontend.flags("--worker") {
        let at = url.strip_prefix("http://").unwrap_or(url);
        if scene.find(frontend, at).is_none() {
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
        if scene.find(frontend, at).is_none() {
            faults.push(format!("{name}: nobody is at {url}, which is announced"));
        }
        let allowed = frontend.flags("--allow-workers").join(",");
        let allows =
            |one: &str| at == one || one.strip_prefix('*').is_some_and(|end| at.ends_with(end));
        if !allowed.split(',').any(allows) {
            faults.push(format!("{name}: does not allow {url}"));
        }
    }
    let bodies = (frontend.number("--buffer-budget", 512.0) as u64) << 20;
    let workers = scene.containers.iter().filter(|one| one.runs("worker"));
    let streams = workers.map(|worker| {
        let [running, _, queued] = limits(worker, engine(scene, worker));
        (running + queued) * worker.copies
    });
    let streams: u64 = streams.sum();
    memory(frontend, name, bodies + streams * STREAM, faults);
}
