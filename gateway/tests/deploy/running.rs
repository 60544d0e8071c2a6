//! Every container of the program, started with its own arguments on this machine, and
//! asked what Kubernetes, Prometheus and clients would ask it.
//!
//! Only addresses are others: free ports of loopback in the place of those in the files.
//! vLLM's place is taken by a simulated engine.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use super::checked::shipped;
use super::pods::{Container, Scene};
use super::program::{self, Running, tidegate};

/// How long something may take that is there sooner or later.
const PATIENCE: Duration = Duration::from_secs(10);

/// Containers that run, and where each of their ports is.
struct Stage {
    running: BTreeMap<String, Running>,
    ports: BTreeMap<(String, u16), SocketAddr>,
    folder: PathBuf,
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Stage {
    /// Starts everything: engines, then workers, then frontends.
    fn start(name: &str, scene: &Scene) -> Self {
        let folder = format!("deploy-{name}-{}", std::process::id());
        let mut stage = Self {
            running: BTreeMap::new(),
            ports: BTreeMap::new(),
            folder: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder),
        };
        std::fs::create_dir_all(&stage.folder).expect("a folder");
        for engine in &scene.containers {
            if engine.image.starts_with("vllm/") {
                stage.stand_in(engine);
            } else if engine.runs("engine") {
                stage.run(scene, engine);
            }
        }
        for command in ["worker", "frontend"] {
            for container in scene.containers.iter().filter(|one| one.runs(command)) {
                stage.run(scene, container);
            }
        }
        let all = scene.containers.iter();
        let asked = all.filter(|one| !one.image.starts_with("nats:")).count();
        assert_eq!(stage.running.len(), asked, "each is started");
        stage
    }

    /// A simulated engine in vLLM's place: its size, its model, its port.
    fn stand_in(&mut self, engine: &Container) {
        let (model, size) = (engine.flag("--model"), engine.flag("--max-num-seqs"));
        let port = engine.flag("--port").expect("a port");
        let (model, size) = (model.expect("a model"), size.expect("a size"));
        let args = [
            "engine",
            "--listen=127.0.0.1:0",
            "--model",
            model,
            "--max-num-seqs",
            size,
        ];
        let args = [&args[..], &["--log-format=json"]].concat();
        self.listen(
            engine,
            Running::start(&args),
            &[port.parse().expect("a port")],
        );
    }

    /// The program, with the arguments of its container.
    fn run(&mut self, scene: &Scene, container: &Container) {
        let mut ports = Vec::new();
        let args: Vec<String> = container
            .args
            .iter()
            .map(|arg| {
                let Some((flag, value)) = arg.split_once('=') else {
                    return arg.clone();
                };
                let value = match flag {
                    "--listen" | "--admin-listen" => {
                        let port = value.strip_prefix("0.0.0.0:").expect("every address");
                        ports.push(port.parse().expect("a port"));
                        "127.0.0.1:0".to_owned()
                    }
                    "--engine-url" | "--worker" => {
                        let at = value.strip_prefix("http://").expect("http");
                        let found = scene.find(container, at);
                        format!("http://{}", self.address(&found.expect("somebody")))
                    }
                    "--policy" => {
                        let file = self.folder.join(format!("{}.toml", container.pod));
                        std::fs::write(&file, &container.files[value]).expect("a file");
                        file.display().to_string()
                    }
                    // Nobody is there: what a NATS server does is not looked at here.
                    "--nats" => "nats://127.0.0.1:1".to_owned(),
                    _ => value.to_owned(),
                };
                format!("{flag}={value}")
            })
            .collect();
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        if container.flag("--log-format").is_none() {
            args.push("--log-format=json");
        }
        self.listen(container, Running::spawn(tidegate(&args)), &ports);
    }

    /// Reads from its log where it listens, in the order of its ports.
    fn listen(&mut self, container: &Container, running: Running, ports: &[u16]) {
        let said = ["listen", "listens for operations"];
        for (port, said) in ports.iter().zip(said) {
            let line = running.wait_for(said);
            let line: Value = serde_json::from_str(&line).expect("JSON");
            let url = line["url"]
                .as_str()
                .and_then(|url| url.strip_prefix("http://"));
            let addr = url.or(line["addr"].as_str()).expect("an address");
            let addr: SocketAddr = addr.parse().expect("an address");
            for pod in [container.pod.clone(), format!("{}-0", container.pod)] {
                self.ports.insert((pod, *port), addr);
            }
        }
        let name = format!("{}/{}", container.pod, container.name);
        self.running.insert(name, running);
    }

    /// Where a port of a pod is. Of a StatefulSet, the first pod runs; nobody is at the
    /// others' addresses.
    fn address(&self, at: &(String, u16)) -> SocketAddr {
        let number =
            at.0.rsplit_once('-')
                .and_then(|(_, number)| number.parse::<u8>().ok());
        let nobody = || number.map(|number| SocketAddr::from(([127, 0, 1, number], 1)));
        let there = self.ports.get(at).copied();
        there
            .or_else(nobody)
            .unwrap_or_else(|| panic!("nobody listens at {at:?}"))
    }

    /// The port that a probe names, by number or name.
    fn port(&self, container: &Container, port: &Value) -> SocketAddr {
        let named = port
            .as_str()
            .and_then(|name| container.ports.get(name))
            .copied();
        let number = port.as_u64().and_then(|port| port.try_into().ok());
        let port = named.or(number).expect("a port that the container has");
        self.address(&(container.pod.clone(), port))
    }

