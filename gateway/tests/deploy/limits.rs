//! The limits that a worker would have, as the program itself says.

use serde_json::Value;

use super::pods::{Container, Scene};
use super::program;

/// The limits that the program makes of a worker's flags, and of what a simulated engine
/// tells: running, waiting, queued.
pub fn limits(worker: &Container, engine: Option<&Container>) -> [u64; 3] {
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

/// The engine before which a worker stands.
pub fn engine<'a>(scene: &'a Scene, worker: &Container) -> Option<&'a Container> {
    let url = worker.flag("--engine-url")?;
    let (pod, port) = scene.find(worker, url.strip_prefix("http://")?)?;
    let listens = |one: &&Container| {
        let at = one.flag("--listen").and_then(|at| at.rsplit_once(':'));
        let listens = one.flag("--port").or(at.map(|(_, port)| port));
        one.pod == pod && !one.runs("worker") && listens == Some(&port.to_string())
    };
    scene.containers.iter().find(listens)
}