    /// Every probe of a container, until it is well.
    async fn probe(&self, container: &Container, ready: bool) {
        for kind in ["startupProbe", "readinessProbe", "livenessProbe"] {
            let probe = &container.spec[kind];
            if kind == "readinessProbe" && !ready {
                continue;
            }
            if let Some(path) = probe["httpGet"]["path"].as_str() {
                let addr = self.port(container, &probe["httpGet"]["port"]);
                let what = format!("{kind} of {}", container.name);
                until(&what, async || get(addr, path).await.0 == 200).await;
            }
            let command = probe["exec"]["command"].as_array();
            if command.is_some() {
                let addr = self.address(&(container.pod.clone(), 8000));
                let command: Vec<String> = command
                    .into_iter()
                    .flatten()
                    .map(|word| {
                        let word = word.as_str().expect("a word");
                        word.replace("127.0.0.1:8000", &addr.to_string())
                    })
                    .collect();
                assert!(succeeds(&command), "{command:?}");
                // It can fail: nobody is at this port.
                let gone = command
                    .iter()
                    .map(|word| word.replace(&addr.to_string(), "127.0.0.1:1"));
                assert!(!succeeds(&gone.collect::<Vec<_>>()));
            }
        }
    }
}

fn succeeds(command: &[String]) -> bool {
    let output = Command::new(&command[0]).args(&command[1..]).output();
    output.expect("python3 runs").status.success()
}

async fn until(what: &str, mut reached: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !reached().await {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn send(method: Method, addr: SocketAddr, path: &str, body: String) -> (u16, String) {
    let request = Request::builder()
        .method(method)
        .uri(format!("http://{addr}{path}"));
    let request = request.header("content-type", "application/json");
    let request = request
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    let client = Client::builder(TokioExecutor::new()).build_http();
    let Ok(answer) = client.request(request).await else {
        return (0, String::new());
    };
    let status = answer.status().as_u16();
    let body = answer
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

async fn get(addr: SocketAddr, path: &str) -> (u16, String) {
    send(Method::GET, addr, path, String::new()).await
}

/// Everything that is asked of one set of files.
async fn runs(name: &str, scene: &Scene, models: &[&str]) {
    let stage = Stage::start(name, scene);
    let with_nats = scene
        .containers
        .iter()
        .any(|one| one.flag("--nats").is_some());
    for container in &scene.containers {
        let ready = !(with_nats && container.runs("frontend"));
        if !container.image.starts_with("nats:") {
            stage.probe(container, ready).await;
        }
        let family = match container.args.first().map(String::as_str) {
            Some("worker") => "dynamo_backend_admission_engine_request_count{",
            Some("frontend") if !with_nats => "dynamo_frontend_worker_healthy{",
            _ => continue,
        };
        if let Some(port) = container.scraped {
            let addr = stage.address(&(container.pod.clone(), port));
            let (status, page) = get(addr, "/metrics").await;
            assert!(status == 200 && page.contains(family), "{page}");
            // What the adapter's rule adds for a policy.
            let held = page.contains("dynamo_backend_admission_policy_held_count{");
            assert_eq!(held, container.flag("--policy").is_some(), "{page}");
        }
    }
    let frontend = scene.containers.iter().find(|one| one.runs("frontend"));
    let frontend = stage.address(&(frontend.expect("a frontend").pod.clone(), 8080));
    for model in models {
        let body = json!({"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": "hello"}]});
        until(&format!("an answer of {model}"), async || {
            send(
                Method::POST,
                frontend,
                "/v1/chat/completions",
                body.to_string(),
            )
            .await
            .0 == 200
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_kubernetes_starts_runs_and_answers_its_probes() {
    let scene = Scene::kubernetes(&shipped().base);
    runs("base", &scene, &["Qwen/Qwen2.5-7B-Instruct"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_compose_starts_runs_and_answers() {
    let scene = Scene::compose(&shipped().compose);
    runs("compose", &scene, &["sim", "Qwen/Qwen2.5-7B-Instruct"]).await;
}

/// The same with NATS, as far as it goes without a server: a worker and a frontend that
/// cannot reach it start, and say that they are alive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_started_with_nats_runs() {
    if !knows_nats() {
        eprintln!(
            "SKIPPED: this program has no --nats yet; the files' flags for it are not checked"
        );
        return;
    }
    runs("nats", &Scene::kubernetes(&shipped().nats), &[]).await;
    runs(
        "compose-nats",
        &Scene::compose(&shipped().compose_nats),
        &[],
    )
    .await;
}

fn knows_nats() -> bool {
    let help = program::output(&["worker", "--help"]);
    program::text(&help.stdout).contains("--nats ")
}

/// An argument that the program does not know ends it, and a probe of a path that it does
/// not have is not answered with 200: both would be found above.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_program_does_not_understand_is_found() {
    let args = |flag: &str| {
        vec![
            "worker".to_owned(),
            "--engine-url=http://127.0.0.1:1".to_owned(),
            flag.to_owned(),
        ]
    };
    for flag in [
        "--drain-timout=120",
        "--policy-mode=observe",
        "--drain-timeout=soon",
    ] {
        let args = args(flag);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        assert_eq!(program::output(&args).status.code(), Some(2), "{flag}");
    }
    let scene = Scene::kubernetes(&shipped().base);
    let stage = Stage::start("broken", &scene);
    let worker = scene
        .containers
        .iter()
        .find(|one| one.runs("worker"))
        .expect("a worker");
    for (port, path) in [("admin", "/healthz"), ("http", "/ready")] {
        let (status, _) = get(stage.port(worker, &json!(port)), path).await;
        assert_ne!(status, 200, "{port} {path}");
    }
}
